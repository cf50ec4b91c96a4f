//! `git vws`: the arguments go to `cli`, which calls the library and returns the exit code.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: what enters a namespace may have one thread only.
    #[cfg(target_os = "linux")]
    {
        use git_vws::layout::overlay;
        let mut args = std::env::args_os().skip(1);
        if args.next().is_some_and(|first| first == overlay::ENTER) {
            let failure = overlay::enter_main(args);
            if let Some(error) = failure.error.filter(|_| !failure.reported) {
                use std::io::Write;
                let _ = writeln!(std::io::stderr(), "fatal: {error}");
            }
            return ExitCode::from(failure.code);
        }
    }
    cli::main()
}
