//! Walks the repository for the tests beside it, which enforce what a machine can check of its style.
//!
//! Invariant: only files that belong to the repository are looked at, so build output never fails a test.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
pub struct SourceFile {
    /// Relative to the repository's root, with `/`.
    pub path: String,
    pub text: String,
}

impl SourceFile {
    /// Whether the file is test code as a whole: held to fewer rules.
    pub fn is_test(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        parts.contains(&"tests")
            || parts.contains(&"testkit")
            || parts.contains(&"benches")
            || parts.contains(&"examples")
            || self.path.ends_with("/tests.rs")
    }

    /// The lines before the first inline test module.
    pub fn production_lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"))
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below the repository's root whose name ends with `extension`, without build output.
///
/// # Panics
/// If a file cannot be read.
pub fn files(extension: &str) -> Vec<SourceFile> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, &root, extension, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "no *{extension} files: the walk is broken");
    found
}

fn walk(root: &Path, folder: &Path, extension: &str, found: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository is readable") {
        let entry = entry.expect("a folder of the repository is readable");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" || name == "segue-data" {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            walk(root, &path, extension, found);
        } else if name.ends_with(extension) {
            let relative = path.strip_prefix(root).expect("the walk starts at the root");
            found.push(SourceFile {
                path: relative.to_string_lossy().into_owned(),
                text: fs::read_to_string(&path).expect("source files are UTF-8"),
            });
        }
    }
}
