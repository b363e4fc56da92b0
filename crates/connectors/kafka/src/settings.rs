//! From a stage's options to the configuration of a librdkafka client.
//!
//! Invariant: what exactness hangs on (committed records only, no automatic reset, no automatic commit, ends
//! reported) is set here and cannot be overridden.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;
use segue_connect::{ConnectError, OptionSpec, ReadConfig};
use segue_types::{SqlState, UserError};

/// How often new partitions are looked for, in seconds.
const REFRESH: &str = "refresh.interval.sec";

/// What stands before the name of a client property.
const PREFIX: &str = "properties.";

const fn option(name: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { name, required: false, secret: false, doc }
}

const fn secret(name: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { name, required: false, secret: true, doc }
}

/// Every option of the connector.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "topic", required: true, secret: false, doc: "The topic to read." },
    option("properties.bootstrap.server", "Brokers to ask first, as host:port, comma-separated."),
    option("properties.bootstrap.servers", "Another spelling of properties.bootstrap.server."),
    option("properties.group.id", "A consumer group to which durable positions are committed."),
    option(REFRESH, "How often new partitions are looked for (default 5); they are read whole."),
    option("scan.startup.mode", "earliest or latest: another spelling of START AT."),
    option("scan.startup.timestamp.millis", "Another spelling of START AT TIMESTAMP."),
    secret("properties.sasl.password", "The password for PLAIN and SCRAM."),
    secret("properties.sasl.oauthbearer.client.secret", "The secret of an OAuth client."),
    secret("properties.sasl.oauthbearer.config", "The configuration of OAUTHBEARER."),
    secret("properties.ssl.key.password", "The passphrase of the private key."),
    secret("properties.ssl.key.pem", "The private key itself."),
    secret("properties.ssl.keystore.password", "The passphrase of the key store."),
    option("properties.*", "Any other property of librdkafka's consumer."),
];

/// Properties of our own making, for speed; a user may set others.
const DEFAULTS: &[(&str, &str)] = &[
    ("client.id", "segue"),
    ("socket.nagle.disable", "true"),
    ("socket.keepalive.enable", "true"),
    ("log.connection.close", "false"),
    ("reconnect.backoff.max.ms", "2000"),
    // The end of a partition is told with the next answer to a fetch, so this is how late it comes.
    ("fetch.wait.max.ms", "30"),
    // By default a full queue makes the fetcher sleep for a second.
    ("fetch.queue.backoff.ms", "10"),
    ("queued.min.messages", "200000"),
    ("fetch.message.max.bytes", "8388608"),
    ("fetch.max.bytes", "67108864"),
    ("receive.message.max.bytes", "268435456"),
];

/// The bound of a partition's queue, unless the user sets one.
const QUEUED_KIB: &str = "queued.max.messages.kbytes";
/// What one reader's partitions may hold in librdkafka's queues together, and one partition at the most.
/// The last answer to a fetch comes on top.
const QUEUED_KIB_MAX: usize = 256 * 1024;
const PARTITION_QUEUED_KIB_MAX: usize = 16 * 1024;

/// Properties on which exactness hangs, and why.
const FIXED: &[(&str, &str, &str)] = &[
    ("isolation.level", "read_committed", "Segue reads committed records only"),
    ("auto.offset.reset", "error", "a position that has expired is an error, never a jump"),
    ("enable.auto.commit", "false", "Segue commits what is durable"),
    ("enable.auto.offset.store", "false", "Segue commits what is durable"),
    ("enable.partition.eof", "true", "Segue needs to be told the ends"),
    ("fetch.error.backoff.ms", "500", "Segue counts on it to notice a re-created topic"),
    ("reconnect.backoff.ms", "250", "Segue counts on it to notice a re-created topic"),
];

/// The group of a reader to which the user gave none. Nothing is ever committed to it; librdkafka does not
/// assign partitions without a group.
const NO_GROUP: &str = "segue";

/// What a client is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Questions only.
    Questions,
    /// Questions whose answers include what is not committed yet.
    UncommittedQuestions,
    /// Reading so many partitions.
    Reading { partitions: usize },
}

/// The stage's options, understood.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) topic: String,
    pub(crate) servers: String,
    /// The group to which the user wants positions committed.
    pub(crate) group: Option<String>,
    properties: ClientConfig,
}

impl Settings {
    pub(crate) fn parse(config: &ReadConfig) -> Result<Settings, ConnectError> {
        let options = &config.options;
        let topic = options.require("topic").map_err(ConnectError::Config)?.to_owned();
        let servers = options
            .get("properties.bootstrap.server")
            .or_else(|| options.get("properties.bootstrap.servers"));
        let Some(servers) = servers else {
            let error = invalid("option \"properties.bootstrap.server\" is required");
            return Err(ConnectError::Config(error));
        };
        refuse_never(config).map_err(ConnectError::Config)?;
        let mut properties = ClientConfig::new();
        for (name, value) in DEFAULTS {
            properties.set(*name, *value);
        }
        for (option, value) in &options.0 {
            let Some(name) = option.strip_prefix(PREFIX) else { continue };
            match name {
                "bootstrap.server" | "bootstrap.servers" => {}
                name => {
                    refuse_fixed(option, name).map_err(ConnectError::Config)?;
                    properties.set(name, value);
                }
            }
        }
        for (name, value, _) in FIXED {
            properties.set(*name, *value);
        }
        properties.set("bootstrap.servers", servers).set_log_level(RDKafkaLogLevel::Critical);
        let group = options.get("properties.group.id").map(str::to_owned);
        let settings = Settings { topic, servers: servers.to_owned(), group, properties };
        // Made and dropped: librdkafka checks names and values without a connection.
        settings
            .client(Purpose::Reading { partitions: 1 })
            .create_native_config()
            .map_err(|e| config_error(&e))?;
        Ok(settings)
    }

    /// The configuration of a client.
    pub(crate) fn client(&self, purpose: Purpose) -> ClientConfig {
        let mut client = self.properties.clone();
        match purpose {
            Purpose::Reading { partitions } => {
                client.set("group.id", self.group.as_deref().unwrap_or(NO_GROUP));
                if client.get(QUEUED_KIB).is_none() {
                    let share = QUEUED_KIB_MAX / partitions.max(1);
                    client.set(QUEUED_KIB, share.clamp(1, PARTITION_QUEUED_KIB_MAX).to_string());
                }
            }
            Purpose::Questions => {
                client.remove("group.id");
            }
            Purpose::UncommittedQuestions => {
                client.remove("group.id");
                client.set("isolation.level", "read_uncommitted");
            }
        }
        client
    }
}

/// Partitions that nobody looks for would be lost without a word.
fn refuse_never(config: &ReadConfig) -> Result<(), UserError> {
    match config.options.parse::<u64>(REFRESH, "a number of seconds, from 1")? {
        Some(0) => Err(invalid(&format!("option \"{REFRESH}\" must be more than 0"))
            .with_hint("Give a number of seconds, from 1.")),
        _ => Ok(()),
    }
}

fn refuse_fixed(option: &str, name: &str) -> Result<(), UserError> {
    match FIXED.iter().find(|(fixed, _, _)| *fixed == name) {
        None => Ok(()),
        Some((_, value, why)) => Err(invalid(&format!("option \"{option}\" cannot be set"))
            .with_detail(format!("It is always \"{value}\": {why}."))
            .with_hint("Remove the option.")),
    }
}

/// A complaint of librdkafka about a property, without the value if the property is secret.
pub(crate) fn config_error(error: &KafkaError) -> ConnectError {
    let KafkaError::ClientConfig(result, reason, name, value) = error else {
        return ConnectError::Config(invalid(&format!("invalid Kafka properties: {error}")));
    };
    let option = format!("{PREFIX}{name}");
    if *result == RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN {
        let message = format!("connector \"kafka\" has no option \"{option}\"");
        return ConnectError::Config(
            UserError::new(SqlState::UNDEFINED_OBJECT, message)
                .with_hint("What follows properties. is a property of librdkafka."),
        );
    }
    let is_secret = OPTIONS.iter().any(|known| known.secret && known.name == option);
    let shown = if is_secret { "(hidden)" } else { value.as_str() };
    let invalid = invalid(&format!("invalid value for option \"{option}\": \"{shown}\""));
    // The reason quotes the value.
    ConnectError::Config(if is_secret { invalid } else { invalid.with_detail(sentence(reason)) })
}

fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

fn invalid(message: &str) -> UserError {
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

#[cfg(test)]
mod tests {
    use rdkafka::error::KafkaError;
    use rdkafka::types::RDKafkaConfRes;

    use super::config_error;

    fn complaint(name: &str) -> String {
        let texts = ["bad value: s3cret", name, "s3cret"].map(str::to_owned);
        let [reason, name, value] = texts;
        let invalid = RDKafkaConfRes::RD_KAFKA_CONF_INVALID;
        let error = KafkaError::ClientConfig(invalid, reason, name, value);
        format!("{:?}", config_error(&error).to_user_error("live"))
    }

    #[test]
    fn a_complaint_shows_the_value_unless_it_is_secret() {
        assert!(complaint("fetch.wait.max.ms").contains("s3cret"));
        let hidden = complaint("ssl.key.pem");
        assert!(
            hidden.contains("properties.ssl.key.pem") && !hidden.contains("s3cret"),
            "{hidden}"
        );
    }
}
