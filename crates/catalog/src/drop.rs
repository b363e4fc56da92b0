//! What a DROP takes with it, or why it is refused.

use std::collections::HashSet;

use segue_types::ObjectId;

use crate::{Catalog, CatalogError, Object};

/// What becomes of the objects that depend on a dropped one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropBehavior {
    /// Their existence refuses the DROP.
    #[default]
    Restrict,
    /// They are dropped too.
    Cascade,
}

impl Catalog {
    /// The objects that dropping `targets` removes, each one before what it depends on.
    ///
    /// # Panics
    /// If a target is not in the catalog.
    pub fn plan_drop(
        &self,
        targets: &[ObjectId],
        behavior: DropBehavior,
    ) -> Result<Vec<ObjectId>, CatalogError> {
        for target in targets {
            assert!(
                self.get(*target).is_some(),
                "object {target} is looked up before it is dropped"
            );
        }
        let order = self.drop_order(targets);
        let given: HashSet<ObjectId> = targets.iter().copied().collect();
        if behavior == DropBehavior::Cascade || order.iter().all(|id| given.contains(id)) {
            return Ok(order);
        }
        Err(self.dependents_error(targets, &order, &given))
    }

    fn dependents_error(
        &self,
        targets: &[ObjectId],
        order: &[ObjectId],
        given: &HashSet<ObjectId>,
    ) -> CatalogError {
        let leaving: HashSet<ObjectId> = order.iter().copied().collect();
        let mut lines = Vec::new();
        for id in order.iter().rev().filter(|id| !given.contains(id)) {
            let dependent = self.get(*id).expect("the drop order lists existing objects");
            for dependency in dependent.depends_on.iter().filter(|id| leaving.contains(id)) {
                let dependency = self.get(*dependency).expect("every dependency exists");
                lines.push(format!(
                    "{} depends on {}",
                    described(dependent),
                    described(dependency)
                ));
            }
        }
        match targets {
            [target] => {
                let target = self.get(*target).expect("checked by the caller");
                CatalogError::Dependents { what: described(target), pronoun: "it", lines }
            }
            _ => CatalogError::Dependents {
                what: "desired object(s)".to_owned(),
                pronoun: "them",
                lines,
            },
        }
    }
}

/// Kind and name, the name quoted where SQL would need it.
fn described(object: &Object) -> String {
    let plain =
        |i: usize, c: char| c == '_' || c.is_ascii_lowercase() || (i > 0 && c.is_ascii_digit());
    let name = &object.name;
    match name.chars().enumerate().all(|(i, c)| plain(i, c)) && !name.is_empty() {
        true => format!("{} {name}", object.relation_kind()),
        false => format!("{} \"{}\"", object.relation_kind(), name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use segue_types::{ObjectId, SqlState, UserError};

    use super::DropBehavior;
    use crate::Catalog;
    use crate::snapshot::tests::{catalog, source, view};

    fn diamond() -> Catalog {
        catalog([source(0, "s"), view(1, "v", &[0]), view(2, "W", &[0]), view(3, "x", &[1, 2])])
    }

    #[test]
    fn restrict_names_every_dependent_and_the_remedy() {
        let error = diamond().plan_drop(&[ObjectId(0)], DropBehavior::Restrict).unwrap_err();
        let error = UserError::from(error);
        assert_eq!(error.state, SqlState::DEPENDENT_OBJECTS);
        assert_eq!(error.message, "cannot drop source s because other objects depend on it");
        assert_eq!(
            error.detail.as_deref(),
            Some(
                "materialized view \"W\" depends on source s\n\
                 materialized view v depends on source s\n\
                 materialized view x depends on materialized view v\n\
                 materialized view x depends on materialized view \"W\""
            )
        );
        assert_eq!(
            error.hint.as_deref(),
            Some("Use DROP ... CASCADE to drop the dependent objects too.")
        );
    }

    #[test]
    fn cascade_lists_each_object_once_and_before_what_it_reads() {
        let order = diamond().plan_drop(&[ObjectId(0)], DropBehavior::Cascade).expect("cascades");
        assert_eq!(order.len(), 4);
        let place = |id: u32| order.iter().position(|o| o.0 == id).expect("all four are listed");
        assert!(place(3) < place(1) && place(3) < place(2));
        assert!(place(1) < place(0) && place(2) < place(0));
    }

    #[test]
    fn an_object_that_is_dropped_by_the_same_statement_does_not_refuse_it() {
        let catalog = diamond();
        let all = [ObjectId(0), ObjectId(3), ObjectId(1), ObjectId(2)];
        assert_eq!(
            catalog.plan_drop(&all, DropBehavior::Restrict).expect("nothing is left").len(),
            4
        );
        let error = catalog.plan_drop(&all[..3], DropBehavior::Restrict).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot drop desired object(s) because other objects depend on them"
        );
        assert_eq!(
            UserError::from(error).detail.as_deref(),
            Some("materialized view \"W\" depends on source s")
        );
        assert_eq!(
            catalog.plan_drop(&[ObjectId(3)], DropBehavior::Restrict),
            Ok(vec![ObjectId(3)])
        );
    }
}
