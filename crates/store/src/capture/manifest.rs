//! The *manifest* of a capture: which files it is made of and what each must hold.

use std::path::{Path, PathBuf};

use arrow::datatypes::Schema;
use segue_types::{ObjectId, StageIndex, sql_type_of};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// A complete capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub object: ObjectId,
    pub stage: StageIndex,
    pub attempt: u32,
    pub chunks: Vec<Chunk>,
    pub rows: u64,
    /// What the same snapshot said of where the next stage starts, in the engine's own terms.
    pub handoff: Option<serde_json::Value>,
    pub schema_fingerprint: u64,
}

/// One chunk file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The file's name in the attempt's directory.
    pub file: String,
    pub rows: u64,
    pub bytes: u64,
    /// xxh3-64 of the whole file.
    pub checksum: u64,
}

impl Manifest {
    pub(crate) fn empty(
        object: ObjectId,
        stage: StageIndex,
        attempt: u32,
        schema: &Schema,
    ) -> Manifest {
        Manifest {
            object,
            stage,
            attempt,
            chunks: Vec::new(),
            rows: 0,
            handoff: None,
            schema_fingerprint: schema_fingerprint(schema),
        }
    }

    /// The size of all chunk files.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes).sum()
    }

    pub(crate) fn directory(&self, root: &Path) -> PathBuf {
        root.join(self.object.to_string())
            .join(self.stage.to_string())
            .join(self.attempt.to_string())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.check().expect("a finished attempt is consistent");
        serde_json::to_vec(self).expect("a manifest is plain data")
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest, String> {
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        manifest.check()?;
        Ok(manifest)
    }

    /// What holds of every manifest, asserted when it is written and again when it is read.
    fn check(&self) -> Result<(), String> {
        let rows: u64 = self.chunks.iter().map(|chunk| chunk.rows).sum();
        if rows != self.rows {
            return Err(format!("{rows} rows in chunks, {} in all", self.rows));
        }
        match self.chunks.iter().find(|chunk| chunk.rows == 0) {
            Some(empty) => Err(format!("chunk \"{}\" is empty", empty.file)),
            None => Ok(()),
        }
    }
}

/// A stable digest of names, SQL types and nullability. Not of Arrow's own text or metadata order,
/// which may change from version to version and from run to run.
pub fn schema_fingerprint(schema: &Schema) -> u64 {
    let mut hash = Xxh3::new();
    for field in schema.fields() {
        let ty = sql_type_of(field)
            .map_or_else(|| field.data_type().to_string(), |sql_type| sql_type.to_string());
        let nullable = if field.is_nullable() { "null" } else { "not null" };
        for text in [field.name().as_str(), &ty, nullable] {
            hash.update(&(text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use segue_types::SqlType;

    use super::schema_fingerprint;

    #[test]
    fn a_fingerprint_is_the_same_for_ever_and_differs_by_name_type_and_null() {
        let of = |name: &str, ty: SqlType, nullable| {
            schema_fingerprint(&Schema::new(vec![ty.field(name, nullable)]))
        };
        let one = of("a", SqlType::Uuid, true);
        assert_eq!(
            one, 13_029_674_921_805_605_946,
            "written into manifests, so it must not change"
        );
        let others = [
            of("b", SqlType::Uuid, true),
            of("a", SqlType::Text, true),
            of("a", SqlType::Uuid, false),
        ];
        assert!(!others.contains(&one));
    }
}
