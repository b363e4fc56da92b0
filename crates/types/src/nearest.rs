//! The nearest known name, for the HINT of an error about an unknown one.

/// The candidate that `given` was most likely meant to be, or `None` when nothing is close.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    candidates
        .into_iter()
        // "t" shares a letter with most words, and is meant by none of them.
        .filter(|candidate| {
            let (a, b) = (given.len(), candidate.len());
            a.min(b) * 2 >= a.max(b)
        })
        .map(|candidate| (strsim::jaro_winkler(&given, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_finds_its_name_and_nonsense_finds_none() {
        let known = ["topic", "properties.bootstrap.server", "connector"];
        assert_eq!(nearest("topci", known), Some("topic"));
        assert_eq!(
            nearest("properties.bootstrap.servers", known),
            Some("properties.bootstrap.server")
        );
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(nearest("nothing", ["t"]), None);
    }
}
