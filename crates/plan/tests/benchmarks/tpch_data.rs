//! A small TPC-H: the eight tables, with values chosen so that the queries find something.

use super::tables::{Kind, Numbers, Row, Table, number, text};

const REGIONS: &[&str] = &["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
const NATIONS: &[(&str, i64)] = &[
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("CHINA", 2),
    ("SAUDI ARABIA", 4),
    ("KENYA", 0),
];
const TYPES: &[&str] =
    &["ECONOMY ANODIZED STEEL", "PROMO BRUSHED COPPER", "SMALL PLATED BRASS", "LARGE POLISHED TIN"];
const NAMES: &[&str] =
    &["forest green metallic", "lavender spring chocolate", "forest blush thistle"];
const CONTAINERS: &[&str] = &["SM CASE", "MED BOX", "LG PACK", "MED BAG"];
const MODES: &[&str] = &["MAIL", "SHIP", "AIR", "AIR REG", "RAIL", "TRUCK"];
const SEGMENTS: &[&str] = &["BUILDING", "AUTOMOBILE", "MACHINERY"];
const PRIORITIES: &[&str] = &["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];

/// Days from 1970 to 1992-01-01, and how many the orders are spread over.
const FIRST_DAY: i64 = 8035;
const DAYS: i64 = 2400;

pub fn tables() -> Vec<Table> {
    let mut numbers = Numbers::seeded(7);
    let (orders, lines) = orders_and_lines(&mut numbers);
    vec![
        region(),
        nation(),
        supplier(&mut numbers),
        customer(&mut numbers),
        part(&mut numbers),
        partsupp(&mut numbers),
        orders,
        lines,
    ]
}

fn table(name: &'static str, columns: &'static [(&'static str, Kind)], rows: Vec<Row>) -> Table {
    Table { name, columns, rows }
}

fn region() -> Table {
    let rows = REGIONS.iter().enumerate().map(|(key, name)| vec![number(key as i64), text(*name)]);
    table("region", &[("r_regionkey", Kind::Int), ("r_name", Kind::Text)], rows.collect())
}

fn nation() -> Table {
    let row = |(key, (name, region)): (usize, &(&str, i64))| {
        vec![number(key as i64), text(*name), number(*region)]
    };
    let rows = NATIONS.iter().enumerate().map(row).collect();
    let columns = &[("n_nationkey", Kind::Int), ("n_name", Kind::Text), ("n_regionkey", Kind::Int)];
    table("nation", columns, rows)
}

fn supplier(numbers: &mut Numbers) -> Table {
    let mut row = |key: i64| {
        let comment = numbers.of(&["quiet deposits", "Customer bold Complaints", "even ideas"]);
        vec![
            number(key),
            text(format!("Supplier#{key}")),
            text(format!("street {key}")),
            number(key % 8),
            text(format!("{}-555-{key}", 10 + key % 8)),
            number(numbers.within(-90_000, 900_000)),
            text(comment),
        ]
    };
    let rows = (1..=16).map(&mut row).collect();
    let columns = &[
        ("s_suppkey", Kind::Int),
        ("s_name", Kind::Text),
        ("s_address", Kind::Text),
        ("s_nationkey", Kind::Int),
        ("s_phone", Kind::Text),
        ("s_acctbal", Kind::Money),
        ("s_comment", Kind::Text),
    ];
    table("supplier", columns, rows)
}

fn customer(numbers: &mut Numbers) -> Table {
    let mut row = |key: i64| {
        vec![
            number(key),
            text(format!("Customer#{key}")),
            text(format!("road {key}")),
            number(numbers.within(0, 7)),
            text(format!("{}-555-{key}", numbers.within(10, 17))),
            number(numbers.within(-90_000, 900_000)),
            text(numbers.of(SEGMENTS)),
            text(format!("comment {key}")),
        ]
    };
    let rows = (1..=30).map(&mut row).collect();
    let columns = &[
        ("c_custkey", Kind::Int),
        ("c_name", Kind::Text),
        ("c_address", Kind::Text),
        ("c_nationkey", Kind::Int),
        ("c_phone", Kind::Text),
        ("c_acctbal", Kind::Money),
        ("c_mktsegment", Kind::Text),
        ("c_comment", Kind::Text),
    ];
    table("customer", columns, rows)
}

fn part(numbers: &mut Numbers) -> Table {
    let mut row = |key: i64| {
        vec![
            number(key),
            text(numbers.of(NAMES)),
            text(format!("Manufacturer#{}", key % 3)),
            text(numbers.of(&["Brand#12", "Brand#23", "Brand#34"])),
            text(numbers.of(TYPES)),
            number(numbers.within(1, 15)),
            text(numbers.of(CONTAINERS)),
            number(numbers.within(90_000, 200_000)),
        ]
    };
    let rows = (1..=24).map(&mut row).collect();
    let columns = &[
        ("p_partkey", Kind::Int),
        ("p_name", Kind::Text),
        ("p_mfgr", Kind::Text),
        ("p_brand", Kind::Text),
        ("p_type", Kind::Text),
        ("p_size", Kind::Int),
        ("p_container", Kind::Text),
        ("p_retailprice", Kind::Money),
    ];
    table("part", columns, rows)
}

/// Four suppliers for each part, those of `supplier_of`.
fn partsupp(numbers: &mut Numbers) -> Table {
    let mut rows = Vec::new();
    for part in 1..=24 {
        for place in 0..4 {
            rows.push(vec![
                number(part),
                number(supplier_of(part, place)),
                number(numbers.within(1, 900)),
                number(numbers.within(100, 100_000)),
            ]);
        }
    }
    let columns = &[
        ("ps_partkey", Kind::Int),
        ("ps_suppkey", Kind::Int),
        ("ps_availqty", Kind::Int),
        ("ps_supplycost", Kind::Money),
    ];
    table("partsupp", columns, rows)
}

fn supplier_of(part: i64, place: i64) -> i64 {
    (part + place * 5) % 16 + 1
}

fn orders_and_lines(numbers: &mut Numbers) -> (Table, Table) {
    let (mut orders, mut lines) = (Vec::new(), Vec::new());
    for key in 1..=150 {
        let day = FIRST_DAY + numbers.within(0, DAYS);
        let count = numbers.within(1, 5);
        for line in 1..=count {
            lines.push(line_row(numbers, key, line, day));
        }
        let comment = numbers.of(&["special packages requests", "furious deposits", "plain"]);
        orders.push(vec![
            number(key),
            number(numbers.within(1, 24)),
            text(numbers.of(&["F", "O", "P"])),
            number(numbers.within(100_000, 30_000_000)),
            number(day),
            text(numbers.of(PRIORITIES)),
            number(0),
            text(comment),
        ]);
    }
    let order_columns = &[
        ("o_orderkey", Kind::Int),
        ("o_custkey", Kind::Int),
        ("o_orderstatus", Kind::Text),
        ("o_totalprice", Kind::Money),
        ("o_orderdate", Kind::Date),
        ("o_orderpriority", Kind::Text),
        ("o_shippriority", Kind::Int),
        ("o_comment", Kind::Text),
    ];
    let line_columns = &[
        ("l_orderkey", Kind::Int),
        ("l_partkey", Kind::Int),
        ("l_suppkey", Kind::Int),
        ("l_linenumber", Kind::Int),
        ("l_quantity", Kind::Money),
        ("l_extendedprice", Kind::Money),
        ("l_discount", Kind::Money),
        ("l_tax", Kind::Money),
        ("l_returnflag", Kind::Text),
        ("l_linestatus", Kind::Text),
        ("l_shipdate", Kind::Date),
        ("l_commitdate", Kind::Date),
        ("l_receiptdate", Kind::Date),
        ("l_shipinstruct", Kind::Text),
        ("l_shipmode", Kind::Text),
    ];
    (table("orders", order_columns, orders), table("lineitem", line_columns, lines))
}

fn line_row(numbers: &mut Numbers, order: i64, line: i64, day: i64) -> Row {
    let part = numbers.within(1, 24);
    let shipped = day + numbers.within(1, 120);
    vec![
        number(order),
        number(part),
        number(supplier_of(part, numbers.within(0, 3))),
        number(line),
        number(numbers.within(1, 50) * 100),
        number(numbers.within(90_000, 9_000_000)),
        number(numbers.within(0, 10)),
        number(numbers.within(0, 8)),
        text(numbers.of(&["R", "A", "N"])),
        text(numbers.of(&["O", "F"])),
        number(shipped),
        number(day + numbers.within(20, 100)),
        number(shipped + numbers.within(1, 30)),
        text(numbers.of(&["DELIVER IN PERSON", "NONE"])),
        text(numbers.of(MODES)),
    ]
}
