//! The decoder of the stage's encoding, and how its records are told apart.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use segue_formats::{
    CsvDecoder, CsvOptions, DecodeError, Header, JsonDecoder, RecordEnd, record_end,
};

use crate::options::Encoding;

/// Decodes records of text.
#[derive(Debug)]
pub(crate) enum TextDecoder {
    Json(JsonDecoder),
    Csv { decoder: CsvDecoder, options: CsvOptions, header: Header },
}

impl TextDecoder {
    /// A decoder for records with `schema`'s columns, of which those at `projection` are wanted.
    /// `None` when the encoding is no text.
    pub(crate) fn new(
        encoding: &Encoding,
        schema: SchemaRef,
        projection: &[usize],
    ) -> Option<TextDecoder> {
        Some(match encoding {
            Encoding::Json(options) => {
                TextDecoder::Json(JsonDecoder::new(schema, projection, *options))
            }
            Encoding::Csv(options) => TextDecoder::Csv {
                decoder: CsvDecoder::new(schema, projection, options.clone()),
                options: options.clone(),
                header: options.header,
            },
            Encoding::Parquet => return None,
        })
    }

    /// Whether the header must be read before any record.
    pub(crate) fn is_header_due(&self) -> bool {
        matches!(self, TextDecoder::Csv { header: Header::Present, .. })
    }

    pub(crate) fn set_header(&mut self, record: &[u8]) -> Result<(), DecodeError> {
        if let TextDecoder::Csv { decoder, header, .. } = self {
            decoder.set_header(record)?;
            *header = Header::Absent;
        }
        Ok(())
    }

    /// The end of the record that `bytes` begins with.
    #[inline]
    pub(crate) fn record_end(&self, bytes: &[u8]) -> Option<RecordEnd> {
        match self {
            TextDecoder::Json(_) => {
                memchr::memchr(b'\n', bytes).map(|end| RecordEnd { end, next: end + 1 })
            }
            TextDecoder::Csv { options, .. } => record_end(bytes, options),
        }
    }

    /// The same, with all of `bytes` as the last record when `take_rest`.
    #[inline]
    pub(crate) fn next_record(&self, bytes: &[u8], take_rest: bool) -> Option<RecordEnd> {
        let rest = RecordEnd { end: bytes.len(), next: bytes.len() };
        self.record_end(bytes).or_else(|| (take_rest && !bytes.is_empty()).then_some(rest))
    }

    #[inline]
    pub(crate) fn decode(&mut self, record: &[u8]) -> Result<(), DecodeError> {
        match self {
            TextDecoder::Json(decoder) => decoder.decode(record),
            TextDecoder::Csv { decoder, .. } => decoder.decode(record),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            TextDecoder::Json(decoder) => decoder.len(),
            TextDecoder::Csv { decoder, .. } => decoder.len(),
        }
    }

    pub(crate) fn finish(&mut self) -> RecordBatch {
        match self {
            TextDecoder::Json(decoder) => decoder.finish(),
            TextDecoder::Csv { decoder, .. } => decoder.finish(),
        }
    }
}
