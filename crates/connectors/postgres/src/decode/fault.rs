//! Why a value has no place in its column. The column's name is added by whoever knows it.

use segue_types::{SqlState, UserError};

/// A refused value. Boxed where it is returned, since the good path is all that is hot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) state: SqlState,
    /// Follows `column "c": `.
    pub(crate) reason: String,
    pub(crate) hint: &'static str,
}

impl Fault {
    pub(crate) fn new(
        state: SqlState,
        reason: impl Into<String>,
        hint: &'static str,
    ) -> Box<Fault> {
        Box::new(Fault { state, reason: reason.into(), hint })
    }

    /// Bytes that are not what the wire type says: the planned type and the sent one differ, or a defect.
    pub(crate) fn malformed(bytes: &[u8]) -> Box<Fault> {
        let reason = format!("{} bytes are no value of the planned type", bytes.len());
        Fault::new(SqlState::DATA_CORRUPTED, reason, "")
    }

    pub(crate) fn in_column(self, name: &str) -> UserError {
        let error = UserError::new(self.state, format!("column \"{name}\": {}", self.reason));
        if self.hint.is_empty() { error } else { error.with_hint(self.hint) }
    }
}

/// `bytes` as the whole of a fixed-length value.
pub(crate) fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Box<Fault>> {
    bytes.try_into().map_err(|_| Fault::malformed(bytes))
}

/// The next `N` bytes, taken off `bytes`.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Box<Fault>> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or_else(|| Fault::malformed(bytes))?;
    *bytes = rest;
    Ok(*head)
}

/// The next length-prefixed value, `None` for NULL, taken off `bytes`.
pub(crate) fn take_value<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Box<Fault>> {
    let length = i32::from_be_bytes(take(bytes)?);
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let (value, rest) = bytes.split_at_checked(length).ok_or_else(|| Fault::malformed(bytes))?;
    *bytes = rest;
    Ok(Some(value))
}
