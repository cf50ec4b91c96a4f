//! A client of `git vws batch` that asks, and waits for the answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};

use super::Try;
use super::rig::Rig;

pub struct Batch {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Batch {
    pub fn start(rig: &Rig, repo: &Path) -> Try<Batch> {
        let mut child = rig.spawn(repo, &["vws", "batch"])?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a batch without pipes".to_owned());
        };
        Ok(Batch {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Sends one command, with what follows its line, and returns the body of its answer.
    pub fn ask(&mut self, line: &str, payload: Option<&[u8]>) -> Try<Vec<u8>> {
        let mut message = format!("{line}\n").into_bytes();
        if let Some(payload) = payload {
            message.extend_from_slice(payload);
            message.push(b'\n');
        }
        let broken = |e: std::io::Error| format!("batch broke off in '{line}': {e}");
        self.input.write_all(&message).map_err(broken)?;
        let mut head = String::new();
        self.output.read_line(&mut head).map_err(broken)?;
        let head = head.trim_end();
        let size = head
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse::<usize>().ok());
        let size = size.ok_or_else(|| format!("batch answered '{head}' to '{line}'"))?;
        let mut body = vec![0; size + 1];
        self.output.read_exact(&mut body).map_err(broken)?;
        body.pop();
        match head.starts_with("0 ") {
            true => Ok(body),
            false => Err(format!(
                "batch refused '{line}': {}",
                String::from_utf8_lossy(&body)
            )),
        }
    }

    /// Ends the input, and waits for the end.
    pub fn end(mut self) -> Try<()> {
        drop(self.input);
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("batch ended with {status}")),
            Err(error) => Err(error.to_string()),
        }
    }
}
