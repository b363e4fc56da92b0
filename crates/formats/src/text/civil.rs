//! Dates of the proleptic Gregorian calendar as days since 1970.

/// Days since 1970-01-01. `None` for a day that does not exist. Year 0 is 1 BC.
#[inline]
pub(super) fn days(year: i64, month: u32, day: u32) -> Option<i32> {
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    // The year starts in March here, so that the leap day is its last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let month_of_year = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_of_year + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
}

#[inline]
fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate};

    use super::days;

    #[test]
    fn days_agree_with_chrono_over_eight_centuries() {
        let first = NaiveDate::from_ymd_opt(1600, 1, 1).expect("a date");
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).expect("a date");
        for date in first.iter_days().take(292_194) {
            let ours = days(i64::from(date.year()), date.month(), date.day());
            assert_eq!(ours.map(i64::from), Some((date - epoch).num_days()), "{date}");
        }
        assert_eq!(days(2023, 2, 29), None);
        assert_eq!(days(2023, 4, 31), None);
        assert_eq!(days(2023, 13, 1), None);
    }
}
