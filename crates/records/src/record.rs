//! What a log's connector tells of one record.

/// One record. A connector implements it for its client's message; calls are resolved at compile time.
pub trait Record {
    fn key(&self) -> Option<&[u8]>;

    /// The value; `None` where the record removes its key.
    fn payload(&self) -> Option<&[u8]>;

    /// Where the record is, in a log that numbers its records.
    fn offset(&self) -> Option<i64>;

    /// Where the record is, as text.
    fn write_offset(&self, to: &mut String);

    fn timestamp_ms(&self) -> Option<i64>;

    /// Calls `each` with every header, in their order.
    fn each_header(&self, each: impl FnMut(&str, Option<&[u8]>));
}
