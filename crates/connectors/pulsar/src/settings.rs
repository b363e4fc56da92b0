//! The stage's options, understood.

use segue_connect::{ConnectError, OptionSpec, ReadConfig, RowFormat};
use segue_types::{SqlState, UserError};

const fn option(name: &'static str, required: bool, doc: &'static str) -> OptionSpec {
    OptionSpec { name, required, secret: false, doc }
}

/// Every option of the connector.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    option("topic", true, "The topic to read, with or without persistent://tenant/namespace/."),
    option("service.url", true, "A broker or proxy to ask first, as pulsar://host:port."),
    option(
        "subscription.name",
        false,
        "A durable subscription that keeps what is not durable here yet; acknowledged after each epoch.",
    ),
    option("refresh.interval.sec", false, "How often new partitions are looked for (default 5)."),
    option("scan.startup.mode", false, "earliest or latest: another spelling of START AT."),
    option("scan.startup.timestamp.millis", false, "Another spelling of START AT TIMESTAMP."),
];

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `persistent://tenant/namespace/name`
    pub(crate) topic: String,
    pub(crate) service: Address,
    pub(crate) subscription: Option<String>,
    /// Whether a message without a payload removes its key.
    pub(crate) keyed: bool,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) String);

impl Address {
    /// Reads `pulsar://host:port`.
    pub(crate) fn parse(url: &str) -> Option<Address> {
        let rest = url.strip_prefix("pulsar://")?.trim_end_matches('/');
        let (host, port) = rest.rsplit_once(':')?;
        let plain = !host.is_empty() && !rest.contains(['/', ',', '@', '?']);
        (plain && port.parse::<u16>().is_ok()).then(|| Address(rest.to_owned()))
    }
}

impl Settings {
    pub(crate) fn parse(config: &ReadConfig) -> Result<Settings, ConnectError> {
        let options = &config.options;
        let topic = options.require("topic").map_err(ConnectError::Config)?;
        let service = options.require("service.url").map_err(ConnectError::Config)?;
        if service.starts_with("pulsar+ssl:") {
            return Err(ConnectError::Unsupported(
                "TLS to Pulsar is not supported; use pulsar://".to_owned(),
            ));
        }
        let Some(address) = Address::parse(service) else {
            // It may hold a password.
            return Err(invalid(
                "invalid value for option \"service.url\"",
                "Give pulsar://host:port.",
            ));
        };
        let refresh = options.parse::<u64>("refresh.interval.sec", "a number of seconds, from 1");
        if refresh.map_err(ConnectError::Config)? == Some(0) {
            let message = "option \"refresh.interval.sec\" must be more than 0";
            return Err(invalid(message, "Give a number of seconds, from 1."));
        }
        Ok(Settings {
            topic: full_name(topic)?,
            service: address,
            subscription: options.get("subscription.name").map(str::to_owned),
            keyed: config.format.rows == RowFormat::Upsert,
        })
    }

    /// The system, for errors.
    pub(crate) fn system(&self) -> String {
        format!("Pulsar at {}", self.service.0)
    }

    /// What is read, for errors.
    pub(crate) fn what(&self) -> String {
        format!("topic \"{}\"", self.topic)
    }
}

/// The whole name of a topic.
fn full_name(topic: &str) -> Result<String, ConnectError> {
    if topic.starts_with("non-persistent://") {
        return Err(ConnectError::Unsupported(
            "a topic that is not persistent has no positions to read from".to_owned(),
        ));
    }
    let path = topic.strip_prefix("persistent://").unwrap_or(topic);
    let parts: Vec<&str> = path.split('/').collect();
    let good = parts.iter().all(|part| !part.is_empty() && !part.contains(char::is_whitespace));
    match parts.as_slice() {
        [name] if good => Ok(format!("persistent://public/default/{name}")),
        [_, _, _] if good => Ok(format!("persistent://{path}")),
        _ => Err(invalid(
            &format!("invalid value for option \"topic\": \"{topic}\""),
            "Give a name, or persistent://tenant/namespace/name.",
        )),
    }
}

fn invalid(message: &str, hint: &str) -> ConnectError {
    ConnectError::Config(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::{Address, full_name};

    #[test]
    fn names_become_whole_and_addresses_are_plain() {
        let whole = "persistent://public/default/t";
        assert_eq!(full_name("t").as_deref(), Ok(whole));
        assert_eq!(full_name(whole).as_deref(), Ok(whole));
        for bad in ["", "a/b", "persistent://a/b", "a b", "non-persistent://public/default/t"] {
            full_name(bad).expect_err(bad);
        }
        assert_eq!(Address::parse("pulsar://h:1"), Some(Address("h:1".to_owned())));
        for bad in ["h:1", "pulsar://h", "pulsar://u@h:1", "pulsar://h:1,g:2", "pulsar://:1"] {
            assert_eq!(Address::parse(bad), None, "{bad}");
        }
    }
}
