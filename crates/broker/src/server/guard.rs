//! Decoding of requests that cannot be trusted. Bytes come in, a request or a refusal goes out. The
//! codecs reserve room for as many elements as an array claims to have; a claim that the bytes cannot
//! hold is refused here before anything is reserved, or forty bytes of garbage would end the process.

use bytes::{Buf, Bytes};
use kafka_protocol::protocol::Decodable;
use kafka_protocol::protocol::buf::ByteBuf;

/// A request that does not follow the protocol.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode the request: {0}")]
pub(crate) struct Malformed(String);

/// Up to here a claim is let through: the codec reserves little for it and finds out by itself.
const HARMLESS: i32 = 1 << 20;

/// Decodes a request that fills `body`.
pub(crate) fn decode<T: Decodable>(body: &Bytes, version: i16) -> Result<T, Malformed> {
    let mut guarded = Guarded {
        bytes: body.clone(),
        lowered: false,
    };
    let decoded = T::decode(&mut guarded, version).map_err(|e| Malformed(format!("{e:#}")))?;
    if !guarded.lowered {
        return Ok(decoded);
    }
    // Every number that was lowered turned out to be no array's length: the true values do no harm.
    T::decode(&mut body.clone(), version).map_err(|e| Malformed(format!("{e:#}")))
}

/// Bytes that lower every 32-bit number which would be too large for an array's length. If it was one,
/// decoding runs out of bytes; if it was a plain number, the shape of the rest does not depend on it.
struct Guarded {
    bytes: Bytes,
    lowered: bool,
}

impl Buf for Guarded {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, n: usize) {
        self.bytes.advance(n);
    }

    fn try_get_i32(&mut self) -> Result<i32, bytes::TryGetError> {
        let value = self.bytes.try_get_i32()?;
        let most = self.bytes.len() as i64 + 1;
        if value <= HARMLESS || i64::from(value) <= most {
            return Ok(value);
        }
        self.lowered = true;
        Ok(most as i32)
    }

    /// Compact lengths are variable; where one begins it is looked at whole. None may exceed what is left.
    fn try_get_u8(&mut self) -> Result<u8, bytes::TryGetError> {
        let claimed = varint(&self.bytes);
        if claimed > HARMLESS as u64 && claimed > self.bytes.len() as u64 {
            return Err(bytes::TryGetError {
                requested: claimed as usize,
                available: self.bytes.len(),
            });
        }
        self.bytes.try_get_u8()
    }
}

impl ByteBuf for Guarded {
    fn peek_bytes(&mut self, range: std::ops::Range<usize>) -> Bytes {
        self.bytes.slice(range)
    }

    fn get_bytes(&mut self, size: usize) -> Bytes {
        self.bytes.split_to(size)
    }
}

fn varint(bytes: &[u8]) -> u64 {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use kafka_protocol::messages::{FetchRequest, MetadataRequest, ProduceRequest};
    use kafka_protocol::protocol::Encodable;
    use proptest::prelude::*;

    #[test]
    fn an_array_that_claims_two_billion_elements_is_refused() {
        let body = Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff]);
        assert!(decode::<MetadataRequest>(&body, 1).is_err());
        let compact = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0x07]);
        assert!(decode::<MetadataRequest>(&compact, 12).is_err());
    }

    #[test]
    fn large_plain_numbers_keep_their_value() {
        let request = FetchRequest::default()
            .with_max_bytes(i32::MAX)
            .with_max_wait_ms(1_234_567_890);
        let mut bytes = BytesMut::new();
        request.encode(&mut bytes, 4).unwrap();
        let decoded: FetchRequest = decode(&bytes.freeze(), 4).unwrap();
        assert_eq!(
            (decoded.max_bytes, decoded.max_wait_ms),
            (i32::MAX, 1_234_567_890)
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0..14i16) {
            let bytes = Bytes::from(bytes);
            let _ = decode::<MetadataRequest>(&bytes, version);
            let _ = decode::<ProduceRequest>(&bytes, version);
            let _ = decode::<FetchRequest>(&bytes, version);
        }
    }
}
