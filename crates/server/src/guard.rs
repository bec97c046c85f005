//! Who may ask: whoever has the token, where there is one; on this machine's own address, only those who
//! asked for it by such a name. Otherwise a page of somebody else's could ask through a browser here.

use std::hint::black_box;
use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, header};

/// Who may ask.
#[derive(Clone)]
pub(crate) struct Guard {
    token: Option<String>,
    is_loopback: bool,
}

impl Guard {
    pub(crate) fn new(token: Option<String>, is_loopback: bool) -> Self {
        Self { token, is_loopback }
    }

    /// Whether a token is asked for.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether the question comes with the token, or none is needed.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        given.is_some_and(|(_, given)| is_same(token.as_bytes(), given.trim().as_bytes()))
    }

    /// Whether a change may come from where it does: from a program, or from a page of this process. Browsers say
    /// which page asks; a page of somebody else's must not change anything, whatever the browser knows of a token.
    pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let site = headers.get("sec-fetch-site").map(text);
        if site.is_some_and(|site| site != "same-origin" && site != "none") {
            return false;
        }
        let Some(origin) = headers.get(header::ORIGIN).map(text) else { return true };
        let host = headers.get(header::HOST).map(text).unwrap_or_default();
        origin.split_once("://").is_some_and(|(_, from)| from.eq_ignore_ascii_case(&host))
    }

    /// Whether the name that was asked for can be ours. Behind a token it may be any.
    pub(crate) fn is_ours(&self, host: Option<&str>) -> bool {
        if !self.is_loopback || self.has_token() {
            return true;
        }
        let Some(host) = host else { return true };
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Compared without saying by the time it takes where they differ.
fn is_same(ours: &[u8], given: &[u8]) -> bool {
    let mut differs = ours.len() ^ given.len();
    for (index, byte) in given.iter().enumerate() {
        differs |= usize::from(byte ^ black_box(ours[index % ours.len().max(1)]));
    }
    black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let guard = Guard::new(Some("secret-token".to_owned()), true);
        let with = |value: &str| HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        assert!(guard.admits(&with("Bearer secret-token")));
        assert!(guard.admits(&with("bearer  secret-token")));
        for wrong in [
            "secret-token",
            "Bearer",
            "Bearer ",
            "Bearer secret-toke",
            "Bearer secret-token1",
            "Basic secret-token",
            "Bearer secret-tokensecret-token",
        ] {
            assert!(!guard.admits(&with(wrong)), "{wrong}");
        }
        assert!(!guard.admits(&HeaderMap::new()));
        assert!(Guard::new(None, true).admits(&HeaderMap::new()));
    }

    #[test]
    fn a_page_of_somebody_elses_changes_nothing() {
        let with = |pairs: &[(&'static str, &str)]| {
            let host = [("host", "localhost:8790")];
            let all = host.iter().chain(pairs);
            let headers: HeaderMap =
                all.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            Guard::is_own_page(&headers)
        };
        assert!(with(&[]), "a program");
        assert!(with(&[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8790")]));
        assert!(with(&[("sec-fetch-site", "none")]));
        for wrong in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site"), ("origin", "http://localhost:9999")],
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[("origin", "http://localhost:9999")],
        ] {
            assert!(!with(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_of_somebody_elses_is_not_ours() {
        let guard = Guard::new(None, true);
        for ours in
            ["localhost", "localhost:8790", "127.0.0.1:8790", "[::1]:8790", "LOCALHOST:1", "127.8.8.8"]
        {
            assert!(guard.is_ours(Some(ours)), "{ours}");
        }
        for other in
            ["evil.example", "evil.example:8790", "localhost.evil.example", "10.0.0.1:8790", "[::2]:1", ""]
        {
            assert!(!guard.is_ours(Some(other)), "{other}");
        }
        assert!(guard.is_ours(None) && Guard::new(None, false).is_ours(Some("redrive.internal")));
    }
}
