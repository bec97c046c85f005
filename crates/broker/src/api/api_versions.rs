//! ApiVersions: what this broker speaks. Also the answer to what it does not: a client that asks for
//! too new a version of this very API learns the range in the oldest form, which everyone reads.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};

use super::{Answer, Call};
use crate::server::reply::Reply;
use crate::server::versions;

pub(super) fn answer(request: &ApiVersionsRequest, version: i16) -> ApiVersionsResponse {
    if version >= 3 && !is_name(&request.client_software_name) {
        return ApiVersionsResponse::default().with_error_code(ResponseError::InvalidRequest.code());
    }
    ApiVersionsResponse::default().with_api_keys(versions::advertised())
}

/// Kafka's rule for the name that a client gives its software.
fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.chars().all(inner) && ends(name.chars().next()) && ends(name.chars().last())
}

/// The answer to an API or a version that is not spoken.
pub(super) fn refuse(call: &Call) -> Answer {
    if call.key != ApiKey::ApiVersions as i16 {
        return Answer::Close(format!("API {} version {} is not spoken", call.key, call.version));
    }
    let response = ApiVersionsResponse::default()
        .with_error_code(ResponseError::UnsupportedVersion.code())
        .with_api_keys(versions::advertised());
    match Reply::encode(call.correlation_id, &response, 0) {
        Ok(reply) => Answer::Reply(reply),
        Err(cause) => Answer::Close(cause),
    }
}
