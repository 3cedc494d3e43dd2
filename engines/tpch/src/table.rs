//! The eight tables, and the generator for the batches of one part.

use crate::BATCH_ROWS;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use std::fmt;
use std::str::FromStr;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

/// The size of the tables: 1 is about a gigabyte of text, and 6,001,215 lines of orders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale(f64);

impl Scale {
    /// Refuses factors for which the generator has no tables: fewer than ten suppliers, or more rows than its
    /// keys can count.
    pub fn new(factor: f64) -> Result<Self> {
        if (0.001..=100_000.0).contains(&factor) {
            Ok(Self(factor))
        } else {
            Err(DataFusionError::Configuration(format!(
                "scale factor {factor} is not within 0.001 and 100000"
            )))
        }
    }

    pub fn factor(self) -> f64 {
        self.0
    }
}

impl FromStr for Scale {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        let factor = text.parse();
        Self::new(
            factor.map_err(|_| DataFusionError::Configuration(format!("'{text}' is not a scale factor")))?,
        )
    }
}

/// One of TPC-H's eight tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Customer,
    Lineitem,
    Nation,
    Orders,
    Part,
    Partsupp,
    Region,
    Supplier,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Table {
    pub const ALL: [Table; 8] = [
        Table::Customer,
        Table::Lineitem,
        Table::Nation,
        Table::Orders,
        Table::Part,
        Table::Partsupp,
        Table::Region,
        Table::Supplier,
    ];

    /// The table's name in queries.
    pub fn name(self) -> &'static str {
        match self {
            Table::Customer => "customer",
            Table::Lineitem => "lineitem",
            Table::Nation => "nation",
            Table::Orders => "orders",
            Table::Part => "part",
            Table::Partsupp => "partsupp",
            Table::Region => "region",
            Table::Supplier => "supplier",
        }
    }

    pub fn schema(self) -> SchemaRef {
        match self {
            Table::Customer => CustomerArrow::schema_ref(),
            Table::Lineitem => LineItemArrow::schema_ref(),
            Table::Nation => NationArrow::schema_ref(),
            Table::Orders => OrderArrow::schema_ref(),
            Table::Part => PartArrow::schema_ref(),
            Table::Partsupp => PartSuppArrow::schema_ref(),
            Table::Region => RegionArrow::schema_ref(),
            Table::Supplier => SupplierArrow::schema_ref(),
        }
    }

    /// The number of parts that the table can be made in, at most `wanted`: two tables have the same few rows
    /// at every scale, and one part.
    pub fn parts(self, wanted: usize) -> usize {
        match self {
            Table::Nation | Table::Region => 1,
            _ => wanted.clamp(1, 1024),
        }
    }

    /// The batches of one of `parts` parts, counted from 0; each is made on demand.
    pub fn batches(
        self,
        scale: Scale,
        part: usize,
        parts: usize,
    ) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
        let parts = self.parts(parts) as i32;
        let (factor, part) = (scale.factor(), part as i32 + 1); // the generator counts from 1
        macro_rules! made {
            ($batches:ident, $rows:ident) => {
                Box::new(
                    $batches::new($rows::new(factor, part, parts))
                        .with_batch_size(BATCH_ROWS)
                        .map(|batch| batch.map_err(DataFusionError::from)),
                )
            };
        }
        match self {
            Table::Customer => made!(CustomerArrow, CustomerGenerator),
            Table::Lineitem => made!(LineItemArrow, LineItemGenerator),
            Table::Nation => made!(NationArrow, NationGenerator),
            Table::Orders => made!(OrderArrow, OrderGenerator),
            Table::Part => made!(PartArrow, PartGenerator),
            Table::Partsupp => made!(PartSuppArrow, PartSuppGenerator),
            Table::Region => made!(RegionArrow, RegionGenerator),
            Table::Supplier => made!(SupplierArrow, SupplierGenerator),
        }
    }
}
