//! The README's pipeline, run as it is written: every `$` line of its console blocks goes to one shell, and what the
//! shell prints must be what the README shows.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use segue_testkit::segue::repository;

/// How long one command may take; the first ones start servers.
const COMMAND_DEADLINE: Duration = Duration::from_secs(180);

/// A command, and the lines that it prints.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    output: Vec<String>,
}

/// The steps of all console blocks.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if in_console {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { command: command.to_owned(), output: Vec::new() });
                continue;
            }
            let step = steps.last_mut().expect("a block begins with a command");
            match line.strip_prefix("> ") {
                Some(more) => step.command += &format!("\n{more}"),
                None => step.output.push(line.trim_end().to_owned()),
            }
        }
    }
    steps
}

struct Shell {
    child: Child,
    lines: Receiver<String>,
}

impl Shell {
    fn start() -> Shell {
        let mut child = Command::new("bash")
            .current_dir(repository())
            .env("PATH", std::env::var("PATH").expect("PATH is set"))
            .env_remove("PGUSER")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash runs");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        let mut shell = Shell { child, lines };
        shell.write("exec 2>&1");
        shell
    }

    fn write(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(stdin, "{text}").expect("the shell lives");
    }

    /// Runs a step and holds its output against the page.
    fn run(&mut self, step: &Step) {
        const END: &str = "--- end of the command ---";
        self.write(&step.command);
        self.write(&format!("echo '{END}'"));
        let in_background = step.command.ends_with('&');
        let mut printed = Vec::new();
        let mut ended = false;
        while !ended || (in_background && printed.len() < step.output.len()) {
            let line = self.lines.recv_timeout(COMMAND_DEADLINE).unwrap_or_else(|_| {
                panic!("{}\nprinted {printed:#?}\nand then nothing", step.command)
            });
            if line == END {
                ended = true;
            } else if !is_notice_of_a_job(&line) {
                printed.push(line.trim_end().to_owned());
            }
        }
        assert_eq!(printed, step.output, "of: {}", step.command);
    }
}

/// What a shell says of itself when a job in the background was killed; an interactive one words it otherwise,
/// and at another moment.
fn is_notice_of_a_job(line: &str) -> bool {
    line.starts_with("bash: line ") && (line.contains(" Killed ") || line.contains(" Terminated "))
}

impl Drop for Shell {
    fn drop(&mut self) {
        // A failed step leaves servers behind; the page's own last commands end them otherwise.
        let _ = Command::new("pkill").args(["-f", "segue serve --listen 127.0.0.1:4566"]).status();
        let _ = Command::new("./x").args(["services", "down"]).current_dir(repository()).output();
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn the_readme_works_as_it_is_written() {
    let page = std::fs::read_to_string(repository().join("README.md")).expect("it is there");
    let steps = steps(&page);
    assert!(steps.len() > 10, "the walk-through has gone: {steps:?}");
    let mut shell = Shell::start();
    for step in &steps {
        shell.run(step);
    }
}

#[test]
fn commands_go_on_over_lines_and_output_belongs_to_the_command_above() {
    let page = "# T\n```sh\n$ not this\n```\n```console\n$ cat <<E\n> a\n> E\na\n$ true\n```\n";
    let expected = [
        Step { command: "cat <<E\na\nE".to_owned(), output: vec!["a".to_owned()] },
        Step { command: "true".to_owned(), output: Vec::new() },
    ];
    assert_eq!(steps(page), expected);
}
