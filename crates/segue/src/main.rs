//! Placeholder while the layout is laid down.
fn main() {}
