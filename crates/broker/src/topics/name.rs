//! Which names a topic may have: Kafka's rules, so that what works here works there.

/// Why a name is refused, or nothing.
pub(crate) fn fault(name: &str) -> Option<&'static str> {
    const MAX: usize = 249;
    if name.is_empty() {
        Some("Topic name is invalid: the empty string is not allowed")
    } else if name == "." || name == ".." {
        Some("Topic name is invalid: '.' or '..' is not allowed")
    } else if name.len() > MAX {
        Some("Topic name is invalid: the length of the name is longer than 249 characters")
    } else if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    {
        Some(
            "Topic name is invalid: it contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        )
    } else {
        None
    }
}

/// Two names collide where one has a dot and the other an underscore: metrics could not tell them apart.
pub(crate) fn collides(one: &str, other: &str) -> bool {
    one != other && one.replace('.', "_") == other.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kafkas_rules() {
        for good in ["a", "orders.v1_retry-2", &"x".repeat(249)] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in ["", ".", "..", "a b", "ä", "a/b", &"x".repeat(250)] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_dot_and_an_underscore_collide() {
        assert!(collides("a.b", "a_b"));
        assert!(!collides("a.b", "a.b"));
    }
}
