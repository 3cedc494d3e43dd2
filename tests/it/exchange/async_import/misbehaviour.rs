//! Tests imported asynchronous streams whose producer breaks a rule.

use super::*;

#[test]
fn callbacks_out_of_turn_are_errors() {
    let releases = Releases::default();
    // Messages before the schema.
    for end in [false, true] {
        let (mut reader, mut sender) = reader(1);
        let code = if end { sender.end() } else { sender.task(Ok(array(0..5, &releases))) };
        assert_eq!((code, sender.schema(schema())), (0, 125));
        assert_same_end(next(&mut reader), out_of_spec("handler.on_next_task", "called before on_schema"));
        sender.release();
    }
    assert_eq!(releases.count(), STRUCTS);
    // A second schema is an error; earlier batches are kept.
    let (mut reader, mut sender) = reader(2);
    assert_eq!(sender.schema(schema()), 0);
    assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    assert_eq!(sender.schema(schema()), 22);
    assert_eq!(sender.asked.lock().unwrap().cancels, 1);
    assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    assert_rows(next(&mut reader), 0..5);
    assert_same_end(next(&mut reader), out_of_spec("handler.on_schema", "called again"));
    sender.release();
    assert_eq!(releases.count(), 3 * STRUCTS);
    assert_eq!(sender.asked.lock().unwrap().cancels, 1);
    // Messages after the end, and after the release, while the reader still exists.
    let (mut reader, mut sender) = self::reader(2);
    assert_eq!((sender.schema(schema()), sender.end()), (0, 0));
    assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    assert!(next(&mut reader).is_none());
    sender.release();
    assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    sender.error(5, None, None);
    assert_eq!(sender.schema(schema()), 22);
    assert!(next(&mut reader).is_none());
    assert_eq!(releases.count(), 5 * STRUCTS);
}

#[test]
fn what_begins_wrongly_is_refused() {
    type Bend = fn(&mut super::super::foreign_async::RawProducer);
    let bends: [(Bend, &str); 3] = [
        (|producer| producer.request = None, "producer.request: null"),
        (|producer| producer.device_type = 99, "device type 99"),
        (
            |producer| producer.additional_metadata = [0xffu8; 4].as_ptr().cast(),
            "additional_metadata: malformed",
        ),
    ];
    for (bend, words) in bends {
        let (mut reader, mut sender) = reader(1);
        sender.bend(bend);
        assert_eq!(sender.schema(schema()), 22);
        sender.release();
        let Some(Err(error)) = next(&mut reader) else { panic!("{words}") };
        assert!(error.to_string().contains(words), "{error}");
    }
    // No structs; no type of Arrow's; a released schema; no schema; no producer.
    let wrong = Field::new("a", DataType::FixedSizeBinary(-1), true);
    let wrong = DataType::Struct([wrong].into_iter().collect());
    let cases: [(Option<FFI_ArrowSchema>, bool, &str); 5] = [
        (Some(super::super::foreign::schema(&DataType::Int32)), true, "schema"),
        (Some(super::super::foreign::schema(&wrong)), true, "not an Arrow type"),
        (Some(FFI_ArrowSchema::empty()), true, "released"),
        (None, true, "on_schema: null"),
        (Some(schema()), false, "producer: null"),
    ];
    for (given, with_producer, words) in cases {
        let (mut reader, mut sender) = reader(1);
        assert_eq!(sender.raw_schema(given, with_producer), 22, "{words}");
        sender.release();
        let Some(Err(error)) = next(&mut reader) else { panic!("{words}") };
        assert!(error.to_string().contains(words), "{error}");
        assert!(sender.asked.lock().unwrap().requests.is_empty());
    }
    // A producer without a cancel callback is not cancelled.
    let (reader, mut sender) = reader(1);
    sender.bend(|producer| producer.cancel = None);
    assert_eq!(sender.schema(schema()), 0);
    drop(reader);
    sender.release();
}

#[test]
fn tasks_that_give_nothing_good_are_errors_and_end_the_stream() {
    let elsewhere = |releases: &Releases| {
        let mut array = array(0..5, releases);
        array.device_type = 2;
        array
    };
    let malformed = |releases: &Releases| {
        let mut array = array(0..5, releases);
        array.array.n_children = 7;
        array
    };
    let released = |releases: &Releases| {
        let mut array = array(0..5, releases);
        array.array.release();
        array
    };
    type Given<'a> = &'a dyn Fn(&Releases) -> Result<RawDeviceArray, i32>;
    let cases: [(Given<'_>, usize, &str); 4] = [
        (&|releases| Ok(elsewhere(releases)), 2, "array.device_type: 2 in a stream of 1"),
        (&|releases| Ok(malformed(releases)), 2, "array.n_children"),
        (&|releases| Ok(released(releases)), 2, "array: released"),
        (&|_| Err(5), 1, "code 5: a task could not be extracted"),
    ];
    for (given, arrays, words) in cases {
        let releases = Releases::default();
        let given = given(&releases);
        let (mut reader, mut sender) = reader(4);
        assert_eq!(sender.schema(schema()), 0);
        assert_eq!(sender.task(given), 0);
        assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
        let Some(Err(error)) = next(&mut reader) else { panic!("{words}") };
        assert!(error.to_string().contains(words), "{error}");
        {
            let asked = sender.asked.lock().unwrap();
            assert_eq!((asked.extracted, asked.discarded, asked.cancels), (1, 1, 1), "{words}");
        }
        // The producer's own error comes too late, and so does another task.
        sender.error(5, Some("no such file"), None);
        sender.release();
        assert!(next(&mut reader).is_none());
        assert_eq!(releases.count(), arrays * STRUCTS, "{words}");
    }
}

#[test]
fn more_than_was_asked_for_is_an_error_and_kept_by_nobody() {
    for queue in [1, 3] {
        let (mut reader, mut sender) = reader(queue);
        let (releases, asked) = (Releases::default(), sender.asked.clone());
        assert_eq!(sender.schema(schema()), 0);
        for i in 0..queue as i32 {
            assert_eq!(sender.task(Ok(array(i..i + 5, &releases))), 0);
        }
        // One batch more than requested, then many: none is kept, and the producer is cancelled once.
        for i in 1..=100 {
            assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
            let asked = asked.lock().unwrap();
            assert_eq!((asked.extracted, asked.discarded, asked.cancels), (0, i, 1));
            assert_eq!(releases.count(), i * STRUCTS);
        }
        // The requested batches remain valid; no further ones are requested.
        for i in 0..queue as i32 {
            assert_rows(next(&mut reader), i..i + 5);
        }
        let problem = format!("called for batch {} of {queue} requested", queue + 1);
        assert_same_end(next(&mut reader), out_of_spec("handler.on_next_task", &problem));
        assert!(next(&mut reader).is_none());
        sender.release();
        drop(reader);
        let asked = asked.lock().unwrap();
        assert_eq!((asked.requests.len(), asked.cancels, asked.too_late), (1, 1, 0));
        assert_eq!(releases.count(), (queue + 100) * STRUCTS);
    }
    // A batch that was taken allows one more, not two.
    let (mut reader, mut sender) = self::reader(2);
    let releases = Releases::default();
    assert_eq!(sender.schema(schema()), 0);
    for _ in 0..2 {
        assert_eq!(sender.task(Ok(array(0..5, &releases))), 0);
    }
    assert_rows(next(&mut reader), 0..5);
    for i in 0..2 {
        assert_eq!(sender.task(Ok(array(1..6, &releases))), 0);
        assert_eq!(sender.asked.lock().unwrap().cancels, i);
    }
    assert_rows(next(&mut reader), 0..5);
    assert_rows(next(&mut reader), 1..6);
    assert_same_end(
        next(&mut reader),
        out_of_spec("handler.on_next_task", "called for batch 4 of 3 requested"),
    );
    sender.release();
}
