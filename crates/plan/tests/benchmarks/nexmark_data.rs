//! A small Nexmark: people, the auctions that they open, and bids.

use super::tables::{Kind, Numbers, Table, number, text};

/// 2026-01-01 in microseconds since 1970.
const START: i64 = 1_767_225_600_000_000;
const SECOND: i64 = 1_000_000;

pub fn tables() -> Vec<Table> {
    let mut numbers = Numbers::seeded(11);
    vec![person(&mut numbers), auction(&mut numbers), bid(&mut numbers)]
}

fn person(numbers: &mut Numbers) -> Table {
    let mut row = |id: i64| {
        let name = numbers.of(&["Peter Jones", "Kate Smith", "Julie White"]);
        vec![
            number(id),
            text(name),
            text(format!("{id}@example.com")),
            text(numbers.of(&["Phoenix", "Boise", "Portland"])),
            text(numbers.of(&["OR", "ID", "CA", "AZ"])),
            number(START + id * 4 * SECOND),
        ]
    };
    let rows = (1..=20).map(&mut row).collect();
    let columns = &[
        ("id", Kind::Int),
        ("name", Kind::Text),
        ("email_address", Kind::Text),
        ("city", Kind::Text),
        ("state", Kind::Text),
        ("date_time", Kind::Time),
    ];
    Table { name: "person", columns, rows }
}

fn auction(numbers: &mut Numbers) -> Table {
    let mut row = |id: i64| {
        let opened = START + id * SECOND;
        vec![
            number(id),
            text(numbers.of(&["vase", "clock", "lamp"])),
            number(numbers.within(1, 500)),
            number(numbers.within(500, 900)),
            number(opened),
            number(opened + numbers.within(5, 60) * SECOND),
            number(numbers.within(1, 20)),
            number(numbers.within(8, 12)),
        ]
    };
    let rows = (1..=60).map(&mut row).collect();
    let columns = &[
        ("id", Kind::Int),
        ("item_name", Kind::Text),
        ("initial_bid", Kind::Int),
        ("reserve", Kind::Int),
        ("date_time", Kind::Time),
        ("expires", Kind::Time),
        ("seller", Kind::Int),
        ("category", Kind::Int),
    ];
    Table { name: "auction", columns, rows }
}

fn bid(numbers: &mut Numbers) -> Table {
    let mut row = |place: i64| {
        let channel = numbers.of(&["Apple", "Google", "Facebook", "Baidu"]);
        vec![
            number(numbers.within(1, 60)),
            number(numbers.within(1, 20)),
            number(numbers.within(100, 10_000)),
            text(channel),
            text(format!("https://example.com/{channel}/item{place}/x")),
            // No two bids at one moment, so that the latest is one.
            number(START + place * SECOND / 4 + place),
        ]
    };
    let rows = (1..=400).map(&mut row).collect();
    let columns = &[
        ("auction", Kind::Int),
        ("bidder", Kind::Int),
        ("price", Kind::Int),
        ("channel", Kind::Text),
        ("url", Kind::Text),
        ("date_time", Kind::Time),
    ];
    Table { name: "bid", columns, rows }
}
