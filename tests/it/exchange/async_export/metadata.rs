//! Tests the metadata of exported asynchronous streams and of their batches.

use super::*;

#[test]
fn metadata_goes_along_with_the_stream() {
    let metadata = BTreeMap::from([("rows".to_string(), "30".to_string()), ("ß".into(), "".into())]);
    let (consumer, handler) = RawConsumer::new(Manner::default());
    let mut export = send(0, NO_ERROR, &Releases::default(), handler).with_metadata(&metadata);
    assert!(settle(&mut export).is_pending());
    assert_eq!(consumer.told(), [Told::Schema(metadata.clone())]);

    let (reader, handler) = import_async_batches(&Device::cpu(), 1);
    let mut export = send(0, NO_ERROR, &Releases::default(), handler).with_metadata(&metadata);
    assert_eq!(reader.metadata(), BTreeMap::new());
    assert_eq!(settle(&mut export), Poll::Ready(Ok(())));
    assert_eq!(reader.metadata(), metadata);
}

#[test]
fn metadata_goes_along_with_each_batch() {
    let metadata = |i: usize| BTreeMap::from([("batch".to_string(), i.to_string()), ("ß".into(), "".into())]);
    let releases = Releases::default();
    let given = |i: usize| match i {
        1 => counted(&releases),
        i => counted(&releases).with_metadata(metadata(i).into()),
    };
    let (consumer, handler) = RawConsumer::new(Manner { asks: Some(9), ..Manner::default() });
    let batches: Vec<_> = (0..3).map(|i| Ok(given(i))).collect();
    let mut export = export_async_iterator(sent(DeviceType::Cpu, batches.into_iter()), handler);
    assert_eq!(settle(&mut export), Poll::Ready(Ok(())));
    assert_eq!(consumer.notes.lock().unwrap().said, [metadata(0), BTreeMap::new(), metadata(2)]);
    (0..3).for_each(|_| look(&consumer));
}
