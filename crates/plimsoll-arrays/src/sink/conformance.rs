//! What every sink must do, as a test that each one passes.

use super::{Sink, SinkError};

/// What every sink must do. For the tests of one; it must be empty.
///
/// # Panics
/// If it does not.
pub fn conforms(sink: &dyn Sink) {
    assert_eq!(sink.size("a/b").unwrap(), None);
    assert!(matches!(sink.get("a/b", 0..1), Err(SinkError::Missing { .. })));
    sink.put("a/b", b"first").unwrap();
    sink.put("a/b", b"second").unwrap();
    assert_eq!(sink.get("a/b", 1..4).unwrap(), b"eco");
    assert!(matches!(sink.get("a/b", 1..7), Err(SinkError::Short { bytes: 6, end: 7, .. })));
    appears_when_finished(sink);
    let listed: Vec<String> = sink.list("a/").unwrap().into_iter().map(|listed| listed.key).collect();
    assert_eq!(listed, ["a/b", "a/c/0"]);
    assert_eq!(sink.list("").unwrap().len(), 2);
    assert_eq!(sink.list("b").unwrap(), []);
    sink.delete("a/b").unwrap();
    sink.delete("a/b").unwrap();
    assert_eq!(sink.size("a/b").unwrap(), None);
    for wrong in ["", "/a", "a/", "a//b", "../a", "a/../../b", "."] {
        assert!(matches!(sink.put(wrong, b""), Err(SinkError::Key { .. })), "{wrong}");
        assert!(matches!(sink.get(wrong, 0..1), Err(SinkError::Key { .. })), "{wrong}");
    }
    has_one_writer(sink);
}

fn appears_when_finished(sink: &dyn Sink) {
    let mut object = sink.begin("a/c/0").unwrap();
    object.append(b"one ").unwrap();
    assert_eq!(sink.size("a/c/0").unwrap(), None);
    object.append(b"two").unwrap();
    object.finish().unwrap();
    assert_eq!(sink.get("a/c/0", 0..7).unwrap(), b"one two");
    let mut dropped = sink.begin("a/c/1").unwrap();
    dropped.append(b"never").unwrap();
    drop(dropped);
    assert_eq!(sink.size("a/c/1").unwrap(), None);
    let mut instead = sink.begin("a/c/0").unwrap();
    instead.append(b"three").unwrap();
    drop(instead);
    assert_eq!(sink.get("a/c/0", 0..7).unwrap(), b"one two", "what is there stays until another is finished");
}

fn has_one_writer(sink: &dyn Sink) {
    let lock = sink.lock().unwrap();
    assert!(matches!(sink.lock().map(drop), Err(SinkError::Locked { .. })));
    drop(lock);
    drop(sink.lock().unwrap());
}
