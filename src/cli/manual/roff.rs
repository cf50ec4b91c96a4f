//! The language of man pages, as much of it as is needed.

use std::fmt::Write as _;

/// A page in the making.
pub(super) struct Roff {
    text: String,
}

impl Roff {
    pub(super) fn new(name: &str, section: u8) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let mut text =
            String::from(".\\\" Made by 'git vws install-docs': edit src/cli/manual/.\n");
        let _ = writeln!(
            text,
            ".TH \"{}\" \"{section}\" \"\" \"git-vws {version}\" \"Git Manual\"",
            name.to_ascii_uppercase()
        );
        // No hyphenation, left-justified.
        text.push_str(".nh\n.ad l\n");
        Roff { text }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    pub(super) fn section(&mut self, heading: &str) {
        let _ = writeln!(self.text, ".SH \"{}\"", escape(heading));
    }

    pub(super) fn subsection(&mut self, heading: &str) {
        let _ = writeln!(self.text, ".SS \"{}\"", escape(heading));
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.text, ".PP\n{}", inline(text));
    }

    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}", inline(text));
    }

    pub(super) fn tagged(&mut self, term: &str, text: &str) {
        let _ = writeln!(self.text, ".TP\n{}\n{}", inline(term), inline(text));
    }

    pub(super) fn literal(&mut self, lines: &[&str]) {
        self.text.push_str(".PP\n.RS 4\n.nf\n");
        for line in lines {
            let _ = writeln!(self.text, "{}", escape(line));
        }
        self.text.push_str(".fi\n.RE\n");
    }
}

/// Prose on one line; what stands in back quotes is bold.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('`').enumerate() {
        let part = part.replace('\n', " ");
        if at % 2 == 1 {
            let _ = write!(out, "\\fB{}\\fR", inner(&part));
        } else {
            out.push_str(&inner(&part));
        }
    }
    guard(&out)
}

fn escape(text: &str) -> String {
    guard(&inner(text))
}

fn inner(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A line that starts with a dot or a quote would be a request.
fn guard(text: &str) -> String {
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_roff_is_escaped() {
        assert_eq!(inline("a `-z`\nb"), "a \\fB\\-z\\fR b");
        assert_eq!(escape(".x\\y"), "\\&.x\\ey");
        assert_eq!(escape("'x'"), "\\&'x'");
    }
}
