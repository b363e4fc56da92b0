//! The testkit as a tool: topics and records for slt files and examples, and servers to play with.
//!
//! ```text
//! segue-testkit services FILE                    PostgreSQL and Kafka until stdin ends; their addresses go to FILE
//! segue-testkit BOOTSTRAP topic NAME PARTITIONS [KEY=VALUE …]
//! segue-testkit BOOTSTRAP drop-topic NAME
//! segue-testkit BOOTSTRAP trim NAME PARTITION OFFSET
//! segue-testkit BOOTSTRAP produce NAME [PARTITION]     one record a line: KEY<TAB>VALUE, or VALUE; KEY<TAB> deletes
//! segue-testkit BOOTSTRAP transaction NAME commit|abort [PARTITION]     the same lines, in one transaction
//! ```

use std::io::{BufRead, Read, Write};

use segue_testkit::kafka::{KafkaClient, KafkaServer, Record};
use segue_testkit::postgres::PostgresServer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["services", file] => services(file),
        [bootstrap, "topic", name, partitions, configs @ ..] => {
            let configs: Vec<(&str, &str)> =
                configs.iter().filter_map(|config| config.split_once('=')).collect();
            KafkaClient::new(bootstrap).create_topic(name, partitions.parse()?, &configs);
            Ok(())
        }
        [bootstrap, "drop-topic", name] => {
            KafkaClient::new(bootstrap).delete_topic(name);
            Ok(())
        }
        [bootstrap, "trim", name, partition, offset] => {
            let client = KafkaClient::new(bootstrap);
            client.delete_records(name, partition.parse()?, offset.parse()?);
            Ok(())
        }
        [bootstrap, "produce", name, partition @ ..] => {
            let lines = lines()?;
            let records = records(&lines, partition.first())?;
            KafkaClient::new(bootstrap).produce_all(name, records);
            Ok(())
        }
        [bootstrap, "transaction", name, end, partition @ ..] => {
            let lines = lines()?;
            let client = KafkaClient::new(bootstrap);
            let mut transaction = client.begin(name, &format!("testkit-{name}"));
            transaction.write(records(&lines, partition.first())?);
            match *end {
                "commit" => transaction.commit(),
                "abort" => transaction.abort(),
                other => return Err(format!("commit or abort, not {other}").into()),
            }
            Ok(())
        }
        _ => Err("see the head of crates/testkit/src/main.rs for the commands".into()),
    }
}

fn lines() -> std::io::Result<Vec<String>> {
    std::io::stdin().lock().lines().collect()
}

fn records<'a>(
    lines: &'a [String],
    partition: Option<&&str>,
) -> Result<Vec<Record<'a>>, std::num::ParseIntError> {
    let partition = partition.map_or(Ok(0), |partition| partition.parse())?;
    let record = |line: &'a String| match line.split_once('\t') {
        Some((key, "")) => Record::tombstone(key),
        Some((key, value)) => Record::value(value).key(key),
        None => Record::value(line.as_str()),
    };
    Ok(lines.iter().map(|line| record(line).partition(partition)).collect())
}

/// Runs both servers until stdin ends.
fn services(file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let postgres = PostgresServer::start();
    let kafka = KafkaServer::start();
    let addresses =
        format!("export POSTGRES={}\nexport KAFKA={}\n", postgres.url(), kafka.bootstrap());
    std::fs::File::create(file)?.write_all(addresses.as_bytes())?;
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest)?;
    Ok(())
}
