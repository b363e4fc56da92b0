//! How many rows each query has, computed without any engine.

use std::collections::{BTreeMap, BTreeSet};

use super::events::{Auction, Bid, Events, SECOND};

/// The rows of the query of this name.
///
/// # Panics
/// If the bench does not run it.
pub(super) fn rows(query: &str, events: &Events) -> usize {
    let Events { persons, auctions, bids } = events;
    match query {
        "q0" | "q1" => bids.len(),
        "q2" => bids.iter().filter(|bid| bid.auction % 7 == 0).count(),
        "q3" => {
            let of_interest = persons.iter().filter(|p| ["OR", "ID", "CA"].contains(&p.state));
            let of_interest = of_interest.map(|person| person.id).collect::<BTreeSet<_>>();
            let is_found = |a: &&Auction| a.category == 10 && of_interest.contains(&a.seller);
            auctions.iter().filter(is_found).count()
        }
        "q4" => {
            let category = |bid: &Bid| auction(events, bid).category;
            in_time(events).map(category).collect::<BTreeSet<_>>().len()
        }
        "q5" => busiest(bids),
        "q7" => dearest(bids),
        "q8" => {
            let window = |at: i64| at / (10 * SECOND);
            let selling = auctions.iter().map(|auction| (auction.seller, window(auction.at)));
            let selling = selling.collect::<BTreeSet<_>>();
            persons.iter().filter(|p| selling.contains(&(p.id, window(p.at)))).count()
        }
        "q9" => in_time(events).map(|bid| bid.auction).collect::<BTreeSet<_>>().len(),
        // All events are of one day.
        "q17" => bids.iter().map(|bid| bid.auction).collect::<BTreeSet<_>>().len(),
        "q18" => bids.iter().map(|bid| (bid.bidder, bid.auction)).collect::<BTreeSet<_>>().len(),
        "q20" => bids.iter().filter(|bid| auction(events, bid).category == 10).count(),
        _ => panic!("the bench does not run {query}"),
    }
}

fn auction<'a>(events: &'a Events, bid: &Bid) -> &'a Auction {
    &events.auctions[(bid.auction - 1000) as usize]
}

/// Bids while their auction was open.
fn in_time(events: &Events) -> impl Iterator<Item = &Bid> {
    events.bids.iter().filter(|bid| {
        let auction = auction(events, bid);
        (auction.at..=auction.expires).contains(&bid.at)
    })
}

/// The auctions with most bids of each window of ten seconds, one every two.
fn busiest(bids: &[Bid]) -> usize {
    let mut counts: BTreeMap<i64, BTreeMap<i64, usize>> = BTreeMap::new();
    for bid in bids {
        let last = bid.at / (2 * SECOND);
        for window in last - 4..=last {
            *counts.entry(window).or_default().entry(bid.auction).or_default() += 1;
        }
    }
    let most = |auctions: &BTreeMap<i64, usize>| {
        let max = auctions.values().max().expect("a window has a bid");
        auctions.values().filter(|count| *count == max).count()
    };
    counts.values().map(most).sum()
}

/// The dearest bids of each ten seconds, those at the very end of them included.
fn dearest(bids: &[Bid]) -> usize {
    let width = 10 * SECOND;
    let mut max: BTreeMap<i64, i64> = BTreeMap::new();
    let mut times: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for bid in bids {
        let dearest = max.entry(bid.at / width).or_default();
        *dearest = bid.price.max(*dearest);
        times.entry(bid.price).or_default().push(bid.at);
    }
    let found = |(window, price): (&i64, &i64)| {
        let range = window * width..=(window + 1) * width;
        times[price].iter().filter(|at| range.contains(at)).count()
    };
    max.iter().map(found).sum()
}
