//! Metadata come back as they were, and lies in them are named.

use std::error::Error as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{ArraySpec, DataType, Layout, Levels};

fn spec() -> ArraySpec {
    let mut spec = ArraySpec {
        shard: Some(vec![4, 32, 32]),
        codec: "blosc:zstd:5:bitshuffle".parse().unwrap(),
        levels: Levels::Count(3),
        axes: Some(
            ["t:second:0.5", "y:micrometer:0.25", "x:micrometer:0.25"].map(|axis| axis.parse().unwrap()).to_vec(),
        ),
        order: Some(vec![0, 2, 1]),
        ..ArraySpec::new(vec![0, 100, 75], DataType::F32, vec![1, 16, 16])
    };
    spec.attributes.insert("stain".to_owned(), json!({ "name": "DAPI", "bits": [1, 2.5, null] }));
    spec
}

#[test]
fn arrays_come_back() {
    let layout = Layout::new(&spec()).unwrap();
    for level in 0..3 {
        let metadata = ArrayMetadata::of_level(&layout, level, 10).unwrap();
        assert_eq!(ArrayMetadata::parse(&metadata.to_json()).unwrap(), metadata);
    }
    let plain = ArraySpec { levels: Levels::default(), axes: None, ..spec() };
    let metadata = ArrayMetadata::of_level(&Layout::new(&plain).unwrap(), 0, 0).unwrap();
    assert_eq!(metadata.attributes["stain"]["bits"], json!([1, 2.5, null]));
    let Node::Array(read) = Node::parse(&metadata.to_json()).unwrap() else { panic!("no array") };
    assert_eq!(*read, metadata);
}

#[test]
fn groups_come_back_with_where_elements_lie() {
    let layout = Layout::new(&spec()).unwrap();
    let metadata = GroupMetadata::of_layout(&layout).unwrap();
    let Node::Group(read) = Node::parse(&metadata.to_json()).unwrap() else { panic!("no group") };
    assert_eq!(read, metadata);
    let coarsest = &read.multiscale.unwrap().datasets[2];
    assert_eq!(coarsest.scale, [0.5, 1.0, 1.0]);
    assert_eq!(coarsest.translation, [0.0, 0.375, 0.375]);
}

#[test]
fn names_of_objects_are_read_one_way_only() {
    let metadata = ArrayMetadata::of_level(&Layout::new(&spec()).unwrap(), 0, 10).unwrap();
    assert_eq!(metadata.object_key(&[1, 0, 12]), "c/1/0/12");
    assert_eq!(metadata.object_of_key("c/1/0/12"), Some(vec![1, 0, 12]));
    for wrong in ["c/1/0", "c/1/0/2/3", "c/01/0/2", "c/+1/0/2", "c.1.0.2", "1/0/2", "c", "c/1/0/-2", "zarr.json"] {
        assert_eq!(metadata.object_of_key(wrong), None, "{wrong}");
    }
}

/// A change of one field, and what the error names.
type Lie = (&'static str, Value, &'static str);

#[test]
fn lies_are_named() {
    let metadata = ArrayMetadata::of_level(&Layout::new(&spec()).unwrap(), 0, 10).unwrap();
    let lies: [Lie; 20] = [
        ("/zarr_format", json!(2), "zarr_format"),
        ("/node_type", json!("arrow"), "node_type"),
        ("/shape", json!([1, 2]), "2 dimensions and"),
        ("/shape", json!(vec![1; 40]), "40 entries"),
        ("/shape", json!([1, -2, 3]), "'shape'"),
        ("/shape", json!([1e300, 2, 3]), "'shape'"),
        ("/shape", json!([u64::MAX, 2, 3]), "dimension 0"),
        ("/shape", json!([1_u64 << 50, 1_u64 << 50, 1_u64 << 50]), "counted"),
        ("/data_type", json!("complex64"), "complex64"),
        ("/chunk_grid/name", json!("rectilinear"), "rectilinear"),
        ("/chunk_grid/configuration/chunk_shape", json!([4, 32, 33]), "multiple"),
        ("/chunk_grid/configuration/chunk_shape", json!([0, 32, 32]), "is 0"),
        ("/codecs/0/configuration/chunk_shape", json!([0, 1, 1]), "is 0"),
        ("/codecs/0/configuration/index_location", json!("start"), "start"),
        ("/codecs/0/configuration/codecs/0/configuration/order", json!([0, 1, 1]), "order"),
        ("/codecs/0/configuration/codecs/1/configuration/endian", json!("big"), "big"),
        ("/codecs/0/configuration/codecs/2/configuration/cname", json!("snappy"), "snappy"),
        ("/codecs/0/configuration/codecs/2/configuration/clevel", json!(99), "clevel"),
        ("/fill_value", json!("zero"), "fill_value"),
        ("/chunk_key_encoding/configuration/separator", json!("-"), "separator"),
    ];
    for (pointer, lie, named) in lies {
        let mut json: Value = serde_json::from_slice(&metadata.to_json()).unwrap();
        *json.pointer_mut(pointer).unwrap() = lie.clone();
        let error = ArrayMetadata::parse(json.to_string().as_bytes()).unwrap_err();
        let error = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        assert!(error.contains(named), "{pointer} {lie}: {error}");
    }
    let large = vec![b' '; METADATA_BYTES_MAX as usize + 1];
    assert!(matches!(Node::parse(&large), Err(MetadataError::TooLarge { .. })));
    assert!(matches!(Node::parse(b"{"), Err(MetadataError::Json(_))));
    let deep = "[".repeat(100_000);
    assert!(matches!(Node::parse(deep.as_bytes()), Err(MetadataError::Json(_))));
}

/// What other programs leave under the same name is told by what it is, not by a field that only ours has.
#[test]
fn files_of_others_are_told_apart() {
    for (text, named) in [
        ("[]", "the file"),
        ("null", "the file"),
        ("{}", "'zarr_format' is missing"),
        (r#"{"zarr_format": 2, "shape": [1]}"#, "a format other than 3"),
        (r#"{"zarr_format": 3, "node_type": "table"}"#, "'table'"),
    ] {
        let error = Node::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_damage_is_an_error_or_metadata(at in 0_usize..4000, byte: u8, cut: bool, group: bool) {
        let layout = Layout::new(&spec()).unwrap();
        let mut text = match group {
            true => GroupMetadata::of_layout(&layout).unwrap().to_json(),
            false => ArrayMetadata::of_level(&layout, 0, 10).unwrap().to_json(),
        };
        let at = at % text.len();
        if cut { text.truncate(at) } else { text[at] = byte }
        let _ = Node::parse(&text);
    }

    #[test]
    fn arrays_of_every_kind_come_back(
        dimensions in proptest::collection::vec((1_u64..500, 1_u64..20, 1_u64..4), 1..7),
        data_type in 0_usize..11,
        is_sharded: bool,
        level in 0_i32..9,
        codec in 0_usize..4,
    ) {
        let codecs = ["none".to_owned(), format!("zstd:{level}"), format!("gzip:{level}"), format!("blosc:lz4:{level}")];
        let spec = ArraySpec {
            codec: codecs[codec].parse().unwrap(),
            shard: is_sharded.then(|| dimensions.iter().map(|(_, chunk, times)| chunk * times).collect()),
            ..ArraySpec::new(
                dimensions.iter().map(|(size, ..)| *size).collect(),
                DataType::ALL[data_type],
                dimensions.iter().map(|(_, chunk, _)| *chunk).collect(),
            )
        };
        let layout = Layout::new(&spec).unwrap();
        let metadata = ArrayMetadata::of_level(&layout, 0, dimensions[0].0).unwrap();
        prop_assert_eq!(ArrayMetadata::parse(&metadata.to_json()).unwrap(), metadata);
    }
}
