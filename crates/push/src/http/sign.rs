//! Proof for an endpoint of who calls it: an HMAC over what a request says.

use std::fmt::Write;

use redrive_config::Secret;
use ring::hmac;

/// Signs requests. The key is never shown.
pub(crate) struct Signer(hmac::Key);

impl Signer {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.0.as_bytes()))
    }

    /// The value of `redrive-signature`: the time in seconds, and the proof. `id` is the header `ce-id`, empty
    /// where several records come at once.
    pub(crate) fn signature(&self, at: i64, path: &str, id: &str, tombstone: bool, body: &[u8]) -> String {
        let mut signed = hmac::Context::with_key(&self.0);
        signed.update(format!("{at}\nPOST\n{path}\n{id}\n{tombstone}\n").as_bytes());
        signed.update(body);
        let mut text = format!("t={at},v1=");
        for byte in signed.sign().as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_same_as_elsewhere() {
        let signer = Signer::new(&Secret("s3cret".to_owned()));
        // hmac.new(b"s3cret", b"1800000000\nPOST\n/pay\norders/3/7\nfalse\n{}", "sha256").hexdigest()
        let expected = "t=1800000000,v1=737f21aa59cfab05bfc647717ff9823dd4ed17b9dbe3ce1d3b4eacf22bfb580c";
        assert_eq!(signer.signature(1_800_000_000, "/pay", "orders/3/7", false, b"{}"), expected);
    }
}
