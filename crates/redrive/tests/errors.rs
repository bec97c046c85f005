//! Whatever a handler returns as its error keeps what it says.

use redrive::Failure;

#[test]
fn an_anyhow_error_keeps_its_chain() {
    let error = anyhow::Error::new("many".parse::<u8>().unwrap_err()).context("cannot charge the order");
    let failure = Failure::from_any(error);
    let said: Vec<_> = failure.causes().iter().map(|cause| cause.message.as_str()).collect();
    assert_eq!(said, ["cannot charge the order", "invalid digit found in string"]);
}
