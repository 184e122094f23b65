//! How much memory the system has for this process, and how much of it is free, containers included.
//! Never counts our own buffers: that is [`crate::gauge`]. What the process holds is told as a whole, whoever in it
//! allocated it.
//! Invariant: free <= capacity, and no figure is above what the tightest control group on the way up allows.

use std::path::{Path, PathBuf};

use plimsoll_core::Bytes;

use super::kernel_text;

/// The system's memory at one moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SystemMemory {
    /// All there is for this process.
    pub capacity: Bytes,
    /// What it could still get without swapping.
    pub free: Bytes,
    /// Where the figures come from.
    pub source: &'static str,
}

/// Assumed where the system tells nothing (it is not Linux): small enough to be there on any machine we run on.
const ASSUMED: SystemMemory = SystemMemory { capacity: Bytes::gib(4), free: Bytes::gib(4), source: "assumed" };

/// Reads the system's memory now.
pub fn read() -> SystemMemory {
    let text = kernel_text::whole;
    let Some(whole) = text("/proc/meminfo").and_then(|text| parse_meminfo(&text)) else {
        return ASSUMED;
    };
    let groups = text("/proc/self/cgroup").map(|text| parse_cgroup(&text)).unwrap_or_default();
    let limits = text("/proc/self/limits").unwrap_or_default();
    let address_space = address_space(&limits, || text("/proc/self/status"));
    combine(whole, groups.iter().flat_map(Membership::levels).chain(address_space))
}

/// What `ulimit -v` leaves: beyond it nothing can be allocated, however much memory there is. Mostly there is no limit,
/// and what is used of it need not be asked for.
fn address_space(limits: &str, status: impl FnOnce() -> Option<String>) -> Option<Level> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit = line.split_whitespace().next()?.parse().ok()?;
    Some(Level { limit: Bytes(limit), used: field(&status()?, "VmSize")? })
}

/// What this process has in memory that belongs to no file: its heap and stacks, and the CPU backend's buffers. `None`
/// where the system does not tell.
pub fn resident() -> Option<Bytes> {
    kernel_text::whole("/proc/self/status").and_then(|text| field(&text, "RssAnon"))
}

/// `MemTotal` and `MemAvailable` of `/proc/meminfo`.
fn parse_meminfo(text: &str) -> Option<SystemMemory> {
    let capacity = field(text, "MemTotal")?;
    let free = field(text, "MemAvailable")?.min(capacity);
    Some(SystemMemory { capacity, free, source: "/proc/meminfo" })
}

/// A line `name:  7 kB` of a file in `/proc`.
fn field(text: &str, name: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::kib(kib))
}

/// The two generations of control groups name the same things differently.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Generation {
    V1,
    V2,
}

/// This process's place in one hierarchy of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Membership {
    generation: Generation,
    path: String,
}

/// The lines of `/proc/self/cgroup` that are about memory.
fn parse_cgroup(text: &str) -> Vec<Membership> {
    let membership = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let generation = match controllers {
            "" if id == "0" => Generation::V2,
            list if list.split(',').any(|controller| controller == "memory") => Generation::V1,
            _ => return None,
        };
        Some(Membership { generation, path: path.to_owned() })
    };
    text.lines().filter_map(membership).collect()
}

/// What one control group allows and uses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Level {
    limit: Bytes,
    /// Without the page cache that the kernel would give up first.
    used: Bytes,
}

impl Membership {
    /// The limits from this process's group up to the root. In a container the path may be one that only the host
    /// sees: its folders are then missing here, and the mount's root is the container's own group.
    fn levels(&self) -> Vec<Level> {
        let root = match self.generation {
            Generation::V1 => "/sys/fs/cgroup/memory",
            Generation::V2 => "/sys/fs/cgroup",
        };
        folders(root, &self.path).iter().filter_map(|folder| self.generation.read_level(folder)).collect()
    }
}

/// The folders from `path` below `root` up to `root`.
fn folders(root: &str, path: &str) -> Vec<PathBuf> {
    let whole = Path::new(root).join(path.trim_start_matches('/'));
    whole.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect()
}

impl Generation {
    fn read_level(self, folder: &Path) -> Option<Level> {
        let (limit, used, cache) = match self {
            Self::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            Self::V2 => ("memory.max", "memory.current", "inactive_file"),
        };
        let text = |name: &str| kernel_text::whole(folder.join(name).to_str()?);
        // Most groups set none; what they use is not asked for then.
        let limit = parse_limit(&text(limit)?)?;
        parse_level(limit, &text(used)?, &text("memory.stat").unwrap_or_default(), cache)
    }
}

/// The limit that a group sets; none if it sets none.
fn parse_limit(limit: &str) -> Option<u64> {
    // v2 says `max` where there is no limit; v1 a page-rounded i64::MAX.
    const NO_LIMIT: u64 = 1 << 62;
    limit.trim().parse().ok().filter(|&limit| limit < NO_LIMIT)
}

/// One level from its limit and the texts of its other files.
fn parse_level(limit: u64, used: &str, stat: &str, cache: &str) -> Option<Level> {
    let used: u64 = used.trim().parse().ok()?;
    let reclaimable = stat
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == cache)
        .and_then(|(_, bytes)| bytes.trim().parse().ok())
        .unwrap_or(0);
    Some(Level { limit: Bytes(limit), used: Bytes(used) - Bytes(reclaimable) })
}

/// The tightest of the whole system and every level.
fn combine(whole: SystemMemory, levels: impl IntoIterator<Item = Level>) -> SystemMemory {
    let tighter = |so_far: SystemMemory, level: Level| SystemMemory {
        capacity: so_far.capacity.min(level.limit),
        free: so_far.free.min(level.limit - level.used),
        source: if level.limit < so_far.capacity { "control group" } else { so_far.source },
    };
    levels.into_iter().fold(whole, tighter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24682416 kB\nMemFree:        24096828 kB\nMemAvailable:   24345236 kB\n\
                           Buffers:            3048 kB\n";

    fn whole() -> SystemMemory {
        parse_meminfo(MEMINFO).unwrap()
    }

    #[test]
    fn meminfo_gives_total_and_available() {
        assert_eq!((whole().capacity, whole().free), (Bytes::kib(24_682_416), Bytes::kib(24_345_236)));
        assert_eq!(parse_meminfo("MemTotal: 5 kB\n"), None, "a kernel before 3.14 has no MemAvailable");
        assert_eq!(parse_meminfo("MemTotal: many kB\nMemAvailable: 1 kB\n"), None);
    }

    #[test]
    fn memberships_of_both_generations_are_found() {
        let hybrid = "9:name=systemd:/\n4:memory:/jobs/7\n3:cpuset:/\n0::/user.slice/a:b\n";
        let expected = [(Generation::V1, "/jobs/7"), (Generation::V2, "/user.slice/a:b")]
            .map(|(generation, path)| Membership { generation, path: path.to_owned() });
        assert_eq!(parse_cgroup(hybrid), expected);
        assert_eq!(parse_cgroup("garbage\n1:cpu,cpuacct:/x\n"), []);
    }

    #[test]
    fn every_folder_up_to_the_root_is_asked() {
        let found = folders("/sys/fs/cgroup", "/a/b");
        assert_eq!(found, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(PathBuf::from));
        assert_eq!(folders("/sys/fs/cgroup", "/").len(), 1);
    }

    #[test]
    fn no_limit_is_no_level() {
        assert_eq!(["max\n", "9223372036854771712\n", "nonsense"].map(parse_limit), [None; 3]);
        assert_eq!(parse_limit("1000\n"), Some(1000));
        assert_eq!(parse_level(1000, "much", "", "inactive_file"), None);
    }

    #[test]
    fn page_cache_counts_as_free() {
        let level = parse_level(1000, "800\n", "anon 100\ninactive_file 300\n", "inactive_file").unwrap();
        assert_eq!(level, Level { limit: Bytes(1000), used: Bytes(500) });
    }

    #[test]
    fn the_tightest_level_counts() {
        let level = |limit, used| Level { limit, used };
        let levels = [level(Bytes::gib(8), Bytes::gib(1)), level(Bytes::gib(10), Bytes::gib(9))];
        let read = combine(whole(), levels);
        assert_eq!(read, SystemMemory { capacity: Bytes::gib(8), free: Bytes::gib(1), source: "control group" });
        assert_eq!(combine(whole(), []), whole());
        let overfull = combine(whole(), [level(Bytes::gib(2), Bytes::gib(3))]);
        assert_eq!((overfull.capacity, overfull.free), (Bytes::gib(2), Bytes::ZERO));
    }

    #[test]
    fn the_process_tells_its_heap_apart_from_its_files() {
        let status = "VmRSS:\t    2196 kB\nRssAnon:\t     152 kB\nRssFile:\t    2044 kB\n";
        assert_eq!(field(status, "RssAnon"), Some(Bytes::kib(152)));
        assert_eq!(field("VmRSS:\t 1 kB\n", "RssAnon"), None, "a kernel before 4.5 does not");
    }

    #[test]
    fn the_address_space_is_a_level_if_it_has_a_limit() {
        let limits = |limit: &str| {
            format!(
                "Limit                     Soft Limit   Hard Limit   Units\nMax address space         {limit}   unlimited   bytes\n"
            )
        };
        let status = || Some("VmSize:\t    2000 kB\nVmRSS:\t 1 kB\n".to_owned());
        let level = address_space(&limits("1073741824"), status);
        assert_eq!(level, Some(Level { limit: Bytes::gib(1), used: Bytes::kib(2_000) }));
        assert_eq!(address_space(&limits("unlimited"), status), None);
        assert_eq!(address_space("", || unreachable!("nobody asks what is used of no limit")), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells_its_memory() {
        assert!(resident().is_some_and(|resident| resident > Bytes::ZERO && resident < read().capacity));
        let now = read();
        assert_ne!(now.source, ASSUMED.source);
        assert!(now.free <= now.capacity && now.free > Bytes::ZERO);
    }
}
