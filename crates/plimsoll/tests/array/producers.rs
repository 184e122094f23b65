//! Producers that stop, die, send half an element, or run at their own pace.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use plimsoll::StopSign;
use plimsoll::array::read::{Store, VerifyOptions};
use plimsoll::array::sink::{Memory, Operation, Sink};
use plimsoll::array::{ArrayError, ArrayOptions, ArraySpec, ArrayWatch, ArrayWriter, Begin, Layout, write_array};

use crate::cases;

const STEP: usize = 50 * 37 * 2;

/// Steps as long as there are some, then a pause, and then the rest or an error.
struct Paused {
    first: Cursor<Vec<u8>>,
    /// Told once everything before the pause was taken.
    is_paused: Option<mpsc::Sender<()>>,
    goes_on: mpsc::Receiver<io::Result<Vec<u8>>>,
    rest: Option<Cursor<Vec<u8>>>,
}

impl Read for Paused {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.first.read(buffer)?;
        if read > 0 {
            return Ok(read);
        }
        if self.rest.is_none() {
            drop(self.is_paused.take());
            self.rest = Some(Cursor::new(self.goes_on.recv().map_err(io::Error::other)??));
        }
        self.rest.as_mut().map_or(Ok(0), |rest| rest.read(buffer))
    }
}

/// Slabs of one step, so that what came before a pause can be written in it.
fn spec() -> ArraySpec {
    ArraySpec { shape: vec![0, 2_048, 1_024], chunk: vec![1, 512, 512], shard: None, ..cases::frames() }
}

fn paused(bytes: &[u8]) -> (Paused, mpsc::Receiver<()>, mpsc::Sender<io::Result<Vec<u8>>>) {
    let ((is_paused, pause), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    let first = Cursor::new(bytes.to_vec());
    (Paused { first, is_paused: Some(is_paused), goes_on, rest: None }, pause, go_on)
}

/// What came before a pause is published in it, and the rest once it comes, however long that takes.
#[test]
fn a_producer_that_stops_for_a_while_keeps_nothing_back_and_loses_nothing() {
    let spec = ArraySpec { levels: plimsoll::array::Levels::Count(1), ..spec() };
    let bytes = cases::elements(&spec, 6);
    let (half, step) = (bytes.len() / 2, bytes.len() / 6);
    let (reader, pause, go_on) = paused(&bytes[..half]);
    let store = Arc::new(Memory::default());
    let (layout, sink) = (Layout::new(&spec).unwrap(), store.clone());
    let writing = std::thread::spawn(move || {
        write_array(&cases::orchestrator(2), layout, sink, reader, &ArrayOptions::default())
    });
    assert!(pause.recv().is_err(), "everything was read");
    let until = Instant::now() + Duration::from_secs(60);
    while store.objects().is_empty() || (cases::read(&store, 0).0[0] as usize) * step < half {
        assert!(Instant::now() < until, "steps that came are not published while nothing more comes");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Nothing but the producer decides how long it takes: nobody gives up meanwhile.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!writing.is_finished());
    go_on.send(Ok(bytes[half..].to_vec())).unwrap();
    assert_eq!(writing.join().unwrap().unwrap().steps, 6);
    assert!(cases::read(&store, 0).1 == bytes);
}

/// Whoever stops it waits neither for the producer nor for the end of its input.
#[test]
fn a_writer_that_is_stopped_ends_while_its_producer_is_silent() {
    let spec = spec();
    let (reader, pause, _go_on) = paused(&cases::elements(&spec, 2));
    let (sign, store) = (StopSign::default(), Arc::new(Memory::default()));
    let options = ArrayOptions { watch: ArrayWatch::stopped_by(&sign), ..ArrayOptions::default() };
    let (layout, sink, (tell, told)) = (Layout::new(&spec).unwrap(), store.clone(), mpsc::channel());
    std::thread::spawn(move || tell.send(write_array(&cases::orchestrator(2), layout, sink, reader, &options)));
    assert!(pause.recv().is_err(), "everything was read");
    sign.raise();
    let ended = told.recv_timeout(Duration::from_secs(60)).expect("it ends").unwrap_err();
    assert!(matches!(ended, ArrayError::Stopped), "{ended}");
    let found = Store::open(store).unwrap().verify(&VerifyOptions::default()).unwrap();
    assert!(found.is_sound(), "{:?}", found.faults);
}

#[test]
fn a_producer_that_dies_leaves_an_array_that_goes_on() {
    let spec = spec();
    let bytes = cases::elements(&spec, 6);
    let half = bytes.len() / 2;
    let (reader, _pause, go_on) = paused(&bytes[..half]);
    go_on.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
    let store = Arc::new(Memory::default());
    let write = |reader: Box<dyn Read + Send>, begin| {
        let options = ArrayOptions { begin, ..ArrayOptions::default() };
        write_array(&cases::orchestrator(2), Layout::new(&spec).unwrap(), store.clone(), reader, &options)
    };
    let error = write(Box::new(reader), Begin::New).unwrap_err();
    assert!(matches!(error, ArrayError::Input(_)), "{error}");
    assert!(cases::read(&store, 0) == (vec![3, 2_048, 1_024], bytes[..half].to_vec()), "what came before is written");
    let summary = write(Box::new(Cursor::new(bytes.clone())), Begin::Resume).unwrap();
    assert_eq!((summary.steps, summary.resumed), (6, 3));
    assert!(*store.objects() == *cases::write(&spec, &bytes, 1, 1 << 20).objects());
}

#[test]
fn a_writer_that_is_dropped_leaves_an_array_that_goes_on() {
    let (store, spec) = (Arc::new(Memory::default()), cases::frames());
    let bytes = cases::elements(&spec, 20);
    let begin = |begin| {
        let options = ArrayOptions { begin, ..ArrayOptions::default() };
        ArrayWriter::new(cases::orchestrator(2), Layout::new(&spec).unwrap(), store.clone(), options).unwrap()
    };
    let mut writer = begin(Begin::New);
    writer.append(&bytes[..13 * STEP + 1]).unwrap();
    drop(writer);
    let found = Store::open(store.clone()).unwrap().verify(&VerifyOptions::default()).unwrap();
    assert!(found.is_sound(), "{:?}", found.faults);
    let mut writer = begin(Begin::Resume);
    let first = writer.first() as usize;
    writer.append(&bytes[first * STEP..]).unwrap();
    writer.close().unwrap();
    assert!(*store.objects() == *cases::write(&spec, &bytes, 1, STEP).objects());
}

/// Nobody waits for a slow store who has given the array up.
#[test]
fn what_is_under_way_when_a_writer_is_dropped_is_given_up() {
    let spec = ArraySpec { levels: plimsoll::array::Levels::Count(1), ..spec() };
    let store = Arc::new(Memory::default());
    store.fail_when(|operation, key| {
        if operation == Operation::Put && key.contains("c/") {
            std::thread::sleep(Duration::from_millis(40));
        }
        None
    });
    let layout = Layout::new(&spec).unwrap();
    let sink: Arc<dyn Sink> = store.clone();
    let mut writer = ArrayWriter::new(cases::orchestrator(2), layout, sink, ArrayOptions::default()).unwrap();
    writer.append(&cases::elements(&spec, 5)).unwrap();
    drop(writer);
    store.heal();
    let published = cases::read(&store, 0).0[0];
    assert!(published < 5, "{published} steps were written");
}

/// Half an element, and half a step, at the end of a reader.
#[test]
fn what_ends_within_an_element_is_left_out_and_named() {
    let spec = cases::frames();
    let bytes = cases::elements(&spec, 6);
    for rest in [1, 2, STEP - 1] {
        let store = Arc::new(Memory::default());
        let input = Cursor::new(bytes[..5 * STEP + rest].to_vec());
        let layout = Layout::new(&spec).unwrap();
        let error =
            write_array(&cases::orchestrator(2), layout, store.clone(), input, &ArrayOptions::default()).unwrap_err();
        assert!(matches!(error, ArrayError::PartOfStep { rest: left, .. } if left == rest as u64), "{error}");
        assert!(cases::read(&store, 0) == (vec![5, 50, 37], bytes[..5 * STEP].to_vec()));
    }
}

/// A camera gives a frame to `try_append_step`, which takes all of it or nothing: the camera knows which were dropped.
#[test]
fn a_camera_is_told_of_every_frame_that_was_dropped() {
    let spec = ArraySpec { levels: plimsoll::array::Levels::Count(1), codec: "none".parse().unwrap(), ..spec() };
    let store = Arc::new(Memory::default());
    store.fail_when(|operation, key| {
        if operation == Operation::Put && key.contains("c/") {
            std::thread::sleep(Duration::from_millis(4));
        }
        None
    });
    let sink: Arc<dyn Sink> = store.clone();
    let layout = Layout::new(&spec).unwrap();
    let mut writer = ArrayWriter::new(cases::orchestrator(2), layout, sink, ArrayOptions::default()).unwrap();
    let (step, mut kept) = (2_048 * 1_024 * 2, Vec::new());
    let mut slowest = Duration::ZERO;
    for number in 0..200_u8 {
        let frame = vec![number + 1; step];
        let begun = Instant::now();
        if writer.try_append_step(&frame).unwrap() {
            kept.push(number);
        }
        slowest = slowest.max(begun.elapsed());
    }
    assert_eq!(writer.dropped(), 200 - kept.len() as u64);
    assert!(kept.len() < 200 && kept.len() > 3, "{} were kept", kept.len());
    let half = writer.try_append_step(&vec![0; step / 2]).unwrap_err();
    assert!(matches!(half, ArrayError::PartOfStep { .. }), "{half}");
    let steps = writer.close().unwrap().steps;
    assert_eq!(steps, kept.len() as u64);
    store.heal();
    let (_, there) = cases::read(&store, 0);
    for (at, number) in kept.into_iter().enumerate() {
        assert!(there[at * step..][..step].iter().all(|byte| *byte == number + 1), "frame {at} is not {number}");
    }
}
