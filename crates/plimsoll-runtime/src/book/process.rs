//! Processes: which is this, and does that one still live?
//! Never sends a signal. Where the system does not tell when a process was started, its number alone counts; where it tells
//! nothing, an entry counts as long as it is not too old.

use std::sync::OnceLock;

use plimsoll_core::Moment;

use super::MemberId;

/// What this program is called, short enough for a table.
pub(super) fn program() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let path = std::env::args_os().next().map(std::path::PathBuf::from);
        let name = path.as_deref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_default().chars().filter(|c| !c.is_control()).take(64).collect()
    })
}

/// When this process was started.
pub(crate) fn own_start() -> u64 {
    start_of(std::process::id()).unwrap_or_default()
}

/// The book's file. Process numbers mean something only among those that see the same ones: each such world, a container
/// say, has a book of its own.
pub(super) fn book_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let world = std::fs::read_link("/proc/self/ns/pid").ok();
        let digits = |path: std::path::PathBuf| -> String {
            path.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
        };
        format!("book-1-{}", world.map(digits).unwrap_or_default())
    })
}

/// Whether a member's process lives. `written` is when the member last said something.
#[cfg(target_os = "linux")]
pub(super) fn is_alive(id: &MemberId, _written: Moment) -> bool {
    start_of(id.pid) == Some(id.started)
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn is_alive(id: &MemberId, _written: Moment) -> bool {
    let pid = i32::try_from(id.pid).ok().and_then(rustix::process::Pid::from_raw);
    // Somebody else's process lives too.
    pid.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

#[cfg(not(unix))]
pub(super) fn is_alive(id: &MemberId, written: Moment) -> bool {
    use plimsoll_core::Nanos;
    /// Members that live say something at least once a second while they hold or want anything.
    const SILENT_MAX: Nanos = Nanos::seconds(60);
    id.pid == std::process::id() || super::now().since(written) < SILENT_MAX
}

/// When a process that has not ended was started.
#[cfg(target_os = "linux")]
fn start_of(pid: u32) -> Option<u64> {
    parse_start(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn start_of(_pid: u32) -> Option<u64> {
    None
}

/// The 22nd field of a line of `/proc/PID/stat`, unless the process is only waiting to be forgotten. The second, its name,
/// may hold anything.
#[cfg(target_os = "linux")]
fn parse_start(line: &str) -> Option<u64> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let me = MemberId { pid: std::process::id(), started: own_start(), number: 0 };
        assert!(is_alive(&me, Moment::START) && me.started > 0);
        assert!(
            !is_alive(&MemberId { started: me.started + 1, ..me.clone() }, Moment::START),
            "its number was used again"
        );
        assert!(!is_alive(&MemberId { pid: u32::MAX, ..me }, Moment::START));
    }

    #[test]
    fn names_with_brackets_and_dead_processes_are_told_apart() {
        let line = |name: &str, state: &str| {
            format!("7 ({name}) {state} 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1000 1")
        };
        assert_eq!(parse_start(&line("a b) (c", "S")), Some(4242));
        assert_eq!(parse_start(&line("gone", "Z")), None);
        assert_eq!(parse_start("7 (x) S 1"), None);
        assert_eq!(parse_start(""), None);
    }
}
