//! Functions whose answer is always the same.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, new_null_array};
use arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;

use super::simple::function;

/// There is one role, and it may do everything and sees everything.
const TRUE: &[&str] = &[
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_foreign_data_wrapper_privilege",
    "has_function_privilege",
    "has_language_privilege",
    "has_schema_privilege",
    "has_sequence_privilege",
    "has_server_privilege",
    "has_table_privilege",
    "has_tablespace_privilege",
    "has_type_privilege",
    "pg_collation_is_visible",
    "pg_conversion_is_visible",
    "pg_function_is_visible",
    "pg_has_role",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_opfamily_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_type_is_visible",
];

const FALSE: &[&str] = &[
    "pg_advisory_unlock",
    "pg_cancel_backend",
    "pg_index_has_property",
    "pg_is_in_recovery",
    "pg_is_other_temp_schema",
    "pg_relation_is_publishable",
    "pg_terminate_backend",
    "pg_try_advisory_lock",
    "row_security_active",
];

/// Nothing of this kind exists.
const NULL_TEXT: &[&str] = &[
    "col_description",
    "inet_client_addr",
    "inet_server_addr",
    "obj_description",
    "pg_get_expr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_function_sqlbody",
    "pg_get_functiondef",
    "pg_get_partition_constraintdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_partition_ancestors",
    "shobj_description",
];

const EMPTY_TEXT: &[&str] =
    &["pg_advisory_lock", "pg_advisory_unlock_all", "pg_tablespace_location"];

const UTF8: &[&str] = &["getdatabaseencoding", "pg_client_encoding", "pg_encoding_to_char"];

const ZERO: &[&str] = &[
    "pg_database_size",
    "pg_indexes_size",
    "pg_relation_size",
    "pg_stat_get_numscans",
    "pg_table_size",
    "pg_tablespace_size",
    "pg_total_relation_size",
    "txid_current",
];

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let booleans =
        TRUE.iter().map(|name| (*name, true)).chain(FALSE.iter().map(|name| (*name, false))).map(
            |(name, value)| {
                function(name, DataType::Boolean, move |_, rows| {
                    let array: ArrayRef = Arc::new(BooleanArray::from(vec![value; rows]));
                    Ok(array)
                })
            },
        );
    let texts = EMPTY_TEXT
        .iter()
        .map(|name| (*name, ""))
        .chain(UTF8.iter().map(|name| (*name, "UTF8")))
        .map(|(name, value)| {
            function(name, DataType::Utf8, move |_, rows| {
                let array: ArrayRef = Arc::new(StringArray::from(vec![value; rows]));
                Ok(array)
            })
        });
    let nulls = NULL_TEXT.iter().map(|name| {
        function(name, DataType::Utf8, |_, rows| Ok(new_null_array(&DataType::Utf8, rows)))
    });
    let zeros = ZERO.iter().map(|name| {
        function(name, DataType::Int64, |_, rows| {
            let array: ArrayRef = Arc::new(Int64Array::from(vec![0; rows]));
            Ok(array)
        })
    });
    let no_schema = function("pg_my_temp_schema", DataType::Int32, |_, rows| {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![0; rows]));
        Ok(array)
    });
    booleans.chain(texts).chain(nulls).chain(zeros).chain([no_schema]).collect()
}
