//! The options of a datagen stage: RisingWave's, and `rows`.

use segue_connect::{IncludeKind, OptionSpec, ReadConfig, RowFormat, Start};
use segue_types::{Boundedness, SqlState, UserError};

use crate::declared_schema;
use crate::fields::Fields;

pub(crate) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "fields.*",
        required: false,
        secret: false,
        doc: "fields.<column>.{kind, start, end, min, max, length, max_past, basetime, seed}",
    },
    OptionSpec {
        name: "datagen.rows.per.second",
        required: false,
        secret: false,
        doc: "how fast rows come to be, over all splits (default 10); 0 is as fast as they are read",
    },
    OptionSpec {
        name: "datagen.split.num",
        required: false,
        secret: false,
        doc: "how many splits there are (default 1)",
    },
    OptionSpec {
        name: "rows",
        required: false,
        secret: false,
        doc: "makes the stage bounded: how many rows there are, over all splits",
    },
];

const ROWS_PER_S_DEFAULT: f64 = 10.0;
const SPLITS_MAX: u64 = 256;

#[derive(Clone, Debug)]
pub(crate) struct DatagenOptions {
    pub(crate) fields: Fields,
    /// Over all splits; `None` is without a pause.
    pub(crate) rows_per_s: Option<f64>,
    pub(crate) splits: u64,
    /// How many rows there are over all splits; `None` in a continuous read.
    pub(crate) rows: Option<u64>,
}

impl DatagenOptions {
    pub(crate) fn parse(config: &ReadConfig) -> Result<DatagenOptions, UserError> {
        check_clauses(config)?;
        let given = &config.options;
        let splits = given.parse("datagen.split.num", "a number of splits")?.unwrap_or(1);
        if !(1..=SPLITS_MAX).contains(&splits) {
            return Err(invalid("datagen.split.num", &splits.to_string())
                .with_hint(format!("Give a number from 1 to {SPLITS_MAX}.")));
        }
        let rows_per_s = given
            .parse("datagen.rows.per.second", "a number of rows")?
            .unwrap_or(ROWS_PER_S_DEFAULT);
        if !rows_per_s.is_finite() || rows_per_s < 0.0 {
            return Err(invalid("datagen.rows.per.second", &rows_per_s.to_string())
                .with_hint("Give a number of rows, or 0 for no limit."));
        }
        let fields = Fields::parse(&declared_schema(config), given)?;
        let rows = [given.parse("rows", "a number of rows")?, fields.rows()];
        Ok(DatagenOptions {
            fields,
            rows_per_s: (rows_per_s > 0.0).then_some(rows_per_s),
            splits,
            rows: rows.into_iter().flatten().min(),
        })
    }

    pub(crate) fn boundedness(&self) -> Boundedness {
        match self.rows {
            Some(_) => Boundedness::Bounded,
            None => Boundedness::Continuous,
        }
    }

    /// How many of all rows belong to a split.
    pub(crate) fn rows_of_split(&self, split: u64) -> Option<u64> {
        self.rows.map(|rows| share(rows, split, self.splits))
    }
}

/// How many of the first `rows` rows belong to split `split` of `splits`.
pub(crate) fn share(rows: u64, split: u64, splits: u64) -> u64 {
    rows.saturating_sub(split).div_ceil(splits)
}

pub(crate) fn invalid(option: &str, value: &str) -> UserError {
    let message = format!("invalid value for option \"{option}\": \"{value}\"");
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn check_clauses(config: &ReadConfig) -> Result<(), UserError> {
    if config.format.rows != RowFormat::Plain {
        return Err(UserError::unsupported("connector \"datagen\" has FORMAT PLAIN only"));
    }
    if !matches!(config.format.encode.as_str(), "json" | "native") {
        return Err(UserError::unsupported("connector \"datagen\" has ENCODE JSON only"));
    }
    if !matches!(config.start, Start::Earliest | Start::Latest | Start::Offsets(_)) {
        return Err(UserError::unsupported(
            "connector \"datagen\" cannot derive its start from another stage or a time",
        )
        .with_hint("Give START AT EARLIEST or START AT OFFSETS."));
    }
    if config.stop.is_some() {
        return Err(UserError::unsupported("connector \"datagen\" has no STOP AT")
            .with_hint("Set option \"rows\", or the end of a sequence."));
    }
    let known = [IncludeKind::Partition, IncludeKind::Offset, IncludeKind::Stage];
    match config.includes.iter().find(|include| !known.contains(&include.kind)) {
        Some(include) => Err(UserError::unsupported(format!(
            "INCLUDE column \"{}\" is not available from connector \"datagen\"",
            include.column
        ))
        .with_hint("Available are partition, offset and stage.")),
        None => Ok(()),
    }
}
