//! Every way it ends: a full disk, a reader that leaves, an input that breaks, a stop; in seconds, with the first cause.

use std::io::{self, Cursor, Read, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use plimsoll::pack::{Format, PackError, PackOptions, PackWatch, Packer, PackerOptions, UnpackOptions};
use plimsoll::{Orchestrator, StopSign};

use crate::data::{Endless, mixed, of, pack, packer, unpack};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs work that must end by itself.
fn bounded<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || _ = ended.send(work()));
    end.recv_timeout(PATIENCE).expect("it hangs")
}

/// Takes so many bytes, then none.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives so many bytes, then an error or a panic.
struct Breaks {
    left: u64,
    panics: bool,
}

impl Read for Breaks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            assert!(!self.panics, "the input panics on purpose");
            return Err(io::Error::other("the input breaks on purpose"));
        }
        let given = (into.len() as u64).min(self.left);
        self.left -= given;
        Endless(7).read(&mut into[..given as usize])
    }
}

#[test]
fn a_full_disk_ends_it_at_every_number_of_threads() {
    for threads in [1, 2, 8] {
        let error = bounded(move || {
            let recipe = PackOptions::default().recipe(None).unwrap();
            packer(threads).pack(Endless(3), &mut Full(20 << 20), &recipe, &PackWatch::default()).unwrap_err()
        });
        assert!(matches!(&error, PackError::Output(reason) if reason.kind() == io::ErrorKind::StorageFull), "{error}");
        let error = bounded(move || {
            let packer = packer(threads);
            let packed = pack(&packer, &PackOptions::default(), &mixed(9_000_000, 1));
            let options = UnpackOptions::default();
            packer.unpack(Cursor::new(packed), &mut Full(2 << 20), &options, &PackWatch::default()).unwrap_err()
        });
        assert!(matches!(error, PackError::Output(_)), "{error}");
    }
}

#[test]
fn an_input_that_breaks_is_told_after_what_came_before() {
    for threads in [1, 2, 8] {
        for panics in [false, true] {
            let error = bounded(move || {
                let recipe = PackOptions::default().recipe(None).unwrap();
                let input = Breaks { left: 30 << 20, panics };
                packer(threads).pack(input, &mut io::sink(), &recipe, &PackWatch::default()).unwrap_err()
            });
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            assert!(cause.contains("on purpose"), "{error}: {cause}");
        }
    }
}

/// Says where it is read, and breaks if it is to.
struct Told {
    bytes: Cursor<Vec<u8>>,
    on: Arc<Mutex<Vec<ThreadId>>>,
    panics: bool,
}

impl Read for Told {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.on.lock().unwrap().push(std::thread::current().id());
        assert!(!self.panics, "an input that panics");
        self.bytes.read(into)
    }
}

/// A small file is read by the thread that writes: the same bytes, and the same ends.
#[test]
fn input_is_read_here_if_that_is_asked_for() {
    let here = PackerOptions { reads_here: true, ..PackerOptions::default() };
    let here = Packer::new(Orchestrator::builder().cpu(2).build(), here);
    let raw = mixed(3_000_000, 91);
    let recipe = of(Format::Gzip).recipe(None).unwrap();
    let told = |bytes: &[u8], panics| Told { bytes: Cursor::new(bytes.to_vec()), on: Arc::default(), panics };
    let (input, mut packed, mut back) = (told(&raw, false), Vec::new(), Vec::new());
    let read_on = Arc::clone(&input.on);
    here.pack(input, &mut packed, &recipe, &PackWatch::default()).unwrap();
    let expected = pack(&packer(1), &of(Format::Gzip), &raw);
    assert!(packed == expected);
    let input = told(&packed, false);
    let unpacked_on = Arc::clone(&input.on);
    here.unpack(input, &mut back, &UnpackOptions::default(), &PackWatch::default()).unwrap();
    assert!(back == raw);
    let me = std::thread::current().id();
    for on in [read_on, unpacked_on] {
        let on = on.lock().unwrap();
        assert!(!on.is_empty() && on.iter().all(|thread| *thread == me));
    }
    let broken = here.pack(told(&raw, true), &mut Vec::new(), &recipe, &PackWatch::default()).unwrap_err();
    assert!(matches!(&broken, PackError::InputPanicked(message) if message.contains("that panics")), "{broken}");
}

#[test]
fn a_stop_ends_it() {
    let error = bounded(|| {
        let (sign, recipe) = (StopSign::default(), PackOptions::default().recipe(None).unwrap());
        let watch = PackWatch::stopped_by(&sign);
        let raiser = sign.clone();
        let seen = watch.clone();
        std::thread::spawn(move || {
            while seen.done().0 == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            raiser.raise();
        });
        packer(2).pack(Endless(3), &mut io::sink(), &recipe, &watch).unwrap_err()
    });
    assert!(matches!(error, PackError::Stopped), "{error}");
}

/// A file that grew or shrank since somebody looked at its length: what is read is what is packed.
#[test]
fn an_input_of_another_length_than_was_said_is_packed_as_it_is() {
    let raw = mixed(3_000_000, 8);
    for said in [0, 1, 100_000, 2_999_999, 50_000_000] {
        let recipe = PackOptions::default().recipe(Some(said)).unwrap();
        let (packer, mut packed) = (packer(2), Vec::new());
        packer.pack(Cursor::new(raw.clone()), &mut packed, &recipe, &PackWatch::default()).unwrap();
        assert!(unpack(&packer, &packed).unwrap() == raw, "said to be {said} bytes");
    }
}
