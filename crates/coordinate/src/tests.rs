//! Stories, one per scar: each names what went wrong elsewhere and what must happen here.
