//! Where the cluster is and how to reach it: what every client begins with.

use std::fmt;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;

/// Addresses and the user's own properties of librdkafka.
#[derive(Clone, Default)]
pub struct Settings {
    /// Addresses to begin with, separated by commas.
    pub brokers: String,
    /// Names and values; a value may be secret.
    pub properties: Vec<(String, String)>,
}

impl Settings {
    /// Settings without properties.
    #[must_use]
    pub fn of(brokers: impl Into<String>) -> Self {
        Self { brokers: brokers.into(), properties: Vec::new() }
    }

    /// What every client begins with.
    pub(crate) fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        self.set_on(&mut config);
        config
    }

    /// Puts them over what is there. From here, not from another configuration, which shows no secrets.
    pub(crate) fn set_on(&self, config: &mut ClientConfig) {
        // OpenSSL is linked in and knows no folder of certificates; this looks in the usual ones.
        if self.uses_tls() && !self.properties.iter().any(|(name, _)| name.starts_with("ssl.ca.")) {
            config.set("ssl.ca.location", "probe");
        }
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config.set("bootstrap.servers", &self.brokers);
    }

    fn uses_tls(&self) -> bool {
        let protocol = self.properties.iter().rev().find(|(name, _)| name == "security.protocol");
        protocol.is_some_and(|(_, protocol)| protocol.to_ascii_uppercase().ends_with("SSL"))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.properties.iter().map(|(name, _)| name).collect();
        f.debug_struct("Settings").field("brokers", &self.brokers).field("properties", &names).finish()
    }
}

/// Has a consumer ask for no more than this at once, unless the user wants another number; never for less than its
/// largest record, which librdkafka refuses.
pub(crate) fn fetch_at_most(config: &mut ClientConfig, bytes: usize) {
    if config.get("fetch.max.bytes").is_none() {
        let largest = config.get("message.max.bytes").and_then(|largest| largest.parse().ok()).unwrap_or(0);
        config.set("fetch.max.bytes", bytes.max(largest).to_string());
    }
}

/// Whether librdkafka accepts a property; if not, why, without its value.
pub fn check_property(name: &str, value: &str) -> Result<(), String> {
    let mut config = ClientConfig::new();
    config.set(name, value);
    match config.create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(_, why, _, _)) if value.is_empty() || !why.contains(value) => Err(why),
        Err(_) => Err("the value is not one of its values".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_is_checked_by_its_name_and_value() {
        assert_eq!(check_property("socket.timeout.ms", "5000"), Ok(()));
        assert_eq!(check_property("security.protocol", "SASL_SSL"), Ok(()));
        assert_eq!(check_property("sasl.mechanisms", "SCRAM-SHA-256"), Ok(()));
        assert!(
            check_property("no.such.property", "1").unwrap_err().contains("No such configuration property")
        );
        assert!(check_property("socket.timeout.ms", "soon").is_err());
    }

    #[test]
    fn the_reason_never_repeats_the_value() {
        for (name, value) in
            [("socket.timeout.ms", "hunter2"), ("security.protocol", "hunter2"), ("hunter", "hunter2")]
        {
            let why = check_property(name, value).unwrap_err();
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn tls_scram_and_zstd_are_compiled_in() {
        for (name, value) in
            [("security.protocol", "SSL"), ("sasl.mechanisms", "SCRAM-SHA-512"), ("compression.type", "zstd")]
        {
            assert_eq!(check_property(name, value), Ok(()), "{name}={value}");
        }
        let features = rdkafka::util::get_rdkafka_version().1;
        let built =
            ClientConfig::new().create_native_config().and_then(|native| native.get("builtin.features"));
        let built = built.unwrap();
        for feature in ["ssl", "sasl_scram", "zstd", "gzip", "lz4", "snappy"] {
            assert!(
                built.split(',').any(|b| b.trim() == feature),
                "{feature} is not in {built} of librdkafka {features}"
            );
        }
    }

    #[test]
    fn certificates_are_looked_for_unless_they_are_named() {
        let with = |properties: &[(&str, &str)]| {
            let properties = properties.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            let config = Settings { brokers: "b".into(), properties }.client();
            config.get("ssl.ca.location").map(ToOwned::to_owned)
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("security.protocol", "sasl_ssl")]), Some("probe".to_owned()));
        assert_eq!(
            with(&[("security.protocol", "SSL"), ("ssl.ca.location", "/ca.pem")]),
            Some("/ca.pem".to_owned())
        );
    }
}
