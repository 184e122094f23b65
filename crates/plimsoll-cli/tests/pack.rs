//! `plimsoll pack` and `unpack` as people and programs use them: the stock tools on the other side, files, pipes, and every
//! way it ends. `cargo xtask test` installs the tools.

mod shell;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use shell::{Folder, stderr};

/// Text, numbers, zeros and noise.
fn sample(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut made = Vec::with_capacity(bytes + 100);
    while made.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 60 {
            0..=9 => {
                made.extend(format!("entry {} of the log, value {}\n", state >> 50 & 63, state >> 40 & 1023).bytes())
            }
            10..=13 => made.extend(state.to_le_bytes()),
            _ => made.extend([0; 40]),
        }
    }
    made.truncate(bytes);
    made
}

const SIZES: [usize; 5] = [0, 1, 4096, 1_048_577, 9_000_000];

#[test]
fn the_stock_tools_read_what_we_write() {
    let folder = Folder::new();
    for size in SIZES {
        let raw = sample(size);
        folder.write("in", &raw);
        for (pack, unpack) in [
            ("plimsoll pack -qc in", "zstd -dc"),
            ("plimsoll pack -qc -l 19 --block 1MiB in", "pzstd -dc"),
            (
                "plimsoll pack -qc in",
                "python3 -c 'import sys,subprocess; sys.stdout.buffer.write(subprocess.run([\"zstd\",\"-dc\"],input=sys.stdin.buffer.read(),stdout=subprocess.PIPE,check=True).stdout)'",
            ),
            ("plimsoll pack -qc -f gzip in", "gzip -dc"),
            ("plimsoll pack -qc -f gzip -l 12 in", "pigz -dc"),
            (
                "plimsoll pack -qc -f gzip -l 1 in",
                "python3 -c 'import sys,gzip; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))'",
            ),
            ("plimsoll pack -qc --bgzf in", "bgzip -dc"),
            ("plimsoll pack -qc --bgzf in", "gzip -dc"),
        ] {
            let output = folder.works(&format!("{pack} | {unpack}"));
            assert!(output.stdout == raw, "{size} bytes: {pack} | {unpack}");
        }
    }
}

#[test]
fn we_read_what_the_stock_tools_write() {
    let folder = Folder::new();
    for size in SIZES {
        let raw = sample(size);
        folder.write("in", &raw);
        for tool in [
            "zstd -c in",
            "zstd -c < in",
            "zstd -19 -c in",
            "zstd --no-check -c in",
            "zstd -T2 -B1MiB -c in",
            "zstd --long=27 -c in",
            "pzstd -p2 -c in",
            "gzip -c in",
            "gzip -1 -c in",
            "pigz -c in",
            "pigz -i -c in",
            "bgzip -c in",
            "(zstd -c in; zstd -c in)",
            "(gzip -c in; pigz -c in)",
            "(bgzip -c in; gzip -c in)",
        ] {
            let output = folder.works(&format!("{tool} | plimsoll unpack -q"));
            let expected = if tool.starts_with('(') { raw.repeat(2) } else { raw.clone() };
            assert!(output.stdout == expected, "{size} bytes: {tool}");
        }
    }
}

#[test]
fn the_index_of_bgzf_is_one_that_bgzip_reads() {
    let folder = Folder::new();
    let raw = sample(1_000_000);
    folder.write("in", &raw);
    folder.works("plimsoll pack -q --bgzf --index in && bgzip -b 700000 -s 1000 in.gz > part");
    assert!(folder.read("part") == raw[700_000..701_000]);
    folder.works("bgzip -r in.gz -I theirs.gzi");
    assert!(folder.read("theirs.gzi") == folder.read("in.gz.gzi"));
}

#[test]
fn files_come_and_go_as_people_expect() {
    let folder = Folder::new();
    let raw = sample(300_000);
    let path = folder.write("in.txt", &raw);
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(then)).expect("times");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("rights");
    folder.works("plimsoll pack -q in.txt");
    assert_eq!(folder.names(), ["in.txt", "in.txt.zst"]);
    let there = folder.shell("plimsoll pack -q in.txt");
    assert!(!there.status.success() && stderr(&there).contains("--force"), "{}", stderr(&there));
    folder.works("plimsoll pack -q --force in.txt");
    folder.works("rm in.txt; plimsoll unpack -q --rm in.txt.zst");
    assert_eq!(folder.names(), ["in.txt"]);
    let metadata = fs::metadata(&path).expect("there");
    assert_eq!((metadata.modified().expect("a time"), metadata.permissions().mode() & 0o777), (then, 0o640));
    assert!(folder.read("in.txt") == raw);
    folder
        .works("plimsoll pack -q -f gzip -o other.gz in.txt && plimsoll unpack -q -o back other.gz && cmp back in.txt");
    let nameless = folder.shell("cp other.gz strange; plimsoll unpack strange");
    assert!(stderr(&nameless).contains("--output"), "{}", stderr(&nameless));
}

#[test]
fn zeros_take_no_room() {
    let folder = Folder::new();
    let mut raw = vec![0; 20 << 20];
    raw[10 << 20] = 1;
    folder.write("in", &raw);
    folder.works("plimsoll pack -q in && plimsoll unpack -q -o back in.zst");
    assert!(folder.read("back") == raw);
    let blocks = fs::metadata(folder.at("back")).expect("there").blocks() * 512;
    assert!(blocks < 2 << 20, "{blocks} bytes on the disk");
}

#[test]
fn a_sparse_input_is_packed_and_comes_back_sparse() {
    let folder = Folder::new();
    let file = fs::File::create(folder.at("in")).expect("made");
    file.set_len(300 << 20).expect("long");
    std::os::unix::fs::FileExt::write_at(&file, b"something", 200 << 20).expect("written");
    folder.works("plimsoll pack -q in && plimsoll unpack -q -o back in.zst && cmp in back");
    assert!(folder.read("in.zst").len() < 64 << 10);
    let blocks = fs::metadata(folder.at("back")).expect("there").blocks() * 512;
    assert!(blocks < 32 << 20, "{blocks} bytes on the disk");
}

/// What was appended while it was read may be in it or not, but nothing else may.
#[test]
fn an_input_that_grows_is_packed_as_far_as_it_was_read() {
    let folder = Folder::new();
    folder.write("in", &sample(20_000_000));
    folder.works("(for n in $(seq 200); do echo appended >> in; done) & plimsoll pack -q in; wait");
    folder.works("plimsoll unpack -q -o back in.zst");
    let (all, back) = (folder.read("in"), folder.read("back"));
    assert!(back.len() >= 20_000_000 && all.starts_with(&back), "{} of {}", back.len(), all.len());
}

#[test]
fn an_input_that_vanishes_or_is_cut_off_ends_it_cleanly() {
    let folder = Folder::new();
    let raw = sample(9_000_000);
    folder.write("in", &raw);
    // Its name goes while it is read: what was opened is still there.
    folder.works("(sleep 0.05; cat in; rm in) | plimsoll pack -q -o out.zst - && zstd -dqc out.zst | cmp - <(plimsoll unpack -qc out.zst)");
    assert!(!folder.at("in").exists());
    let gone = folder.shell("plimsoll pack in");
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("in"), "{}", stderr(&gone));
    // A packed file that is cut off while it is unpacked leaves nothing under the final name.
    folder.works("head -c 1000000 out.zst > cut.zst");
    let cut = folder.shell("plimsoll unpack cut.zst");
    assert_eq!(cut.status.code(), Some(1), "{}", stderr(&cut));
    assert!(!folder.at("cut").exists() && stderr(&cut).contains("cut off"), "{}", stderr(&cut));
}

/// What takes a few megabytes for a moment is not written down for other programs; what takes more is, and what lasts as long
/// as whoever reads it likes.
#[test]
fn a_small_file_is_not_in_the_book_and_a_large_one_is() {
    let folder = Folder::new();
    folder.write("small", &sample(4096));
    folder.write("large", &sample(5_000_000));
    folder.works("mkdir -m 700 book; PLIMSOLL_ALONE=0 PLIMSOLL_BOOK=$PWD/book plimsoll pack -q small");
    folder.works("PLIMSOLL_ALONE=0 PLIMSOLL_BOOK=$PWD/book plimsoll unpack -q -o back small.zst && cmp back small");
    assert_eq!(fs::read_dir(folder.at("book")).expect("there").count(), 0);
    folder.works(
        "PLIMSOLL_ALONE=0 PLIMSOLL_BOOK=$PWD/book plimsoll pack -q large && rm large && plimsoll unpack -q large.zst",
    );
    assert!(fs::read_dir(folder.at("book")).expect("there").count() > 0);
    folder.works("mkdir -m 700 other; PLIMSOLL_ALONE=0 PLIMSOLL_BOOK=$PWD/other plimsoll unpack -q -o again large.zst");
    assert_eq!(fs::read_dir(folder.at("other")).expect("there").count(), 0);
    folder.works("PLIMSOLL_ALONE=0 PLIMSOLL_BOOK=$PWD/other plimsoll unpack -q -c large.zst | cmp - again");
    assert!(fs::read_dir(folder.at("other")).expect("there").count() > 0);
}

#[test]
fn a_damaged_file_leaves_nothing_behind_and_says_where() {
    let folder = Folder::new();
    folder.write("in", &sample(5_000_000));
    for (format, name) in [("zstd", "in.zst"), ("gzip", "in.gz")] {
        folder.works(&format!("plimsoll pack -q -f {format} in"));
        let mut packed = folder.read(name);
        let middle = packed.len() / 2;
        packed[middle] ^= 16;
        let damaged = format!("bad-{name}");
        folder.write(&damaged, &packed);
        for line in [
            format!("plimsoll unpack -j 1 {damaged}"),
            format!("plimsoll unpack -j 8 {damaged}"),
            format!("plimsoll pack --test {damaged}"),
        ] {
            let output = folder.shell(&line);
            assert_eq!(output.status.code(), Some(1), "{line}: {}", stderr(&output));
            assert!(stderr(&output).contains("damaged at byte"), "{line}: {}", stderr(&output));
        }
    }
    assert!(folder.names().iter().all(|name| !name.contains("part") && name != "bad-in"), "{:?}", folder.names());
}

#[test]
fn a_full_disk_and_a_reader_that_leaves_end_it() {
    let folder = Folder::new();
    folder.write("in", &sample(30_000_000));
    for threads in [1, 2, 8] {
        let full = folder.shell(&format!("plimsoll pack -q -j {threads} -c in > /dev/full"));
        assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
        assert!(stderr(&full).contains("cannot be written"), "{}", stderr(&full));
        let left = folder.shell(&format!(
            "plimsoll pack -q -j {threads} -l 1 -c in | head -c 1000 | wc -c; exit ${{PIPESTATUS[0]}}"
        ));
        assert_eq!((left.status.code(), left.stdout.trim_ascii()), (Some(0), &b"1000"[..]), "{}", stderr(&left));
    }
    folder.works("plimsoll pack -q in");
    let full = folder.shell("plimsoll unpack -q -c in.zst > /dev/full");
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
}

/// Who packs does not want to hear of it first of all.
#[test]
fn a_stderr_that_takes_nothing_ends_no_run() {
    let folder = Folder::new();
    folder.write("in", &sample(100_000));
    for said in ["", "--stats", "--json"] {
        folder
            .works(&format!("plimsoll pack --force {said} -o out.zst in 2> /dev/full && zstd -dqc out.zst | cmp - in"));
        folder.works(&format!("plimsoll unpack --force {said} -o back out.zst 2> /dev/full && cmp back in"));
    }
}

#[test]
fn ranges_limits_and_tests() {
    let folder = Folder::new();
    let raw = sample(5_000_000);
    folder.write("in", &raw);
    folder.works("plimsoll pack -q --block 1MiB in; plimsoll pack -q -f gzip in");
    for name in ["in.zst", "in.gz"] {
        let part = folder.works(&format!("plimsoll unpack -qc --range 3MiB..3145828 {name}"));
        assert!(part.stdout == raw[3 << 20..3_145_828], "{name}");
        folder.works(&format!("plimsoll unpack -q --test {name} && plimsoll pack -q --test {name}"));
        let limited = folder.shell(&format!("plimsoll unpack -qc --limit 1MB {name}"));
        assert!(!limited.status.success() && stderr(&limited).contains("--limit"), "{}", stderr(&limited));
    }
}

#[test]
fn filters_are_undone_and_said_to_those_who_cannot() {
    let folder = Folder::new();
    let numbers: Vec<u8> = (0..500_000_u32).flat_map(|n| (n as f32).sqrt().to_le_bytes()).collect();
    folder.write("in", &numbers);
    folder.works("plimsoll pack -q --filter shuffle:f32 in && plimsoll pack -q -o plain.zst in");
    assert!(folder.read("in.zst").len() < folder.read("plain.zst").len());
    folder.works("plimsoll unpack -q -o back in.zst && cmp back in");
    assert!(String::from_utf8_lossy(&folder.read("in.zst")).contains("plimsoll unpack gives the data"));
}

#[test]
fn every_place_a_filter_runs_gives_the_same_bytes() {
    let folder = Folder::new();
    folder.write("in", &sample(1_000_003));
    for filter in ["shuffle:f32", "bitshuffle:u16", "delta:u64", "delta:u8,bitshuffle:u64"] {
        folder.works(&format!("plimsoll pack -qc --filter {filter} --stage filter=cpu in > cpu"));
        folder.works(&format!("plimsoll pack -qc --filter {filter} --stage filter=gpu --software-gpu in > gpu"));
        assert!(folder.read("cpu") == folder.read("gpu"), "{filter}");
    }
}

#[test]
fn figures_are_for_people_and_for_programs() {
    let folder = Folder::new();
    folder.write("in", &sample(9_000_000));
    let told = stderr(&folder.works("plimsoll pack --stats in"));
    for word in
        ["method library", "compute", "hand-off", "starved", "tail", "administration", "waited", "refusals", "batches"]
    {
        assert!(told.contains(word), "{word}: {told}");
    }
    let told = stderr(&folder.works("plimsoll pack --force in"));
    assert_eq!(told.lines().count(), 1, "nothing is counted that nobody asked for: {told}");
    let told = folder.works("plimsoll pack --json --trace t.json --force in");
    let report: Value = serde_json::from_str(&stderr(&told)).expect("JSON and nothing else");
    assert_eq!((&report["raw_bytes"], &report["method"]), (&Value::from(9_000_000), &Value::from("library")));
    let time = &report["time"];
    assert!(time["compute_seconds"].as_f64() > Some(0.0));
    let parts =
        ["compute_seconds", "handoff_seconds", "starved_seconds", "tail_seconds"].map(|part| time[part].as_f64());
    let sum: f64 = parts.into_iter().map(|part| part.expect("a number")).sum();
    let all = time["slots"].as_f64().unwrap() * report["elapsed_seconds"].as_f64().unwrap();
    assert!((sum / all - 1.0).abs() < 0.1, "{sum} of {all} seconds of slots: {report}");
    for field in ["administration_seconds", "queue_wait_seconds", "refusals", "batches", "batch_mean", "batch_max"] {
        assert!(time[field].is_number(), "{field}: {report}");
    }
    assert!(time["batches"].as_u64() <= report["blocks"].as_u64());
    assert!(serde_json::from_slice::<Value>(&folder.read("t.json")).is_ok());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = Folder::new();
    folder.write("in", b"x");
    for (line, says) in [
        ("plimsoll pack -l 99 in", "levels from 1 to 22"),
        ("plimsoll pack -f gzip --filter shuffle:f32 in", "no place for it"),
        ("plimsoll pack --index in", "--bgzf"),
        ("plimsoll pack --filter twist:u8 in", "no filter"),
        ("plimsoll unpack --range 5..1 in", "ends before it begins"),
        ("plimsoll pack -o out in in", "one input"),
    ] {
        let output = folder.shell(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{line}: {}", stderr(&output));
    }
    let missing = folder.shell("plimsoll pack nowhere in");
    assert_eq!(missing.status.code(), Some(1));
    assert!(folder.at("in.zst").exists(), "one that fails does not keep the others back");
}
