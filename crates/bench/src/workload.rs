//! The workload: orders as JSON of about 250 bytes and 8 fields, the same for the same seed on every machine.

use std::io::Write as _;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use segue_types::SqlType;

/// How many customers there are.
pub(crate) const CUSTOMERS: u64 = 1_000_000;
/// The declared columns of an order.
pub(crate) const COLUMNS: &str = "order_id BIGINT, customer BIGINT, product BIGINT, amount DOUBLE PRECISION, \
     quantity INTEGER, status VARCHAR, updated_at TIMESTAMPTZ, note VARCHAR";
/// Filter and project: one order in eight, four columns.
pub(crate) const Q1: &str = "SELECT order_id, customer, product, amount FROM orders \
     WHERE status = 'paid' AND amount < 750";
/// The declared columns of a customer.
pub(crate) const CUSTOMER_COLUMNS: &str = "customer BIGINT, name VARCHAR, region VARCHAR";
/// Each order with its customer.
pub(crate) const Q3: &str = "SELECT o.order_id, o.customer, c.name, c.region, o.amount \
     FROM orders o JOIN customers c ON o.customer = c.customer";
/// One group a region over that.
pub(crate) const Q4: &str = "SELECT c.region, COUNT(*) AS orders, SUM(o.amount) AS amount \
     FROM orders o JOIN customers c ON o.customer = c.customer GROUP BY c.region";
/// How many regions there are.
pub(crate) const REGIONS: usize = 20;
/// The columns that Q1 reads, as places among [`COLUMNS`].
pub(crate) const Q1_COLUMNS: &[usize] = &[0, 1, 2, 3, 5];
/// One group a customer.
pub(crate) const Q2: &str = "SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount, \
     AVG(quantity) AS quantity FROM orders GROUP BY customer";
pub(crate) const Q2_COLUMNS: &[usize] = &[1, 3, 4];

const STATUSES: [&str; 6] = ["new", "paid", "packed", "shipped", "returned", "cancelled"];

/// Orders as JSON, one a line, and the truth about them.
pub(crate) struct Orders {
    pub(crate) lines: Vec<u8>,
    pub(crate) rows: usize,
    /// How many rows Q1 has.
    pub(crate) q1_rows: usize,
    /// How many groups Q2 has.
    pub(crate) q2_rows: usize,
}

/// A splitmix64 sequence.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// `n` random letters and digits, eight from each number.
    fn text(&mut self, into: &mut Vec<u8>, n: usize) {
        const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";
        let mut bits = 0;
        for i in 0..n {
            if i % 8 == 0 {
                bits = self.next();
            }
            into.push(LETTERS[(bits & 31) as usize]);
            bits >>= 5;
        }
    }
}

impl Orders {
    /// The first `rows` orders.
    pub(crate) fn generate(rows: usize) -> Orders {
        let mut random = Random(42);
        let mut lines = Vec::with_capacity(rows * 256);
        let mut seen = vec![false; CUSTOMERS as usize];
        let (mut q1_rows, mut q2_rows) = (0, 0);
        for order in 0..rows {
            let customer = random.below(CUSTOMERS);
            let cents = random.below(100_000);
            let status = STATUSES[random.below(6) as usize];
            q1_rows += usize::from(status == "paid" && cents < 75_000);
            q2_rows += usize::from(!std::mem::replace(&mut seen[customer as usize], true));
            let seconds = order / 1000;
            write!(
                lines,
                "{{\"order_id\":{order},\"customer\":{customer},\"product\":{},\"amount\":{}.{:02},\
                 \"quantity\":{},\"status\":\"{status}\",\
                 \"updated_at\":\"2024-01-{:02}T{:02}:{:02}:{:02}.{:03}Z\",\"note\":\"",
                random.below(5000),
                cents / 100,
                cents % 100,
                1 + random.below(9),
                1 + seconds / 86_400 % 28,
                seconds / 3600 % 24,
                seconds / 60 % 60,
                seconds % 60,
                order % 1000,
            )
            .expect("a vector takes what is written");
            random.text(&mut lines, 100);
            lines.extend_from_slice(b"\"}\n");
        }
        Orders { lines, rows, q1_rows, q2_rows }
    }

    /// Every record, without its newline.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.lines.as_slice();
        std::iter::from_fn(move || {
            let end = memchr::memchr(b'\n', rest)?;
            let record = &rest[..end];
            rest = &rest[end + 1..];
            Some(record)
        })
    }
}

/// Every customer as JSON, one a line.
pub(crate) fn customers() -> Vec<u8> {
    let mut random = Random(43);
    let mut lines = Vec::with_capacity(CUSTOMERS as usize * 72);
    for customer in 0..CUSTOMERS {
        let region = random.below(REGIONS as u64);
        writeln!(
            lines,
            "{{\"customer\":{customer},\"name\":\"Customer {customer}\",\"region\":\"region {region}\"}}"
        )
        .expect("a vector takes what is written");
    }
    lines
}

/// Orders of one column each, customers `first..first + n`, one a line.
pub(crate) fn one_order_each(first: u64, n: u64) -> Vec<u8> {
    let mut random = Random(first);
    let mut lines = Vec::with_capacity(n as usize * 56);
    for customer in first..first + n {
        let (cents, quantity) = (random.below(100_000), 1 + random.below(9));
        writeln!(
            lines,
            "{{\"customer\":{},\"amount\":{}.{:02},\"quantity\":{quantity}}}",
            customer % CUSTOMERS,
            cents / 100,
            cents % 100,
        )
        .expect("a vector takes what is written");
    }
    lines
}

/// [`COLUMNS`] as Arrow has them.
pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        SqlType::BigInt.field("order_id", true),
        SqlType::BigInt.field("customer", true),
        SqlType::BigInt.field("product", true),
        SqlType::Double.field("amount", true),
        SqlType::Integer.field("quantity", true),
        SqlType::Text.field("status", true),
        SqlType::Timestamptz.field("updated_at", true),
        SqlType::Text.field("note", true),
    ]))
}

#[cfg(test)]
mod tests {
    use super::{Orders, Q1_COLUMNS, schema};
    use segue_formats::{JsonDecoder, JsonOptions};

    #[test]
    fn every_order_is_a_record_of_the_schema_and_one_in_eight_is_q1s() {
        let orders = Orders::generate(8000);
        let mut decoder = JsonDecoder::new(schema(), Q1_COLUMNS, JsonOptions::default());
        for record in orders.records() {
            decoder.decode(record).expect("well formed");
        }
        assert_eq!(decoder.len(), 8000);
        let bytes = orders.lines.len() / orders.rows;
        assert!((230..270).contains(&bytes), "{bytes}");
        assert!((900..1100).contains(&orders.q1_rows), "{}", orders.q1_rows);
    }
}
