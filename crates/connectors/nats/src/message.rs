//! One message as a record: its place comes out of the subject to which it could be acknowledged.

use async_nats::{HeaderMap, Message};
use segue_records::Record;

use crate::settings::Settings;

/// Headers that say that a message stands for a removal.
const OPERATION: &str = "KV-Operation";
const MARKER: &str = "Nats-Marker-Reason";

/// What the server tells of a delivered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    /// How many messages the consumer was sent, with this one.
    pub(crate) delivery: u64,
    pub(crate) unix_ns: i64,
    /// How many more the stream has for the consumer.
    pub(crate) pending: u64,
}

impl Place {
    /// Reads `$JS.ACK.[domain.account.]stream.consumer.times.sequence.delivery.time.pending[.random]`.
    pub(crate) fn parse(reply: &str) -> Option<Place> {
        let rest = reply.strip_prefix("$JS.ACK.")?;
        let tokens = rest.split('.').count();
        let skipped = if tokens >= 9 { 5 } else { 3 };
        let mut tokens = rest.split('.').skip(skipped);
        Some(Place {
            sequence: tokens.next()?.parse().ok()?,
            delivery: tokens.next()?.parse().ok()?,
            unix_ns: tokens.next()?.parse().ok()?,
            pending: tokens.next()?.parse().ok()?,
        })
    }
}

/// A message with its place.
pub(crate) struct Placed<'a> {
    pub(crate) message: &'a Message,
    pub(crate) place: Place,
    pub(crate) settings: &'a Settings,
}

impl Placed<'_> {
    fn removes(&self) -> bool {
        let header = |headers: &HeaderMap, name| headers.get(name).map(|value| value.to_string());
        let marked = self.message.headers.as_ref().is_some_and(|headers| {
            headers.get(MARKER).is_some()
                || matches!(header(headers, OPERATION).as_deref(), Some("DEL" | "PURGE"))
        });
        marked || self.message.payload.is_empty()
    }
}

impl Record for Placed<'_> {
    fn key(&self) -> Option<&[u8]> {
        Some(self.settings.subjects.key_of(&self.message.subject).as_bytes())
    }

    fn payload(&self) -> Option<&[u8]> {
        let removes = self.settings.keyed && self.removes();
        (!removes).then_some(&self.message.payload)
    }

    fn offset(&self) -> Option<i64> {
        i64::try_from(self.place.sequence).ok()
    }

    fn write_offset(&self, to: &mut String) {
        to.push_str(&self.place.sequence.to_string());
    }

    fn timestamp_ms(&self) -> Option<i64> {
        Some(self.place.unix_ns.div_euclid(1_000_000))
    }

    /// By name, for the client keeps no other order; those of one name in theirs.
    fn each_header(&self, mut each: impl FnMut(&str, Option<&[u8]>)) {
        let Some(headers) = &self.message.headers else { return };
        let named = headers.iter().map(|(name, values)| (AsRef::<str>::as_ref(name), values));
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(name, _)| *name);
        for (name, values) in named {
            for value in values {
                each(name, Some(value.as_str().as_bytes()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_is_read_from_both_forms_of_the_subject() {
        let expected =
            Place { sequence: 7, delivery: 3, unix_ns: 1_700_000_000_000_000_001, pending: 2 };
        let short = "$JS.ACK.S.c.1.7.3.1700000000000000001.2";
        let long = "$JS.ACK.hub.ACC.S.c.1.7.3.1700000000000000001.2.rnd";
        assert_eq!(Place::parse(short), Some(expected));
        assert_eq!(Place::parse(long), Some(expected));
        assert_eq!(Place::parse("$JS.ACK.S.c.1.7"), None);
        assert_eq!(Place::parse("_INBOX.x"), None);
    }
}
