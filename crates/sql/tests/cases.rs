//! Statements and what the parser makes of them, as files: `cases/*.sql`.
//!
//! A case is a text and, below it, what is expected, in lines that begin with `--> `: the statements as they are
//! printed, or the error. `UPDATE_CASES=1 cargo test -p segue-sql --test cases` writes what is found.

use std::{fs, path::Path};

use segue_sql::{Statement, parse};
use segue_types::UserError;

const MARK: &str = "--> ";

#[test]
fn every_case_is_parsed_as_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut wrong = Vec::new();
    let mut files = 0;
    for entry in fs::read_dir(&folder).expect("the cases lie beside the test") {
        let path = entry.expect("the folder can be listed").path();
        let given = fs::read_to_string(&path).expect("a case file is text");
        let found = rewrite(&given);
        files += 1;
        if update {
            fs::write(&path, found).expect("the checkout can be written");
        } else if found != given {
            let differs = given.lines().zip(found.lines()).position(|(a, b)| a != b);
            wrong.push(format!("{}:{}", path.display(), differs.map_or(0, |line| line + 1)));
        }
    }
    assert!(files > 5, "the case files have gone");
    assert!(
        wrong.is_empty(),
        "unexpected outcome at {wrong:#?}\nUPDATE_CASES=1 writes what is found"
    );
}

/// The file with the expectations that the parser meets.
fn rewrite(file: &str) -> String {
    let mut written = String::new();
    let mut case = String::new();
    for line in file.lines() {
        if !line.starts_with(MARK.trim_end()) {
            case.push_str(line);
            case.push('\n');
        } else if !case.is_empty() {
            written.push_str(&case);
            written.push_str(&expectation(&case));
            case.clear();
        }
    }
    if !case.trim().is_empty() {
        written.push_str(&case);
        written.push_str(&expectation(&case));
    }
    written
}

fn expectation(text: &str) -> String {
    let lines = match parse(text) {
        Ok(statements) => statements.iter().map(show).collect::<Vec<_>>().join("\n"),
        Err(error) => show_error(text, &UserError::from(error)),
    };
    lines.lines().map(|line| format!("{MARK}{line}\n")).collect()
}

fn show(statement: &Statement) -> String {
    let printed = statement.to_string();
    match statement {
        Statement::Sql(_) => format!("SQL {printed}"),
        _ => {
            assert_eq!(
                parse(&printed).as_deref(),
                Ok(std::slice::from_ref(statement)),
                "{printed}"
            );
            printed
        }
    }
}

fn show_error(text: &str, error: &UserError) -> String {
    let offset = error.offset.expect("every error of the parser has a place");
    let rest: String = text.chars().skip(offset - 1).take_while(|char| *char != '\n').collect();
    let mut shown = format!("ERROR {} {error}\nAT {rest}", error.state);
    for (word, part) in [("DETAIL", &error.detail), ("HINT", &error.hint)] {
        if let Some(part) = part {
            shown.push_str(&format!("\n{word} {part}"));
        }
    }
    shown
}
