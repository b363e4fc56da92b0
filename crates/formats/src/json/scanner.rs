//! A cursor over one JSON text that checks what it passes.
//!
//! Invariant: the text is valid UTF-8 and the cursor stands on a character boundary, so every
//! slice that is cut at quotes, digits or brackets is a `str`.

use std::fmt;

use super::escape;

/// How deep values may nest, as in serde_json.
pub(super) const DEPTH_MAX: usize = 128;

/// A text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid JSON at byte {}: {}", self.at, self.what)
    }
}

/// A number token and what its digits say when it is an integer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number<'a> {
    pub(super) text: &'a str,
    /// The value of an integer of at most 18 digits.
    pub(super) small: Option<i64>,
}

/// A string token without its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawString<'a> {
    pub(super) text: &'a str,
    pub(super) escaped: bool,
}

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    /// Where the cursor stands.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The text from `start` up to the cursor.
    #[inline]
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    #[cold]
    pub(super) fn malformed(&self, what: &'static str) -> Malformed {
        let what = if self.at >= self.text.len() { "unexpected end" } else { what };
        Malformed { at: self.at, what }
    }

    /// The next byte; 0, which begins nothing in JSON, at the end.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// The next byte that is not white space.
    #[inline]
    pub(super) fn peek_token(&mut self) -> u8 {
        loop {
            let byte = self.peek();
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return byte;
            }
            self.at += 1;
        }
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Steps over `byte`, after white space.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Malformed> {
        if self.peek_token() != byte {
            return Err(self.malformed(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Steps over `prefix` when the text goes on with it.
    #[inline]
    pub(super) fn eat(&mut self, prefix: &[u8]) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// `true`, `false` or `null`.
    pub(super) fn literal(&mut self, word: &'static str) -> Result<(), Malformed> {
        if self.eat(word.as_bytes()) { Ok(()) } else { Err(self.malformed("expected a value")) }
    }

    /// Nothing but white space is left.
    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Malformed> {
        self.peek_token();
        if self.at < self.text.len() {
            return Err(self.malformed("trailing characters"));
        }
        Ok(())
    }

    /// A string; the cursor stands after its opening quote.
    #[inline]
    pub(super) fn string(&mut self) -> Result<RawString<'a>, Malformed> {
        let start = self.at;
        let mut escaped = false;
        let bytes = self.text.as_bytes();
        loop {
            self.at = special(bytes, self.at);
            match self.peek() {
                b'"' => {
                    let text = self.since(start);
                    self.at += 1;
                    return Ok(RawString { text, escaped });
                }
                b'\\' => {
                    escaped = true;
                    let len = escape::check(&bytes[self.at..]);
                    self.at += len.ok_or_else(|| self.malformed("invalid escape"))?;
                }
                _ => return Err(self.malformed("control character in a string")),
            }
        }
    }

    /// A number; the cursor stands on its first character.
    #[inline]
    pub(super) fn number(&mut self) -> Result<Number<'a>, Malformed> {
        let start = self.at;
        let negative = self.peek() == b'-';
        self.at += usize::from(negative);
        let first_digit = self.at;
        let leading_zero = self.peek() == b'0';
        let mut value = 0_u64;
        while let byte @ b'0'..=b'9' = self.peek() {
            value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        let digits = self.at - first_digit;
        if digits == 0 || (leading_zero && digits > 1) {
            return Err(self.malformed("invalid number"));
        }
        if !matches!(self.peek(), b'.' | b'e' | b'E') {
            let small =
                (digits <= 18).then(|| if negative { -(value as i64) } else { value as i64 });
            return Ok(Number { text: self.since(start), small });
        }
        self.fraction_and_exponent()?;
        Ok(Number { text: self.since(start), small: None })
    }

    fn fraction_and_exponent(&mut self) -> Result<(), Malformed> {
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start { Err(self.malformed("invalid number")) } else { Ok(()) }
    }

    /// Steps over any value, checking that it is one.
    #[inline]
    pub(super) fn skip_value(&mut self, depth: usize) -> Result<(), Malformed> {
        match self.peek_token() {
            b'"' => {
                self.at += 1;
                self.string().map(|_| ())
            }
            b'-' | b'0'..=b'9' => self.number().map(|_| ()),
            b'{' => self.skip_object(depth),
            b'[' => self.skip_array(depth),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => Err(self.malformed("expected a value")),
        }
    }

    /// Checks the depth of the value that opens here, and steps over its bracket.
    pub(super) fn open(&mut self, depth: usize) -> Result<usize, Malformed> {
        if depth == DEPTH_MAX {
            return Err(self.malformed("nested too deeply"));
        }
        self.at += 1;
        Ok(depth + 1)
    }

    fn skip_object(&mut self, depth: usize) -> Result<(), Malformed> {
        let depth = self.open(depth)?;
        if self.peek_token() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.expect(b'"', "expected a field name")?;
            self.string()?;
            self.expect(b':', "expected a colon")?;
            self.skip_value(depth)?;
            if !self.another(b'}')? {
                return Ok(());
            }
        }
    }

    fn skip_array(&mut self, depth: usize) -> Result<(), Malformed> {
        let depth = self.open(depth)?;
        if self.peek_token() == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_value(depth)?;
            if !self.another(b']')? {
                return Ok(());
            }
        }
    }

    /// Steps over a comma (true) or over `close` (false).
    #[inline]
    pub(super) fn another(&mut self, close: u8) -> Result<bool, Malformed> {
        let byte = self.peek_token();
        if byte != b',' && byte != close {
            return Err(self.malformed("expected a comma or the closing bracket"));
        }
        self.at += 1;
        Ok(byte == b',')
    }
}

/// The first byte at or after `at` that ends a run of plain string characters: a quote, a
/// backslash or a control character; the length of `bytes` when there is none.
#[inline]
fn special(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes[at..].first_chunk::<16>() {
        let mask = special_mask(block);
        if mask != 0 {
            return at + mask.trailing_zeros() as usize;
        }
        at += 16;
    }
    while at < bytes.len() && !is_special(bytes[at]) {
        at += 1;
    }
    at
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Bit `i` says whether `block[i]` is special.
#[cfg(target_arch = "x86_64")]
#[inline]
fn special_mask(block: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };
    // SAFETY: SSE2 is part of x86_64, and an unaligned load of 16 bytes from a 16-byte array is
    // in bounds.
    unsafe {
        let block = _mm_loadu_si128(block.as_ptr().cast());
        let quote = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) as u32
    }
}

/// Bit `i` says whether `block[i]` is special.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn special_mask(block: &[u8; 16]) -> u32 {
    block.iter().enumerate().fold(0, |mask, (i, byte)| mask | u32::from(is_special(*byte)) << i)
}

#[cfg(test)]
mod tests {
    use super::{Scanner, is_special, special};

    fn is_json(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.skip_value(0).and_then(|()| scanner.end()).is_ok()
    }

    #[test]
    fn the_wide_search_finds_what_the_narrow_one_finds() {
        for byte in 0..=255_u8 {
            for place in 0..40 {
                let mut bytes = [b'x'; 40];
                bytes[place] = byte;
                let expected = if is_special(byte) { place } else { 40 };
                assert_eq!(special(&bytes, 0), expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn skipping_checks_what_it_skips() {
        for text in ["{}", " [1, -0.5e+3, \"\\u00e9\\ud83d\\ude00\", {\"a\": null}] ", "\"\"", "0"]
        {
            assert!(is_json(text), "{text}");
        }
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1 2]",
            "[,]",
            "01",
            "1.",
            ".5",
            "-",
            "1e",
            "+1",
            "tru",
            "nul",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"a\nb\"",
            "{} {}",
            "[}",
            "\"abc",
            "NaN",
        ] {
            assert!(!is_json(text), "{text}");
        }
        assert!(is_json(&("[".repeat(128) + &"]".repeat(128))));
        assert!(!is_json(&("[".repeat(129) + &"]".repeat(129))));
    }
}
