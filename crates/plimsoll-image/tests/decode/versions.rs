//! The decoders that are named are those that are built in.

use plimsoll_image::decode::Format;

#[test]
fn named_decoders_are_those_of_the_lock_file() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    for format in Format::ALL {
        let (name, version) = format.decoder().split_once(' ').unwrap();
        let locked: Vec<&str> = lock
            .split("[[package]]")
            .filter(|package| package.lines().any(|line| line == format!("name = \"{name}\"")))
            .filter_map(|package| package.lines().find_map(|line| line.strip_prefix("version = ")))
            .collect();
        assert_eq!(locked, [format!("\"{version}\"")], "{format} is decoded by {name}");
    }
}
