//! What never changes: types, functions, operators and the rest, taken from a real PostgreSQL's catalog.

use std::sync::{Arc, LazyLock};

use datafusion_pg_catalog::pg_catalog::{ArrowTable, PgCatalogStaticTables};

static TABLES: LazyLock<PgCatalogStaticTables> = LazyLock::new(|| {
    PgCatalogStaticTables::try_new().expect("the embedded tables are well formed")
});

macro_rules! statics {
    ($($name:ident)*) => {
        /// The names of the tables.
        pub(super) const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// The table of this name.
        pub(super) fn table(name: &str) -> Option<&'static Arc<ArrowTable>> {
            match name {
                $(stringify!($name) => Some(&TABLES.$name),)*
                _ => None,
            }
        }
    };
}

statics! {
    pg_aggregate pg_am pg_amop pg_amproc pg_auth_members pg_cast pg_collation pg_conversion
    pg_db_role_setting pg_default_acl pg_depend pg_description pg_enum pg_event_trigger pg_extension
    pg_inherits pg_init_privs pg_language pg_largeobject pg_largeobject_metadata pg_opclass pg_operator
    pg_opfamily pg_partitioned_table pg_policy pg_proc pg_publication pg_publication_namespace
    pg_publication_rel pg_range pg_replication_origin pg_rewrite pg_seclabel pg_sequence pg_shdepend
    pg_shdescription pg_shseclabel pg_statistic pg_statistic_ext pg_statistic_ext_data pg_subscription
    pg_subscription_rel pg_tablespace pg_trigger pg_ts_config pg_ts_dict pg_ts_parser pg_ts_template
    pg_type pg_user_mapping
}

/// The table function `pg_get_keywords()`.
pub(crate) fn keywords() -> Arc<ArrowTable> {
    Arc::clone(&TABLES.pg_get_keywords)
}
