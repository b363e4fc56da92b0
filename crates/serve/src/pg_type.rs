//! The PostgreSQL type of a column: OID, size and modifier, as RowDescription and pg_attribute show them.
//!
//! Columns of pg_catalog are marked by field metadata as `oid`, `regclass` … or `"char"`.

use arrow::datatypes::Field;
use pgwire::messages::data::{FieldDescription, RowDescription};
use postgres_types::Type;
use segue_types::{SqlType, sql_type_of};

use crate::encode::Format;

/// Metadata key of oid-like columns in the catalog tables; its value is `oid`, `regclass`, …
pub(crate) const OID_KEY: &str = "pg.oid_alias";
/// Metadata key of `"char"` columns in the catalog tables.
pub(crate) const CHAR_KEY: &str = "pg.char";

/// The type that the client is told.
pub(crate) fn pg_type_of(field: &Field) -> Type {
    let metadata = field.metadata();
    if let Some(kind) = metadata.get(OID_KEY) {
        return match kind.as_str() {
            "regproc" => Type::REGPROC,
            "regclass" => Type::REGCLASS,
            "regtype" => Type::REGTYPE,
            "regnamespace" => Type::REGNAMESPACE,
            "regrole" => Type::REGROLE,
            _ => Type::OID,
        };
    }
    if metadata.contains_key(CHAR_KEY) {
        return Type::CHAR;
    }
    sql_type_of(field).as_ref().map_or(Type::TEXT, pg_type)
}

/// The PostgreSQL type of a SQL type.
pub(crate) fn pg_type(ty: &SqlType) -> Type {
    match ty {
        SqlType::Boolean => Type::BOOL,
        SqlType::SmallInt => Type::INT2,
        SqlType::Integer => Type::INT4,
        SqlType::BigInt => Type::INT8,
        SqlType::Real => Type::FLOAT4,
        SqlType::Double => Type::FLOAT8,
        SqlType::Numeric { .. } => Type::NUMERIC,
        SqlType::Text => Type::TEXT,
        SqlType::Bytea => Type::BYTEA,
        SqlType::Date => Type::DATE,
        SqlType::Time => Type::TIME,
        SqlType::Timestamp => Type::TIMESTAMP,
        SqlType::Timestamptz => Type::TIMESTAMPTZ,
        SqlType::Interval => Type::INTERVAL,
        SqlType::Uuid => Type::UUID,
        SqlType::Jsonb => Type::JSONB,
        SqlType::Struct(_) => Type::RECORD,
        SqlType::Array(element) => array_type(element),
    }
}

fn array_type(element: &SqlType) -> Type {
    match element {
        SqlType::Boolean => Type::BOOL_ARRAY,
        SqlType::SmallInt => Type::INT2_ARRAY,
        SqlType::Integer => Type::INT4_ARRAY,
        SqlType::BigInt => Type::INT8_ARRAY,
        SqlType::Real => Type::FLOAT4_ARRAY,
        SqlType::Double => Type::FLOAT8_ARRAY,
        SqlType::Numeric { .. } => Type::NUMERIC_ARRAY,
        SqlType::Text => Type::TEXT_ARRAY,
        SqlType::Bytea => Type::BYTEA_ARRAY,
        SqlType::Date => Type::DATE_ARRAY,
        SqlType::Time => Type::TIME_ARRAY,
        SqlType::Timestamp => Type::TIMESTAMP_ARRAY,
        SqlType::Timestamptz => Type::TIMESTAMPTZ_ARRAY,
        SqlType::Interval => Type::INTERVAL_ARRAY,
        SqlType::Uuid => Type::UUID_ARRAY,
        SqlType::Jsonb => Type::JSONB_ARRAY,
        SqlType::Struct(_) => Type::RECORD_ARRAY,
        // PostgreSQL has one array type for every number of dimensions.
        SqlType::Array(inner) => array_type(inner),
    }
}

/// The SQL type that a client's parameter type names. `None`: unknown to us, taken as text.
pub(crate) fn sql_type_of_oid(oid: u32) -> Option<SqlType> {
    let ty = Type::from_oid(oid)?;
    if let postgres_types::Kind::Array(element) = ty.kind() {
        return Some(SqlType::Array(Box::new(sql_type_of_oid(element.oid())?)));
    }
    Some(match ty {
        Type::BOOL => SqlType::Boolean,
        Type::INT2 => SqlType::SmallInt,
        Type::INT4 | Type::OID | Type::REGCLASS | Type::REGTYPE | Type::REGPROC => SqlType::Integer,
        Type::INT8 => SqlType::BigInt,
        Type::FLOAT4 => SqlType::Real,
        Type::FLOAT8 => SqlType::Double,
        Type::NUMERIC => SqlType::NUMERIC,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR => SqlType::Text,
        Type::BYTEA => SqlType::Bytea,
        Type::DATE => SqlType::Date,
        Type::TIME => SqlType::Time,
        Type::TIMESTAMP => SqlType::Timestamp,
        Type::TIMESTAMPTZ => SqlType::Timestamptz,
        Type::INTERVAL => SqlType::Interval,
        Type::UUID => SqlType::Uuid,
        Type::JSON | Type::JSONB => SqlType::Jsonb,
        _ => return None,
    })
}

/// The size of a type's values; -1 when it varies.
pub(crate) fn type_size(ty: &Type) -> i16 {
    match *ty {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE | Type::OID => 4,
        Type::REGPROC | Type::REGCLASS | Type::REGTYPE | Type::REGNAMESPACE | Type::REGROLE => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => 8,
        Type::INTERVAL | Type::UUID => 16,
        _ => -1,
    }
}

/// The type modifier: precision and scale of a numeric, else -1.
pub(crate) fn type_modifier(ty: &SqlType) -> i32 {
    match ty {
        SqlType::Numeric { precision, scale } if *ty != SqlType::NUMERIC => {
            ((i32::from(*precision) << 16) | (i32::from(*scale) & 0x7ff)) + 4
        }
        SqlType::Array(element) => type_modifier(element),
        _ => -1,
    }
}

/// The description of a result's columns.
pub(crate) fn row_description(
    fields: &arrow::datatypes::Fields,
    formats: &[Format],
) -> RowDescription {
    let describe = |(index, field): (usize, &arrow::datatypes::FieldRef)| {
        let ty = pg_type_of(field);
        let modifier = sql_type_of(field).as_ref().map_or(-1, type_modifier);
        let format = Format::of_column(formats, index);
        FieldDescription::new(
            field.name().clone(),
            0,
            0,
            ty.oid(),
            type_size(&ty),
            modifier,
            format as i16,
        )
    };
    RowDescription::new(fields.iter().enumerate().map(describe).collect())
}

#[cfg(test)]
mod tests {
    use segue_types::SqlType;

    use super::{pg_type, sql_type_of_oid, type_modifier};

    #[test]
    fn a_parameter_of_every_type_keeps_its_type() {
        for ty in [
            SqlType::Boolean,
            SqlType::SmallInt,
            SqlType::Integer,
            SqlType::BigInt,
            SqlType::Real,
            SqlType::Double,
            SqlType::NUMERIC,
            SqlType::Text,
            SqlType::Bytea,
            SqlType::Date,
            SqlType::Time,
            SqlType::Timestamp,
            SqlType::Timestamptz,
            SqlType::Interval,
            SqlType::Uuid,
            SqlType::Jsonb,
        ] {
            assert_eq!(sql_type_of_oid(pg_type(&ty).oid()), Some(ty.clone()));
            let array = SqlType::Array(Box::new(ty));
            assert_eq!(sql_type_of_oid(pg_type(&array).oid()), Some(array));
        }
    }

    #[test]
    fn numeric_shows_precision_and_scale_as_postgres_packs_them() {
        assert_eq!(type_modifier(&SqlType::Numeric { precision: 12, scale: 2 }), 786_438);
        assert_eq!(type_modifier(&SqlType::NUMERIC), -1);
    }
}
