//! The encoding is stored, so its bytes are pinned here.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Schema};

use super::{Column, decode_column, encode_row, group_of, hash_rows, vnode_of};

fn encoded(array: &ArrayRef, row: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_row(&[Column::new(array)], row, &mut bytes);
    bytes
}

#[test]
fn the_bytes_of_version_1() {
    let seven = [1, 7, 0, 0, 0, 0, 0, 0, 0];
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
    assert_eq!(encoded(&wide, 0), seven);
    assert_eq!(encoded(&narrow, 0), seven, "keys of different width join");
    assert_eq!(encoded(&narrow, 1), [0]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["", "ab"]));
    assert_eq!(encoded(&text, 0), [1, 0, 0, 0, 0]);
    assert_eq!(encoded(&text, 1), [1, 2, 0, 0, 0, b'a', b'b']);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.5]));
    assert_eq!(encoded(&floats, 0), encoded(&floats, 1));
    assert_eq!(encoded(&floats, 2), encoded(&floats, 3));
    assert_eq!(encoded(&floats, 4), [1, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
}

#[test]
fn hashes_and_vnodes_do_not_move_between_builds() {
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), Some(1), Some(-1), None]));
    let names: ArrayRef =
        Arc::new(StringArray::from(vec![Some("a"), None, Some("segue"), Some("")]));
    let fields = [
        Field::new("k", keys.data_type().clone(), true),
        Field::new("s", names.data_type().clone(), true),
    ];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![keys, names])
        .expect("columns");
    let vnodes =
        |key: &[usize]| hash_rows(&batch, key).into_iter().map(vnode_of).collect::<Vec<_>>();
    let found = [vnodes(&[0]), vnodes(&[1]), vnodes(&[0, 1])];
    assert_eq!(found, [[49, 160, 83, 196], [185, 196, 19, 209], [13, 133, 32, 199]]);
    assert_eq!((group_of(0), group_of(15), group_of(16), group_of(255)), (0, 0, 1, 15));
}

#[test]
fn key_columns_come_back_from_their_bytes() {
    let decimals = Decimal128Array::from(vec![Some(-12345), None, Some(0)]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(Int16Array::from(vec![Some(-3), None, Some(i16::MAX)])),
        Arc::new(Date32Array::from(vec![Some(-1), None, Some(20_000)])),
        Arc::new(
            TimestampMicrosecondArray::from(vec![Some(1), None, Some(-5)]).with_timezone("+00:00"),
        ),
        Arc::new(decimals.with_precision_and_scale(12, 2).expect("twelve digits")),
        Arc::new(Float32Array::from(vec![Some(1.25), None, Some(f32::INFINITY)])),
        Arc::new(StringArray::from(vec![Some("ä"), None, Some("")])),
    ];
    let views = columns.iter().map(Column::new).collect::<Vec<_>>();
    let rows = (0..3).map(|row| {
        let mut bytes = Vec::new();
        encode_row(&views, row, &mut bytes);
        bytes
    });
    let rows = rows.collect::<Vec<_>>();
    let mut rest = rows.iter().map(Vec::as_slice).collect::<Vec<_>>();
    for column in &columns {
        assert_eq!(&decode_column(column.data_type(), &mut rest), column);
    }
    assert!(rest.iter().all(|bytes| bytes.is_empty()), "every byte belongs to a column");
}
