//! Functions that tell of the session: its user, its database, its settings, the server's version.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, ListArray, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::ScalarUDF;

use super::simple::{function, text_column, texts};
use crate::plan::Identity;
use crate::settings::SERVER_VERSION;

/// All of them.
pub(super) fn functions(identity: &Identity) -> Vec<ScalarUDF> {
    let mut functions = vec![
        version(),
        current_schemas(),
        backend_pid(identity.pid),
        current_setting(identity),
        set_config(identity),
    ];
    for name in ["current_database", "current_catalog"] {
        functions.push(constant(name, identity.database.clone()));
    }
    for name in ["session_user", "current_user", "pg_get_userbyid"] {
        functions.push(constant(name, identity.user.clone()));
    }
    functions.push(constant("current_schema", "public".to_owned()));
    functions
}

fn constant(name: &'static str, value: String) -> ScalarUDF {
    function(name, DataType::Utf8, move |_, rows| {
        Ok(text_column(std::iter::repeat_n(Some(value.clone()), rows)))
    })
}

/// Drivers read the number behind "PostgreSQL".
fn version() -> ScalarUDF {
    let version = format!("PostgreSQL {SERVER_VERSION} (Segue {})", env!("CARGO_PKG_VERSION"));
    constant("version", version)
}

fn backend_pid(pid: i32) -> ScalarUDF {
    function("pg_backend_pid", DataType::Int32, move |_, rows| {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![pid; rows]));
        Ok(array)
    })
}

fn current_schemas() -> ScalarUDF {
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    function("current_schemas", DataType::List(item), |_, rows| {
        let mut builder = ListBuilder::new(StringBuilder::new());
        for _ in 0..rows {
            builder.append_value([Some("pg_catalog"), Some("public")]);
        }
        let array: ListArray = builder.finish();
        Ok(Arc::new(array))
    })
}

/// `current_setting(name [, missing_ok])`
fn current_setting(identity: &Identity) -> ScalarUDF {
    let settings = Arc::clone(&identity.settings);
    function("current_setting", DataType::Utf8, move |columns, _| {
        let values = texts(columns, 0).into_iter().map(|name| match name {
            None => Ok(None),
            Some(name) => match settings.get(&name) {
                Ok(value) => Ok(Some(value)),
                // The second argument allows it to be missing; its absence does not.
                Err(_) if columns.len() > 1 => Ok(None),
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            },
        });
        Ok(text_column(values.collect::<Result<Vec<_>, _>>()?.into_iter()))
    })
}

/// `set_config(name, value, is_local)`
fn set_config(identity: &Identity) -> ScalarUDF {
    let settings = Arc::clone(&identity.settings);
    function("set_config", DataType::Utf8, move |columns, _| {
        let values = texts(columns, 0).into_iter().zip(texts(columns, 1)).map(|pair| match pair {
            (Some(name), Some(value)) => match settings.set(&name, &value) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            },
            _ => Ok(None),
        });
        Ok(text_column(values.collect::<Result<Vec<_>, _>>()?.into_iter()))
    })
}
