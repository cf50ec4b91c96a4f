//! The printer: puts records and paths into one of the three forms.
//!
//! Everything is buffered, and nothing is done until [`Printer::finish`] said so: a command that
//! exits with 0 has got its last byte out.

use std::io::{self, BufWriter, Write};

use bstr::BStr;

use super::quote::quote_c;
use super::record::Record;

/// How much is gathered before it is written, in bytes.
const BUFFER: usize = 64 << 10;

/// Standard output failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It takes no more bytes.
    #[error("cannot write to standard output: {0}")]
    Write(#[from] io::Error),
}

impl Error {
    /// Whether the reader has gone, which is its right and nobody's failure.
    pub fn is_closed_pipe(&self) -> bool {
        let Error::Write(error) = self;
        error.kind() == io::ErrorKind::BrokenPipe
    }
}

/// The result of printing.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How records are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// In lines, with paths quoted as git does.
    #[default]
    Lines,
    /// The same with a NUL instead of each line end, and paths raw.
    Nul,
    /// One JSON object a line.
    Json,
}

/// How git separates a path from the fields before it when lines end in NUL. It has two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStyle {
    /// A tab, always: `ls-tree`, `diff --numstat`.
    Tree,
    /// A tab, but a NUL with `-z`: `diff --raw`, `diff --name-status`.
    Diff,
}

/// Prints records in a form.
pub struct Printer<W: Write> {
    out: BufWriter<W>,
    form: Form,
    quote_path: bool,
}

impl<W: Write> Printer<W> {
    /// Prints to `out`. `quote_path` is `core.quotePath`.
    pub fn new(out: W, form: Form, quote_path: bool) -> Self {
        Printer {
            out: BufWriter::with_capacity(BUFFER, out),
            form,
            quote_path,
        }
    }

    /// Prints a record: `key value` lines and an empty one, or a JSON object.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn record(&mut self, record: &Record) -> Result<()> {
        let (quote, end) = match self.form {
            Form::Json => return self.json(record),
            Form::Lines => (Some(self.quote_path), b"\n"),
            Form::Nul => (None, b"\0"),
        };
        for line in record.lines(quote) {
            self.out.write_all(&line)?;
            self.out.write_all(end)?;
        }
        Ok(self.out.write_all(end)?)
    }

    /// Prints one line about a path, or about two: the fields, a tab, the paths separated by tabs.
    /// In JSON it is the record.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn path_line(
        &mut self,
        style: PathStyle,
        fields: &str,
        paths: &[&BStr],
        json: impl FnOnce() -> Record,
    ) -> Result<()> {
        let mut separator: &[u8] = b"\t";
        match self.form {
            Form::Json => return self.json(&json()),
            Form::Lines => {
                self.out.write_all(fields.as_bytes())?;
                for path in paths {
                    self.out.write_all(separator)?;
                    self.out.write_all(&quote_c(path, self.quote_path))?;
                }
                self.out.write_all(b"\n")?;
            }
            Form::Nul => {
                self.out.write_all(fields.as_bytes())?;
                if style == PathStyle::Diff {
                    separator = b"\0";
                }
                for path in paths {
                    self.out.write_all(separator)?;
                    self.out.write_all(path)?;
                    separator = b"\0";
                }
                self.out.write_all(b"\0")?;
            }
        }
        Ok(())
    }

    /// Prints bytes as they are: the content of a file.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Writes what is still held back. A command is not done before this is.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    fn json(&mut self, record: &Record) -> Result<()> {
        Ok(writeln!(self.out, "{}", record.to_json())?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bstr::{BString, ByteSlice};

    use super::*;

    fn printed(form: Form, print: impl Fn(&mut Printer<&mut Vec<u8>>) -> Result<()>) -> BString {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, form, true);
        print(&mut printer).unwrap();
        printer.finish().unwrap();
        out.into()
    }

    #[test]
    fn a_record_is_closed_by_an_empty_line() {
        let record = Record::new()
            .with("path", BString::from("a\tb"))
            .flag("x", true);
        let print = |p: &mut Printer<&mut Vec<u8>>| p.record(&record);
        assert_eq!(printed(Form::Lines, print), "path \"a\\tb\"\nx\n\n");
        assert_eq!(printed(Form::Nul, print), "path a\tb\0x\0\0");
        let json = "{\"v\":1,\"path\":\"a\\tb\",\"x\":true}\n";
        assert_eq!(printed(Form::Json, print), json);
    }

    #[test]
    fn paths_stand_where_git_puts_them() {
        let paths = ["a\nb".as_bytes().as_bstr(), "c d".into()];
        for (style, nul) in [
            (PathStyle::Tree, "R 1\ta\nb\0c d\0"),
            (PathStyle::Diff, "R 1\0a\nb\0c d\0"),
        ] {
            let print = |p: &mut Printer<&mut Vec<u8>>| {
                p.path_line(style, "R 1", &paths, || Record::new().with("status", "R"))
            };
            assert_eq!(printed(Form::Lines, print), "R 1\t\"a\\nb\"\tc d\n");
            assert_eq!(printed(Form::Nul, print), nul);
            assert_eq!(printed(Form::Json, print), "{\"v\":1,\"status\":\"R\"}\n");
        }
    }

    struct Full(io::ErrorKind);

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_output_is_said_at_the_latest_when_finishing() {
        for (kind, closed) in [
            (io::ErrorKind::StorageFull, false),
            (io::ErrorKind::BrokenPipe, true),
        ] {
            let mut printer = Printer::new(Full(kind), Form::Lines, true);
            printer.bytes(b"x").unwrap();
            let error = printer.finish().unwrap_err();
            assert_eq!(error.is_closed_pipe(), closed);
            assert!(
                error
                    .to_string()
                    .starts_with("cannot write to standard output: ")
            );
        }
    }
}
