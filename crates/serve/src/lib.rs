//! Placeholder while the layout is laid down.
