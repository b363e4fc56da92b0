//! The Nexmark queries that are SQL: without q6 (no engine's SQL has it), q10 (a sink), q11 (session windows), q12
//! (processing time), q13 (a side input); and some of the further ones.

/// Names and queries, over relations `person`, `auction` and `bid`.
pub const QUERIES: &[(&str, &str)] = &[
    ("q0", "SELECT auction, bidder, price, date_time FROM bid"),
    ("q1", "SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid"),
    ("q2", "SELECT auction, price FROM bid WHERE auction % 7 = 0"),
    ("q3", "SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')"),
    ("q4", "SELECT q.category, avg(CAST(q.final AS double precision)) AS avg
        FROM (SELECT max(b.price) AS final, a.category FROM auction a, bid b
            WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) q
        GROUP BY q.category"),
    ("q5", "SELECT auctions.auction, auctions.num FROM
            (SELECT bid.auction, count(*) AS num, window_start AS starttime
                FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
                GROUP BY window_start, bid.auction) AS auctions
        JOIN (SELECT max(counts.num) AS maxn, counts.starttime_c FROM
                (SELECT count(*) AS num, window_start AS starttime_c
                    FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
                    GROUP BY bid.auction, window_start) AS counts
                GROUP BY counts.starttime_c) AS maxbids
        ON auctions.starttime = maxbids.starttime_c AND auctions.num >= maxbids.maxn"),
    ("q7", "SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b
        JOIN (SELECT max(price) AS maxprice, window_end AS date_time
            FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_end) b1
        ON b.price = b1.maxprice
        WHERE b.date_time BETWEEN b1.date_time - INTERVAL '10' SECOND AND b1.date_time"),
    ("q8", "SELECT p.id, p.name, p.starttime
        FROM (SELECT id, name, window_start AS starttime, window_end AS endtime
            FROM TUMBLE(person, date_time, INTERVAL '10' SECOND) GROUP BY id, name, window_start, window_end) p
        JOIN (SELECT seller, window_start AS starttime, window_end AS endtime
            FROM TUMBLE(auction, date_time, INTERVAL '10' SECOND) GROUP BY seller, window_start, window_end) a
        ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime"),
    ("q9", "SELECT id, item_name, reserve, auction, bidder, price, bid_time FROM
            (SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_time,
                row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC) AS rownum
            FROM auction a, bid b WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) AS best
        WHERE rownum <= 1"),
    ("q14", "SELECT auction, bidder, 0.908 * price AS price,
            CASE WHEN extract(hour FROM date_time) >= 8 AND extract(hour FROM date_time) <= 18 THEN 'dayTime'
                WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime'
                ELSE 'otherTime' END AS bid_time,
            date_time, length(url) - length(replace(url, 'e', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 500 AND 0.908 * price < 5000"),
    ("q15", "SELECT date_trunc('day', date_time) AS day, count(*) AS total_bids,
            count(*) FILTER (WHERE price < 1000) AS rank1_bids,
            count(*) FILTER (WHERE price >= 1000 AND price < 5000) AS rank2_bids,
            count(DISTINCT bidder) AS total_bidders, count(DISTINCT bidder) FILTER (WHERE price < 1000) AS rank1_bidders,
            count(DISTINCT auction) AS total_auctions,
            count(DISTINCT auction) FILTER (WHERE price >= 5000) AS rank3_auctions
        FROM bid GROUP BY date_trunc('day', date_time)"),
    ("q16", "SELECT channel, date_trunc('day', date_time) AS day, max(date_trunc('minute', date_time)) AS minute,
            count(*) AS total_bids, count(DISTINCT bidder) AS total_bidders,
            count(DISTINCT bidder) FILTER (WHERE price >= 5000) AS rank3_bidders
        FROM bid GROUP BY channel, date_trunc('day', date_time)"),
    ("q17", "SELECT auction, date_trunc('day', date_time) AS day, count(*) AS total_bid,
            count(*) FILTER (WHERE price < 1000) AS rank1_bids, min(price) AS min_price, max(price) AS max_price,
            avg(CAST(price AS double precision)) AS avg_price, CAST(sum(price) AS bigint) AS sum_price
        FROM bid GROUP BY auction, date_trunc('day', date_time)"),
    ("q18", "SELECT auction, bidder, price, channel, date_time FROM
            (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS rank_number FROM bid)
            AS latest
        WHERE rank_number <= 1"),
    ("q19", "SELECT auction, bidder, price, date_time, rank_number::bigint AS rank_number FROM
            (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS rank_number FROM bid)
            AS best
        WHERE rank_number <= 10"),
    ("q20", "SELECT auction, bidder, price, bid.date_time AS bid_time, item_name, reserve, seller, category
        FROM bid INNER JOIN auction ON bid.auction = auction.id WHERE auction.category = 10"),
    ("q21", "SELECT auction, bidder, price, channel,
            CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
                WHEN lower(channel) = 'facebook' THEN '2' ELSE '3' END AS channel_id
        FROM bid WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu')"),
    ("q22", "SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2
        FROM bid"),
    ("q101", "SELECT a.id, a.item_name, b.max_price FROM auction a
        LEFT JOIN (SELECT max(price) AS max_price, auction FROM bid GROUP BY auction) AS b ON a.id = b.auction"),
    ("q102", "SELECT a.id, count(b.auction) AS bids FROM auction a JOIN bid b ON a.id = b.auction
        GROUP BY a.id HAVING count(b.auction) >= (SELECT count(*) / count(DISTINCT auction) FROM bid)"),
    ("q103", "SELECT id, item_name FROM auction WHERE id IN
        (SELECT auction FROM bid GROUP BY auction HAVING count(*) >= 8)"),
    ("q104", "SELECT id, item_name FROM auction WHERE id NOT IN
        (SELECT auction FROM bid GROUP BY auction HAVING count(*) < 6)"),
    ("q105", "SELECT a.id, count(b.auction) AS bids FROM auction a JOIN bid b ON a.id = b.auction
        GROUP BY a.id ORDER BY bids DESC, a.id LIMIT 20"),
];
