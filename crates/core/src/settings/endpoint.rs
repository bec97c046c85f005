//! Where an HTTP endpoint is: over TCP, with TLS or without, or behind a Unix socket.

use std::fmt;
use std::str::FromStr;

use crate::spelling::Misspelt;

/// What the addresses look like.
const LOOK: &str = "write http://HOST:PORT/PATH, https://HOST/PATH or http+unix:///path/to/socket:/PATH";

/// The address of an HTTP endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where to connect to.
    pub place: Place,
    /// The path and the query of requests; it begins with a slash.
    pub path: String,
    /// `user:password`, if the address carries them.
    pub credentials: Option<String>,
}

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// To a host.
    Host {
        /// Whether the connection is encrypted.
        tls: bool,
        /// Its name or address; one of IPv6 without its brackets.
        name: String,
        /// The port.
        port: u16,
    },
    /// To a socket in the file system.
    Socket(String),
}

impl Endpoint {
    /// The host and the port as the header `Host` has them.
    #[must_use]
    pub fn authority(&self) -> String {
        match &self.place {
            Place::Host { tls, name, port } => {
                let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
                let usual = if *tls { 443 } else { 80 };
                if *port == usual { name } else { format!("{name}:{port}") }
            }
            Place::Socket(_) => "localhost".to_owned(),
        }
    }
}

impl FromStr for Endpoint {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        // Refused as a whole: a part of it may be a password.
        let wrong = |why: &str| Misspelt::new(0..text.len(), format!("{NO_ADDRESS}: {why}")).help(LOOK);
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic()) {
            let what = if bad == ' ' { "a blank".to_owned() } else { format!("`{}`", bad.escape_default()) };
            return Err(wrong(&format!("it holds {what}, which is written as %XX")));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong("it does not begin with http:// or https://"));
        };
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            "http+unix" => return socket(rest).map_err(wrong),
            _ => return Err(wrong("it does not begin with http:// or https://")),
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (credentials, host) = match authority.rsplit_once('@') {
            Some((credentials, host)) => (Some(unescaped(credentials)), host),
            None => (None, authority),
        };
        let (name, port) = match host.strip_prefix('[') {
            Some(rest) => {
                let (name, port) = rest.split_once(']').ok_or_else(|| wrong("a bracket is not closed"))?;
                (name, port)
            }
            None => host.split_at(host.find(':').unwrap_or(host.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None if port.is_empty() => Some(if tls { 443 } else { 80 }),
            None => None,
        };
        let port = port.ok_or_else(|| wrong("its port is not a number from 1 to 65535"))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:~%".contains(c);
        match name {
            "" => Err(wrong("it has no host")),
            name if !name.chars().all(is_name) => Err(wrong("its host is not a name")),
            name => {
                let place = Place::Host { tls, name: name.to_owned(), port };
                Ok(Self { place, path, credentials })
            }
        }
    }
}

const NO_ADDRESS: &str = "this is not the address of an HTTP endpoint";

/// `/path/to/socket:/path` behind the scheme.
fn socket(rest: &str) -> Result<Endpoint, &'static str> {
    if !rest.starts_with('/') {
        return Err("the path of a socket begins with a slash, the third one");
    }
    let (socket, path) = rest.split_once(":/").unwrap_or((rest, ""));
    if socket.len() < 2 {
        return Err("it names no socket");
    }
    Ok(Endpoint { place: Place::Socket(socket.to_owned()), path: format!("/{path}"), credentials: None })
}

/// A text with its `%XX` undone; what cannot be undone stays.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Without credentials and query, either of which may be secret.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split('?').next().unwrap_or("/");
        match &self.place {
            Place::Host { tls: true, .. } => write!(f, "https://{}{path}", self.authority()),
            Place::Host { tls: false, .. } => write!(f, "http://{}{path}", self.authority()),
            Place::Socket(socket) => write!(f, "http+unix://{socket}:{path}"),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(text: &str) -> (Place, String) {
        let endpoint: Endpoint = text.parse().unwrap();
        (endpoint.place, endpoint.path)
    }

    fn host(tls: bool, name: &str, port: u16) -> Place {
        Place::Host { tls, name: name.to_owned(), port }
    }

    #[test]
    fn an_address_is_taken_apart() {
        assert_eq!(place("http://h:9001/pay?x=1"), (host(false, "h", 9001), "/pay?x=1".to_owned()));
        assert_eq!(place("https://h"), (host(true, "h", 443), "/".to_owned()));
        assert_eq!(place("http://h?x"), (host(false, "h", 80), "/?x".to_owned()));
        assert_eq!(place("http://[::1]:8/"), (host(false, "::1", 8), "/".to_owned()));
        assert_eq!(
            place("http+unix:///run/a.sock:/pay"),
            (Place::Socket("/run/a.sock".to_owned()), "/pay".to_owned())
        );
        assert_eq!(
            place("http+unix:///run/a.sock"),
            (Place::Socket("/run/a.sock".to_owned()), "/".to_owned())
        );
    }

    #[test]
    fn credentials_are_kept_and_never_shown() {
        let endpoint: Endpoint = "https://ada:s%40cret@h/p?token=abc".parse().unwrap();
        assert_eq!(endpoint.credentials.as_deref(), Some("ada:s@cret"));
        assert_eq!(format!("{endpoint} {endpoint:?}"), "https://h/p Endpoint(https://h/p)");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "localhost",
            "ftp://h/",
            "http://",
            "http:///p",
            "http://h:0/",
            "http://h:70000",
            "http://h:x/",
            "http://a b/",
            "http://[::1/",
            "http://h:9001x/",
            "http+unix://run/a",
            "http+unix:///",
            "htp://h",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(https?://|http[+]unix://)?\\PC*") {
            let _ = text.parse::<Endpoint>();
        }
    }
}
