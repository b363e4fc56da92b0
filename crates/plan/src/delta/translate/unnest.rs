//! unnest() of lists, which is row by row.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::logical_expr::Unnest;
use segue_flow::OperatorSpec;
use segue_types::UserError;

use super::super::physical::{cast_to, column, held_type};
use super::super::refuse::refusal;
use super::{Output, Translator};

impl Translator<'_> {
    pub(super) fn unnest(&mut self, unnest: &Unnest) -> Result<Output, UserError> {
        let output = self.node(&unnest.input)?;
        let deep = unnest.list_type_columns.iter().any(|(_, list)| list.depth != 1);
        let width = unnest.input.schema().fields().len();
        let moved = unnest.dependency_indices.iter().copied().ne(0..width);
        if deep
            || moved
            || !unnest.struct_type_columns.is_empty()
            || unnest.options.preserve_nulls()
        {
            let hint = "Unnest one list in each subquery, and name the members of a struct.";
            return Err(refusal("unnest() of a struct or of lists in lists", hint));
        }
        let lists = unnest.list_type_columns.iter().map(|(place, _)| *place).collect::<Vec<_>>();
        let from = self.spec.schema_of(output.node);
        let is_list =
            |place: &usize| matches!(held_type(from.field(*place).data_type()), DataType::List(_));
        if !lists.iter().all(is_list) {
            return Err(refusal("unnest() of what is no list", "Give it an array."));
        }
        // Only the lists need a certain representation.
        let columns = from.fields().iter().enumerate().map(|(place, field)| {
            let to = match lists.contains(&place) {
                true => held_type(field.data_type()),
                false => field.data_type().clone(),
            };
            let expression = cast_to(column(&from, place), field.data_type(), &to);
            (expression, Field::new(field.name(), to, true))
        });
        let columns = columns.collect();
        let input = self.columns(output.node, columns);
        let from = self.spec.schema_of(input);
        let fields = from.fields().iter().enumerate().map(|(place, field)| {
            let name = unnest.schema.field(place).name();
            match field.data_type() {
                DataType::List(item) if lists.contains(&place) => {
                    Field::new(name, item.data_type().clone(), true)
                }
                other => Field::new(name, other.clone(), true),
            }
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let node = self.push(OperatorSpec::Unnest { input, lists, schema });
        let logical = unnest.schema.fields().iter().map(|field| field.data_type().clone());
        let logical = logical.collect::<Vec<_>>();
        Ok(Output { node: self.cast(node, &logical), key: Vec::new() })
    }
}
