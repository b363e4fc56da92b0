//! Style that a machine can check: module docs, file and function length, banned words, leftovers.

use segue_tidy::{SourceFile, files};

/// Production lines of a file.
const FILE_LINES_MAX: usize = 800;
/// Lines of a function, signature and closing brace included.
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 120;

/// What may not be written, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("dbg!", "tracing, or nothing"),
    ("todo!(", "the code, or an error that says what is missing"),
    ("unimplemented!(", "an error with SQLSTATE 0A000"),
    (concat!("TO", "DO"), "the work itself, or a sentence that says why it is as it is"),
    (concat!("FIX", "ME"), "the work itself, or a sentence that says why it is as it is"),
    (concat!("XX", "X "), "the work itself"),
    ("#[ignore", "a test that runs"),
    ("#[should_panic", "a Result, or catch_unwind around one expression"),
    ("thread::sleep", "a condition with a deadline"),
    ("checkpoint barrier", "step boundary: the engine has no barriers"),
    ("offset position", "position"),
    ("whitelist", "allow list"),
    ("blacklist", "deny list"),
];

#[test]
fn every_file_says_what_it_is() {
    report(files(".rs").iter().filter(|file| !file.text.starts_with("//!")).map(|file| {
        format!("{}: the first line must be `//!` and say what the file is", file.path)
    }));
}

#[test]
fn files_stay_short_enough_to_read() {
    report(files(".rs").iter().filter(|file| !file.is_test()).filter_map(|file| {
        let lines = file.production_lines().count();
        (lines > FILE_LINES_MAX)
            .then(|| format!("{}: {lines} production lines, at most {FILE_LINES_MAX}", file.path))
    }));
}

#[test]
fn lines_fit_on_a_screen() {
    let long = |file: &SourceFile| {
        file.text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.chars().count() > COLUMNS_MAX && !line.contains("http"))
            .map(|(i, _)| format!("{}:{}: over {COLUMNS_MAX} columns", file.path, i + 1))
            .collect::<Vec<_>>()
    };
    report(files(".rs").iter().filter(|file| !file.is_test()).flat_map(long));
}

#[test]
fn functions_stay_short_enough_to_read() {
    report(files(".rs").iter().filter(|file| !file.is_test()).flat_map(long_functions));
}

#[test]
fn banned_words_have_a_replacement() {
    let banned = |file: &SourceFile| {
        let mut found = Vec::new();
        for (i, line) in file.text.lines().enumerate() {
            for (word, instead) in BANNED {
                if line.contains(word) && !is_the_place_for(word, &file.path) {
                    found.push(format!("{}:{}: `{word}`: use {instead}", file.path, i + 1));
                }
            }
        }
        found
    };
    report(files(".rs").iter().flat_map(banned));
}

/// This file names the words, and one place waits on behalf of all tests.
fn is_the_place_for(word: &str, path: &str) -> bool {
    path == "tests/tidy/tests/tidy.rs"
        || (word == "thread::sleep" && path == "crates/testkit/src/wait.rs")
}

#[test]
fn a_markdown_page_has_one_title() {
    report(files(".md").iter().filter_map(|file| {
        let mut fenced = false;
        let titles = file
            .text
            .lines()
            .filter(|line| {
                fenced ^= line.starts_with("```");
                !fenced && line.starts_with("# ")
            })
            .count();
        (titles != 1).then(|| format!("{}: {titles} titles", file.path))
    }));
}

/// Functions over the limit. A function ends at the first line that closes its brace at its own indentation,
/// which holds in a formatted file.
fn long_functions(file: &SourceFile) -> Vec<String> {
    let lines: Vec<&str> = file.production_lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if !opens_function(line.trim_start()) {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        let end = lines[start..].iter().position(|line| *line == close);
        let declared_only = lines[start..].iter().position(|line| line.ends_with(';'));
        let Some(length) = end.map(|end| end + 1) else { continue };
        if declared_only.is_some_and(|semicolon| semicolon == 0) {
            continue;
        }
        if length > FUNCTION_LINES_MAX {
            found.push(format!("{}:{}: a function of {length} lines", file.path, start + 1));
        }
    }
    found
}

fn opens_function(line: &str) -> bool {
    let mut rest = line;
    for prefix in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    rest.starts_with("fn ")
}

fn report(complaints: impl Iterator<Item = String>) {
    let complaints: Vec<String> = complaints.collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_function_rule_finds_a_long_function() {
    let body = "    let x = 1;\n".repeat(FUNCTION_LINES_MAX);
    let text =
        format!("//! x\npub async fn long() {{\n{body}}}\nfn short() {{\n    let x = 1;\n}}\n");
    let found = long_functions(&SourceFile { path: "a.rs".to_owned(), text });
    assert_eq!(found, [format!("a.rs:2: a function of {} lines", FUNCTION_LINES_MAX + 2)]);
}
