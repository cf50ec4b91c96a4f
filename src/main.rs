//! `git vws`: the arguments go to `cli`, which calls the library and returns the exit code.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
