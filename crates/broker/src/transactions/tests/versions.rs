//! Every answer can be encoded in every version that is advertised.

use bytes::BytesMut;
use kafka_protocol::messages::EndTxnResponse;
use kafka_protocol::protocol::Encodable;

use super::*;

fn encodes(response: &impl Encodable, version: i16) {
    response.encode(&mut BytesMut::new(), version).unwrap();
}

#[test]
fn all_of_them() {
    let transactions = transactions();
    let identity = producer(&transactions);
    for version in 0..=5 {
        for req in [init_request(None), init_request(Some(""))] {
            let Init::Reply(response) = transactions.init_producer_id(&req, version) else {
                panic!()
            };
            encodes(&response, version);
        }
    }
    for version in 0..=3 {
        encodes(
            &transactions.add_partitions(&partitions_request(identity, 0), version, |_, _| true),
            version,
        );
        encodes(
            &transactions.add_partitions(&partitions_request(identity, 0), version, |_, _| false),
            version,
        );
    }
    let stranger = Identity {
        producer_id: 99,
        epoch: 0,
    };
    for version in 0..=4 {
        let req = AddOffsetsToTxnRequest::default().with_transactional_id(id("t"));
        encodes(&transactions.add_offsets(&req, version), version);
        let End::Reply(response) = transactions.end(&end_request(stranger, true), version) else {
            panic!()
        };
        encodes(&response, version);
        encodes(&EndTxnResponse::default(), version);
    }
}
