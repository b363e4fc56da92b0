//! Places in a text: sqlparser counts lines and columns, PostgreSQL's wire counts characters, slices count bytes.

use sqlparser::tokenizer::Location;

/// A 1-based character offset into the text that was parsed. Two statements are equal wherever they stood, so
/// an offset equals every other.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Offset(pub usize);

impl PartialEq for Offset {
    fn eq(&self, _: &Offset) -> bool {
        true
    }
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    text: &'a str,
    /// Per line: bytes and characters before it.
    starts: Vec<(usize, usize)>,
}

impl<'a> Lines<'a> {
    /// Reads the text once.
    pub fn new(text: &'a str) -> Lines<'a> {
        let mut starts = vec![(0, 0)];
        for (chars, (bytes, char)) in text.char_indices().enumerate() {
            if char == '\n' {
                starts.push((bytes + 1, chars + 1));
            }
        }
        Lines { text, starts }
    }

    /// The 1-based character offset of a place, also of one right after the last character. `None` for
    /// sqlparser's empty location.
    pub fn offset(&self, place: Location) -> Option<usize> {
        let (_, chars) = self.start_of(place)?;
        Some(chars + usize::try_from(place.column).ok()?)
    }

    /// The byte offset of a place.
    pub(crate) fn byte(&self, place: Location) -> Option<usize> {
        let (start, _) = self.start_of(place)?;
        let skipped = usize::try_from(place.column).ok()?.checked_sub(1)?;
        let line = &self.text[start..];
        let within = line.char_indices().nth(skipped).map_or(line.len(), |(byte, _)| byte);
        Some(start + within)
    }

    /// The offset right after the text.
    pub(crate) fn end(&self) -> usize {
        self.text.chars().count() + 1
    }

    fn start_of(&self, place: Location) -> Option<(usize, usize)> {
        let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
        self.starts.get(line).copied()
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Location;

    use super::Lines;

    #[test]
    fn a_place_behind_wide_characters_is_counted_in_characters_and_sliced_in_bytes() {
        let lines = Lines::new("é\n→ x");
        let place = Location { line: 2, column: 3 };
        assert_eq!(lines.offset(place), Some(5));
        assert_eq!(lines.byte(place), Some(7));
        assert_eq!(lines.offset(Location::empty()), None);
    }
}
