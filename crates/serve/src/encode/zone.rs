//! The session's time zone: UTC without a lookup, or a named one.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};

/// A time zone as `SET timezone` names it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Zone {
    #[default]
    Utc,
    Named(Tz),
}

impl Zone {
    /// The zone of this name; `None` when nobody knows it.
    pub(crate) fn parse(name: &str) -> Option<Zone> {
        if ["utc", "gmt", "z", "etc/utc", "zulu"].contains(&name.to_ascii_lowercase().as_str()) {
            return Some(Zone::Utc);
        }
        segue_plan::dialect::time_zone(name).map(Zone::Named)
    }

    /// Seconds east of UTC at a moment.
    pub(super) fn offset_seconds(self, unix_us: i64) -> i32 {
        match self {
            Zone::Utc => 0,
            Zone::Named(zone) => DateTime::from_timestamp_micros(unix_us).map_or(0, |moment| {
                zone.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc()
            }),
        }
    }
}
