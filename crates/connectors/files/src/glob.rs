//! Globs over paths: `?` one character, `*` any within a path segment, `**` any number of segments.

/// A pattern for paths below a root.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    text: String,
    segments: Vec<String>,
}

impl Glob {
    /// A pattern without a slash matches the file's name in any directory.
    pub(crate) fn new(text: &str) -> Glob {
        if text.contains('/') {
            Glob::anchored(text)
        } else {
            Glob::anchored(&format!("**/{text}"))
        }
    }

    /// A pattern for the whole path.
    pub(crate) fn anchored(text: &str) -> Glob {
        let segments = text.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned);
        Glob { text: text.to_owned(), segments: segments.collect() }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_match(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        match_segments(&self.segments, &path)
    }
}

fn match_segments(pattern: &[String], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((first, rest)) if first == "**" => {
            // `**` as the last segment stands for any file below.
            (rest.is_empty() && !path.is_empty())
                || (0..=path.len()).any(|skipped| match_segments(rest, &path[skipped..]))
        }
        Some((first, rest)) => {
            path.first().is_some_and(|segment| match_segment(first.as_bytes(), segment.as_bytes()))
                && match_segments(rest, &path[1..])
        }
    }
}

/// Wildcards within one segment: on a mismatch, the last star takes one character more.
fn match_segment(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(b'?') => {
                at += 1;
                in_text += 1;
                while text.get(in_text).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    in_text += 1;
                }
            }
            Some(byte) if *byte == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                at = star_at + 1;
                in_text = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn stars_stay_in_their_segment_and_double_stars_do_not() {
        let cases = [
            ("*.csv", "a.csv", true),
            ("*.csv", "deep/er/a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("2024-*/part-?.json", "2024-01/part-1.json", true),
            ("2024-*/part-?.json", "2024-01/x/part-1.json", false),
            ("2024-*/part-?.json", "2024-01/part-é.json", true),
            ("**/b/*", "a/b/c", true),
            ("**/b/*", "b/c", true),
            ("a/**/z", "a/z", true),
            ("a/**/z", "a/b/c/z", true),
            ("a/**", "a/b/c", true),
            ("a/**", "b/a", false),
            ("**", "x", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(Glob::new(pattern).is_match(path), expected, "{pattern} on {path}");
        }
    }
}
