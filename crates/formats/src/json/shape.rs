//! Which field of an object goes to which column.
//!
//! Records of one stream name their fields in one order, so each name is first compared with the
//! one that is due (the *script*, learnt from the records so far); only what differs is looked up.

use std::collections::HashMap;

use segue_types::SqlType;

use super::escape;
use super::scanner::{Malformed, Scanner};

/// How many names a script holds.
const SCRIPT_LEN_MAX: usize = 128;
/// How many names may be left out by a record before the lookup is cheaper than going on through
/// the script.
const SCRIPT_LOOK_AHEAD: usize = 8;
/// Longer names are looked up each time.
const SCRIPT_NAME_BYTES_MAX: usize = 128;

/// Where a field goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Skip,
    /// The column of this very name.
    Exact(usize),
    /// The column whose name differs in case alone: it yields to an exact one in the same record.
    Folded(usize),
}

/// What nested values of a column look like.
#[derive(Debug)]
pub(super) enum Shape {
    Scalar,
    Array(Box<Shape>),
    Object(ObjectShape),
}

impl Shape {
    pub(super) fn new(ty: &SqlType) -> Shape {
        match ty {
            SqlType::Array(item) => Shape::Array(Box::new(Shape::new(item))),
            SqlType::Struct(members) => {
                let names = members.iter().map(|(name, _)| name.as_str());
                let wanted: Vec<usize> = (0..members.len()).collect();
                let shapes = members.iter().map(|(_, member)| Shape::new(member)).collect();
                Shape::Object(ObjectShape::new(names, &wanted, shapes))
            }
            _ => Shape::Scalar,
        }
    }
}

#[derive(Debug)]
struct Step {
    /// The name with its closing quote, so that one comparison finds name and end.
    name_and_quote: Box<[u8]>,
    target: Target,
}

/// The fields of an object.
#[derive(Debug)]
pub(super) struct ObjectShape {
    by_name: HashMap<Box<str>, Target>,
    by_folded_name: HashMap<Box<str>, Target>,
    script: Vec<Step>,
    pub(super) members: Vec<Shape>,
}

impl ObjectShape {
    /// Of all `names`, those at `wanted` are columns, in that order; the rest is known and skipped.
    pub(super) fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        wanted: &[usize],
        members: Vec<Shape>,
    ) -> ObjectShape {
        let mut by_name = HashMap::new();
        let mut by_folded_name = HashMap::new();
        for (index, name) in names.enumerate() {
            let column = wanted.iter().position(|wanted| *wanted == index);
            let (exact, folded) = match column {
                Some(column) => (Target::Exact(column), Target::Folded(column)),
                None => (Target::Skip, Target::Skip),
            };
            by_name.insert(name.into(), exact);
            by_folded_name.entry(name.to_lowercase().into()).or_insert(folded);
        }
        ObjectShape { by_name, by_folded_name, script: Vec::new(), members }
    }

    /// Reads a field name, the cursor after its opening quote. `due` is the place in the script.
    #[inline]
    pub(super) fn field(
        &mut self,
        scanner: &mut Scanner<'_>,
        due: &mut usize,
    ) -> Result<Target, Malformed> {
        if let Some(step) = self.script.get(*due)
            && scanner.eat(&step.name_and_quote)
        {
            *due += 1;
            return Ok(step.target);
        }
        self.field_out_of_order(scanner, due)
    }

    #[cold]
    fn field_out_of_order(
        &mut self,
        scanner: &mut Scanner<'_>,
        due: &mut usize,
    ) -> Result<Target, Malformed> {
        let ahead = self.script.iter().enumerate().skip(*due + 1).take(SCRIPT_LOOK_AHEAD);
        for (place, step) in ahead {
            if scanner.eat(&step.name_and_quote) {
                *due = place + 1;
                return Ok(step.target);
            }
        }
        let raw = scanner.string()?;
        if raw.escaped {
            return Ok(self.look_up(&escape::unescaped(raw.text)));
        }
        let target = self.look_up(raw.text);
        if self.script.len() < SCRIPT_LEN_MAX && raw.text.len() <= SCRIPT_NAME_BYTES_MAX {
            let name_and_quote = [raw.text.as_bytes(), b"\""].concat().into();
            self.script.insert(*due, Step { name_and_quote, target });
            *due += 1;
        }
        Ok(target)
    }

    fn look_up(&self, name: &str) -> Target {
        let exact = self.by_name.get(name).copied();
        exact
            .or_else(|| self.by_folded_name.get(name.to_lowercase().as_str()).copied())
            .unwrap_or(Target::Skip)
    }
}
