//! A test that fails, and one behind it: cargo goes on with the others only when asked to.

#[test]
fn failing() {
    assert_eq!(std::env::var("CARGO_PKG_NAME").as_deref(), Ok("another"));
}
