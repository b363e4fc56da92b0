//! The events: of fifty, one person, three auctions and 46 bids, 100 µs apart; half of the bids go to the ten newest
//! auctions. The same for the same number on every machine.

use std::io::Write as _;

use crate::workload::Random;

pub(super) const SECOND: i64 = 1_000_000;
/// Event time between two events.
const STEP_US: i64 = 100;

/// One of the three streams.
pub(super) struct Stream {
    pub(super) name: &'static str,
    pub(super) columns: &'static str,
}

pub(super) const STREAMS: &[Stream] = &[
    Stream {
        name: "person",
        columns: "id BIGINT, name VARCHAR, email_address VARCHAR, city VARCHAR, state VARCHAR, date_time TIMESTAMP",
    },
    Stream {
        name: "auction",
        columns: "id BIGINT, item_name VARCHAR, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, \
                  expires TIMESTAMP, seller BIGINT, category BIGINT",
    },
    Stream {
        name: "bid",
        columns: "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, date_time TIMESTAMP",
    },
];

pub(super) struct Person {
    pub(super) id: i64,
    pub(super) state: &'static str,
    pub(super) at: i64,
}

pub(super) struct Auction {
    pub(super) id: i64,
    pub(super) seller: i64,
    pub(super) category: i64,
    pub(super) at: i64,
    pub(super) expires: i64,
}

pub(super) struct Bid {
    pub(super) auction: i64,
    pub(super) bidder: i64,
    pub(super) price: i64,
    pub(super) at: i64,
}

/// All events; times are microseconds since the first.
#[derive(Default)]
pub(super) struct Events {
    pub(super) persons: Vec<Person>,
    pub(super) auctions: Vec<Auction>,
    pub(super) bids: Vec<Bid>,
}

impl Events {
    pub(super) fn generate(count: usize) -> Events {
        let mut random = Random::seeded(7);
        let mut events = Events::default();
        for event in 0..count {
            let at = event as i64 * STEP_US;
            match event % 50 {
                0 => events.person(at, &mut random),
                1..4 => events.auction(at, &mut random),
                _ => events.bid(at, &mut random),
            }
        }
        events
    }

    fn person(&mut self, at: i64, random: &mut Random) {
        let state = ["OR", "ID", "CA", "AZ", "WA", "WY"][random.below(6) as usize];
        self.persons.push(Person { id: 1000 + self.persons.len() as i64, state, at });
    }

    fn auction(&mut self, at: i64, random: &mut Random) {
        let auction = Auction {
            id: 1000 + self.auctions.len() as i64,
            seller: recent(1000, self.persons.len(), 100, random),
            category: 10 + random.below(5) as i64,
            at,
            expires: at + (1 + random.below(20) as i64) * SECOND,
        };
        self.auctions.push(auction);
    }

    fn bid(&mut self, at: i64, random: &mut Random) {
        let among = if random.below(2) == 0 { 10 } else { 1000 };
        let bid = Bid {
            auction: recent(1000, self.auctions.len(), among, random),
            bidder: recent(1000, self.persons.len(), 1000, random),
            price: 100 + random.below(10_000_000) as i64,
            at,
        };
        self.bids.push(bid);
    }

    pub(super) fn count(&self) -> usize {
        self.persons.len() + self.auctions.len() + self.bids.len()
    }

    /// How many events a stream has.
    pub(super) fn rows(&self, stream: &str) -> usize {
        match stream {
            "person" => self.persons.len(),
            "auction" => self.auctions.len(),
            _ => self.bids.len(),
        }
    }

    /// A stream as JSON, one event a line.
    pub(super) fn lines(&self, stream: &str) -> Vec<u8> {
        let mut lines = Vec::with_capacity(self.rows(stream) * 200);
        let written: std::io::Result<()> = match stream {
            "person" => self.persons.iter().try_for_each(|person| person.write(&mut lines)),
            "auction" => self.auctions.iter().try_for_each(|auction| auction.write(&mut lines)),
            _ => self.bids.iter().try_for_each(|bid| bid.write(&mut lines)),
        };
        written.expect("a vector takes what is written");
        lines
    }
}

/// One of the last `among` of `count` ids from `first` on.
fn recent(first: i64, count: usize, among: u64, random: &mut Random) -> i64 {
    let back = random.below(among.min(count as u64));
    first + count as i64 - 1 - back as i64
}

/// As a timestamp.
struct At(i64);

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.0 / SECOND, self.0 % SECOND);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "2026-01-01T{hour:02}:{minute:02}:{second:02}.{micros:06}")
    }
}

impl Person {
    fn write(&self, lines: &mut Vec<u8>) -> std::io::Result<()> {
        let Person { id, state, at } = self;
        writeln!(
            lines,
            "{{\"id\":{id},\"name\":\"Name {id}\",\"email_address\":\"{id}@example.com\",\"city\":\"City {}\",\
             \"state\":\"{state}\",\"date_time\":\"{}\",\"extra\":\"of no interest to any query here\"}}",
            id % 100,
            At(*at)
        )
    }
}

impl Auction {
    fn write(&self, lines: &mut Vec<u8>) -> std::io::Result<()> {
        let Auction { id, seller, category, at, expires } = self;
        writeln!(
            lines,
            "{{\"id\":{id},\"item_name\":\"item {id}\",\"description\":\"a thing that somebody wants to sell\",\
             \"initial_bid\":{},\"reserve\":{},\"date_time\":\"{}\",\"expires\":\"{}\",\"seller\":{seller},\
             \"category\":{category},\"extra\":\"of no interest, and longer than that of the others\"}}",
            id % 500,
            500 + id % 400,
            At(*at),
            At(*expires)
        )
    }
}

impl Bid {
    fn write(&self, lines: &mut Vec<u8>) -> std::io::Result<()> {
        let Bid { auction, bidder, price, at } = self;
        let channel = ["Google", "Facebook", "Baidu", "Apple"][(bidder % 4) as usize];
        writeln!(
            lines,
            "{{\"auction\":{auction},\"bidder\":{bidder},\"price\":{price},\"channel\":\"{channel}\",\
             \"url\":\"https://www.nexmark.com/item{auction}/{bidder}.html\",\"date_time\":\"{}\",\
             \"extra\":\"of no interest\"}}",
            At(*at)
        )
    }
}
