//! A message as a record of a log.

use std::fmt::Write;

use segue_connect::{ConnectError, ReadConfig};
use segue_records::{Origin, Record, Records};

use crate::native::Message;

impl Record for Message<'_> {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        Message::key(self)
    }

    #[inline]
    fn payload(&self) -> Option<&[u8]> {
        Message::payload(self)
    }

    fn offset(&self) -> Option<i64> {
        Some(Message::offset(self))
    }

    fn write_offset(&self, to: &mut String) {
        write!(to, "{}", Message::offset(self)).expect("a string takes all");
    }

    fn timestamp_ms(&self) -> Option<i64> {
        Message::timestamp_ms(self)
    }

    fn each_header(&self, mut each: impl FnMut(&str, Option<&[u8]>)) {
        for (name, value) in self.headers() {
            each(&name.to_string_lossy(), value);
        }
    }
}

/// Checks that the configuration can be decoded, and makes an empty collection for a partition.
pub(crate) fn records(
    config: &ReadConfig,
    projection: &[usize],
    partition: i32,
) -> Result<Records, ConnectError> {
    let origin = Origin { connector: "kafka", partition: &partition.to_string() };
    Records::new(config, projection, origin)
}
