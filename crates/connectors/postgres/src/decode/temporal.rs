//! Dates, times and intervals of the wire (counted from 2000-01-01) → Arrow's (counted from 1970-01-01).
//!
//! Invariant: ±infinity, which Arrow has not, is refused by its name and never becomes a finite date.

use arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use segue_types::SqlState;

use super::fault::{Fault, fixed, take};

const DAYS_1970_TO_2000: i32 = 10_957;
const US_1970_TO_2000: i64 = 946_684_800_000_000;
const US_PER_DAY: i64 = 86_400_000_000;
const NS_PER_US: i64 = 1000;

/// Days since 1970.
pub(crate) fn date(bytes: &[u8]) -> Result<i32, Box<Fault>> {
    let days = i32::from_be_bytes(fixed(bytes)?);
    match days {
        i32::MAX => Err(infinite("date", "infinity")),
        i32::MIN => Err(infinite("date", "-infinity")),
        _ => days.checked_add(DAYS_1970_TO_2000).ok_or_else(|| out_of_range("date")),
    }
}

/// Microseconds since midnight.
pub(crate) fn time(bytes: &[u8]) -> Result<i64, Box<Fault>> {
    let us = i64::from_be_bytes(fixed(bytes)?);
    if us == US_PER_DAY {
        return Err(Fault::new(
            SqlState::DATETIME_OVERFLOW,
            "time 24:00:00 has no place in a time column",
            "Cast the column to interval or text in the query and declare it so.",
        ));
    }
    Ok(us)
}

/// Microseconds since 1970, for `timestamp` and `timestamptz` alike.
pub(crate) fn timestamp(bytes: &[u8]) -> Result<i64, Box<Fault>> {
    let us = i64::from_be_bytes(fixed(bytes)?);
    match us {
        i64::MAX => Err(infinite("timestamp", "infinity")),
        i64::MIN => Err(infinite("timestamp", "-infinity")),
        _ => us.checked_add(US_1970_TO_2000).ok_or_else(|| out_of_range("timestamp")),
    }
}

/// Months, days and nanoseconds, each with its own sign as PostgreSQL has them.
pub(crate) fn interval(bytes: &[u8]) -> Result<IntervalMonthDayNano, Box<Fault>> {
    if bytes.len() != 16 {
        return Err(Fault::malformed(bytes));
    }
    let mut rest = bytes;
    let us = i64::from_be_bytes(take(&mut rest)?);
    let days = i32::from_be_bytes(take(&mut rest)?);
    let months = i32::from_be_bytes(take(&mut rest)?);
    match (us, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => return Err(infinite("interval", "infinity")),
        (i64::MIN, i32::MIN, i32::MIN) => return Err(infinite("interval", "-infinity")),
        _ => {}
    }
    let ns = us.checked_mul(NS_PER_US).ok_or_else(|| out_of_range("interval"))?;
    Ok(IntervalMonthDayNanoType::make_value(months, days, ns))
}

fn infinite(kind: &str, name: &str) -> Box<Fault> {
    Fault::new(
        SqlState::DATETIME_OVERFLOW,
        format!("{kind} {name} has no place in a {kind} column"),
        "Replace it in the query, as in nullif(c, 'infinity'), or filter such rows.",
    )
}

fn out_of_range(kind: &str) -> Box<Fault> {
    Fault::new(
        SqlState::DATETIME_OVERFLOW,
        format!("a value is out of the range of {kind}"),
        "Filter such rows in the query, or cast the column to text and declare it so.",
    )
}

#[cfg(test)]
mod tests {
    use super::{US_1970_TO_2000, US_PER_DAY, date, interval, time, timestamp};
    use arrow::datatypes::IntervalMonthDayNanoType;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn interval_bytes(us: i64, days: i32, months: i32) -> Vec<u8> {
        let mut bytes = us.to_be_bytes().to_vec();
        bytes.extend(days.to_be_bytes());
        bytes.extend(months.to_be_bytes());
        bytes
    }

    #[test]
    fn the_epoch_moves_by_thirty_years() {
        assert_eq!(date(&0_i32.to_be_bytes()).ok(), Some(10_957));
        assert_eq!(date(&(-10_957_i32).to_be_bytes()).ok(), Some(0));
        assert_eq!(timestamp(&(-US_1970_TO_2000).to_be_bytes()).ok(), Some(0));
    }

    #[test]
    fn infinities_are_refused_by_their_names_and_the_last_day_overflows_loudly() {
        let refused = |result: Result<i64, Box<super::Fault>>| result.expect_err("refused").reason;
        assert!(refused(timestamp(&i64::MAX.to_be_bytes())).contains("timestamp infinity"));
        assert!(refused(timestamp(&i64::MIN.to_be_bytes())).contains("-infinity"));
        assert!(refused(timestamp(&(i64::MAX - 1).to_be_bytes())).contains("range"));
        assert!(refused(date(&i32::MAX.to_be_bytes()).map(i64::from)).contains("date infinity"));
        assert!(refused(time(&US_PER_DAY.to_be_bytes())).contains("24:00:00"));
        let endless = interval(&interval_bytes(i64::MAX, i32::MAX, i32::MAX)).expect_err("endless");
        assert!(endless.reason.contains("interval infinity"));
        assert!(interval(&interval_bytes(i64::MAX / 999, 0, 0)).is_err());
        assert!(interval(&[0; 15]).is_err());
    }

    proptest! {
        #[test]
        fn an_interval_keeps_its_three_parts(
            us in -(i64::MAX / 1000)..i64::MAX / 1000, days in any::<i32>(), months in any::<i32>(),
        ) {
            let value = interval(&interval_bytes(us, days, months)).expect("in range");
            prop_assert_eq!(IntervalMonthDayNanoType::to_parts(value), (months, days, us * 1000));
        }
    }
}
