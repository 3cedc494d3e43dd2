//! Type names of pyarrow, polars, numpy, pandas, duckdb and arrow-rs.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};

const DAYS_AND_MORE: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Names of one word, in lower case and without underscores. If libraries disagree, pyarrow's meaning holds:
/// `float` has 32 bits.
pub const WORDS: &[(&str, DataType)] = &[
    ("null", DataType::Null),
    ("bool", DataType::Boolean),
    ("boolean", DataType::Boolean),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("int", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("i8", DataType::Int8),
    ("i16", DataType::Int16),
    ("i32", DataType::Int32),
    ("i64", DataType::Int64),
    ("u8", DataType::UInt8),
    ("u16", DataType::UInt16),
    ("u32", DataType::UInt32),
    ("u64", DataType::UInt64),
    ("tinyint", DataType::Int8),
    ("smallint", DataType::Int16),
    ("integer", DataType::Int32),
    ("bigint", DataType::Int64),
    ("utinyint", DataType::UInt8),
    ("usmallint", DataType::UInt16),
    ("uinteger", DataType::UInt32),
    ("ubigint", DataType::UInt64),
    ("float16", DataType::Float16),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
    ("f16", DataType::Float16),
    ("f32", DataType::Float32),
    ("f64", DataType::Float64),
    ("halffloat", DataType::Float16),
    ("float", DataType::Float32),
    ("double", DataType::Float64),
    ("string", DataType::Utf8),
    ("str", DataType::Utf8),
    ("utf8", DataType::Utf8),
    ("varchar", DataType::Utf8),
    ("text", DataType::Utf8),
    ("largestring", DataType::LargeUtf8),
    ("largeutf8", DataType::LargeUtf8),
    ("stringview", DataType::Utf8View),
    ("utf8view", DataType::Utf8View),
    ("binary", DataType::Binary),
    ("bytes", DataType::Binary),
    ("blob", DataType::Binary),
    ("largebinary", DataType::LargeBinary),
    ("binaryview", DataType::BinaryView),
    ("date", DataType::Date32),
    ("date32", DataType::Date32),
    ("date64", DataType::Date64),
    ("time", DataType::Time64(TimeUnit::Microsecond)),
    ("timestamp", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ("datetime", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ("duration", DataType::Duration(TimeUnit::Microsecond)),
    ("timedelta", DataType::Duration(TimeUnit::Microsecond)),
    ("monthinterval", DataType::Interval(IntervalUnit::YearMonth)),
    ("daytimeinterval", DataType::Interval(IntervalUnit::DayTime)),
    ("monthdaynanointerval", DAYS_AND_MORE),
    ("interval", DAYS_AND_MORE),
];

/// The limit on the depth of nested types: more than any program needs, and far less than the stack allows.
const DEPTH: usize = 64;

/// Parses the name of a type; `None` if it is not one.
pub fn parse(name: &str) -> Option<DataType> {
    let mut text = Text { rest: name, depth: 0 };
    let found = text.data_type().filter(|_| text.rest.trim().is_empty());
    found.or_else(|| arrow_rs(name))
}

/// Parses a name as arrow-rs writes it. That parser recurses at parentheses, so their number is limited.
fn arrow_rs(name: &str) -> Option<DataType> {
    if name.matches('(').count() > DEPTH { None } else { name.parse().ok() }
}

/// The part of a name that is still to be read.
struct Text<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Text<'a> {
    /// Skips this text if it comes next; `None` if it does not.
    fn passes(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(expected)?;
        Some(())
    }

    /// Reads up to one of these characters, or to the end.
    fn up_to(&mut self, ends: &[char]) -> &'a str {
        let (found, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        found.trim()
    }

    /// Reads the contents of a pair of brackets, if one comes next.
    fn bracket(&mut self) -> Option<&'a str> {
        let close = match self.rest.trim_start().chars().next()? {
            '[' => ']',
            '(' => ')',
            _ => return None,
        };
        self.rest = &self.rest.trim_start()[1..];
        let inner = self.up_to(&[close]);
        self.rest = self.rest.strip_prefix(close)?;
        Some(inner)
    }

    fn data_type(&mut self) -> Option<DataType> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        self.rest = self.rest.trim_start();
        let word = self.up_to(&['[', '(', '<', '>', ',', ' ', ':', '=']).to_lowercase().replace('_', "");
        let found = match word.as_str() {
            "timestamp" | "datetime" | "datetime64" => self.timestamp()?,
            "duration" | "timedelta" | "timedelta64" => DataType::Duration(self.unit()?),
            "time32" => DataType::Time32(self.unit().filter(|unit| !is_fine(unit))?),
            "time64" => DataType::Time64(self.unit().filter(is_fine)?),
            "decimal" | "decimal32" | "decimal64" | "decimal128" | "decimal256" => self.decimal(&word)?,
            "fixedsizebinary" => DataType::FixedSizeBinary(self.bracket()?.parse().ok()?),
            "binary" if self.rest.starts_with(['[', '(']) => {
                DataType::FixedSizeBinary(self.bracket()?.parse().ok()?)
            }
            "list" => DataType::List(self.only_item()?),
            "largelist" => DataType::LargeList(self.only_item()?),
            "listview" => DataType::ListView(self.only_item()?),
            "largelistview" => DataType::LargeListView(self.only_item()?),
            "fixedsizelist" => DataType::FixedSizeList(self.only_item()?, self.bracket()?.parse().ok()?),
            "struct" => DataType::Struct(self.fields()?),
            "map" => self.map()?,
            "dictionary" => self.dictionary()?,
            "runendencoded" => self.run_ends()?,
            "date32" | "date64" => {
                // pyarrow appends the unit.
                if self.rest.starts_with('[') {
                    self.bracket()?;
                }
                if word == "date32" { DataType::Date32 } else { DataType::Date64 }
            }
            word => WORDS.iter().find(|(known, _)| *known == word)?.1.clone(),
        };
        self.depth -= 1;
        Some(found)
    }

    fn unit(&mut self) -> Option<TimeUnit> {
        self.bracket().map_or(Some(TimeUnit::Microsecond), unit)
    }

    fn timestamp(&mut self) -> Option<DataType> {
        let Some(inside) = self.bracket() else {
            return Some(DataType::Timestamp(TimeUnit::Microsecond, None));
        };
        let (of, zone) = match inside.split_once(',') {
            Some((of, zone)) => (of, zone.trim()),
            None => (inside, "None"),
        };
        let zone = zone.strip_prefix("tz=").unwrap_or(zone).trim_matches(['"', '\'']);
        Some(DataType::Timestamp(unit(of)?, (zone != "None").then(|| zone.into())))
    }

    fn decimal(&mut self, word: &str) -> Option<DataType> {
        let (precision, scale) = self.bracket()?.split_once(',')?;
        let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
        Some(match word {
            "decimal32" => DataType::Decimal32(precision, scale),
            "decimal64" => DataType::Decimal64(precision, scale),
            "decimal256" => DataType::Decimal256(precision, scale),
            _ => DataType::Decimal128(precision, scale),
        })
    }

    /// Reads `type` or `name: type`; `not null` may follow either.
    fn field(&mut self, name: &str) -> Option<Field> {
        let start = self.rest;
        let before = self.up_to(&[':', '<', '[', '(', ',', '>']);
        let name = match self.rest.strip_prefix(':') {
            Some(rest) => {
                self.rest = rest.trim_start();
                before
            }
            None => {
                self.rest = start.trim_start();
                name
            }
        };
        let data_type = self.data_type()?;
        let nullable = self.passes("not null").is_none();
        Some(Field::new(name, data_type, nullable))
    }

    fn only_item(&mut self) -> Option<Arc<Field>> {
        self.passes("<")?;
        let item = self.field("item")?;
        self.passes(">")?;
        Some(Arc::new(item))
    }

    fn fields(&mut self) -> Option<Fields> {
        self.passes("<")?;
        let mut fields = vec![];
        while self.passes(">").is_none() {
            if !fields.is_empty() {
                self.passes(",")?;
            }
            fields.push(self.field("")?);
        }
        Some(fields.into())
    }

    fn map(&mut self) -> Option<DataType> {
        self.passes("<")?;
        let key = self.field("keys")?.with_nullable(false);
        self.passes(",")?;
        let value = self.field("values")?;
        let sorted = self.passes(",").and_then(|()| self.passes("keys_sorted")).is_some();
        self.passes(">")?;
        let entries = DataType::Struct([key, value].into_iter().collect());
        Some(DataType::Map(Arc::new(Field::new("entries", entries, false)), sorted))
    }

    /// Reads `indices, values`, or pyarrow's form `values=…, indices=…, ordered=0`.
    fn dictionary(&mut self) -> Option<DataType> {
        self.passes("<")?;
        let by_name = self.passes("values=").is_some();
        let first = self.data_type()?;
        self.passes(",")?;
        if by_name {
            self.passes("indices=")?;
        }
        let second = self.data_type()?;
        self.passes(", ordered=0");
        self.passes(">")?;
        let (keys, values) = if by_name { (second, first) } else { (first, second) };
        keys.is_dictionary_key_type().then(|| DataType::Dictionary(Box::new(keys), Box::new(values)))
    }

    fn run_ends(&mut self) -> Option<DataType> {
        self.passes("<")?;
        let ends = self.field("run_ends")?.with_nullable(false);
        self.passes(",")?;
        let values = self.field("values")?;
        self.passes(">")?;
        ends.data_type().is_run_ends_type().then(|| DataType::RunEndEncoded(Arc::new(ends), Arc::new(values)))
    }
}

/// Whether times of a day in a unit take 64 bits.
fn is_fine(unit: &TimeUnit) -> bool {
    matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond)
}

fn unit(name: &str) -> Option<TimeUnit> {
    Some(match name.trim() {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" | "μs" | "µs" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}
