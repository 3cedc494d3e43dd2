//! Executes what expressions do with text, on the CPU or a GPU.

use arrow_schema::DataType;

use super::cast::{CastOptions, cast};
use super::engine;
use crate::array::{Parts, Side};
use crate::expr::plan::TextTest;
use crate::{DeviceArray, Error, Result, Stream};

/// Computes the test for each row. If one side is a dictionary and the other is the same for all rows, the
/// test runs on the dictionary's values, and each row gets the result of its key.
pub(super) async fn test_text(
    test: TextTest,
    left: Side<'_>,
    right: Side<'_>,
    rows: usize,
    stream: &Stream,
) -> Result<DeviceArray> {
    if let Some((column, values)) = dictionary(left) {
        let tested = test_text(test, Side::Column(values), right, values.len(), stream);
        return by_key(column, Box::pin(tested).await?, stream).await;
    }
    if let Some((column, values)) = dictionary(right) {
        let tested = test_text(test, left, Side::Column(values), values.len(), stream);
        return by_key(column, Box::pin(tested).await?, stream).await;
    }
    for side in [left, right] {
        if let Side::Column(column) = side
            && column.len() != rows
        {
            return Err(Error::invalid("expression", format!("{} texts for {rows} rows", column.len())));
        }
    }
    engine(stream).test_text(test, left, right, rows, stream).await
}

/// Some characters of each text. A dictionary keeps its keys.
pub(super) async fn substring(
    texts: &DeviceArray,
    start: i64,
    count: Option<u64>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let Some(values) = texts.dictionary() else {
        return engine(stream).substring(texts, start, count, stream).await;
    };
    let made = engine(stream).substring(values, start, count, stream).await?;
    DeviceArray::try_new(Parts { dictionary: Some(made), ..texts.clone().into_parts() })
}

fn dictionary(side: Side<'_>) -> Option<(&DeviceArray, &DeviceArray)> {
    let Side::Column(column) = side else { return None };
    Some((column, column.dictionary()?))
}

/// Looks up the result for each row's key.
async fn by_key(column: &DeviceArray, tested: DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let DataType::Dictionary(keys, _) = column.data_type() else { return Ok(tested) };
    let data_type = DataType::Dictionary(keys.clone(), Box::new(DataType::Boolean));
    let parts = Parts { data_type, dictionary: Some(tested), ..column.clone().into_parts() };
    cast(&DeviceArray::try_new(parts)?, &DataType::Boolean, &CastOptions::default(), stream).await
}
