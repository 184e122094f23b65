//! Declarations that have every kind of edge between them.

use std::sync::Arc;

use plimsoll_core::Bytes;
use plimsoll_core::staged::EdgeKind::{AliasOf, Event, Generation, HostRule, StreamOrder};
use plimsoll_core::staged::Usage::{Reads, Updates, Writes};
use plimsoll_core::staged::{Count, Draft, EdgeDecl, EdgeKind, HOST, Memory, PoolDecl, StageDecl, Stages, Usage};

fn stage(name: &'static str, stream: &'static str, uses: &[(&'static str, Usage)]) -> StageDecl {
    StageDecl { name, stream, uses: uses.to_vec() }
}

fn pool(name: &'static str, count: Count, memory: Memory) -> PoolDecl {
    pool_of(64, name, count, memory)
}

fn pool_of(bytes: u64, name: &'static str, count: Count, memory: Memory) -> PoolDecl {
    PoolDecl { name, bytes: Bytes(bytes), count, memory }
}

type Edge = (&'static str, [&'static str; 2], &'static str, EdgeKind<&'static str>);

fn edges(edges: &[Edge]) -> Vec<EdgeDecl> {
    edges.iter().map(|&(name, [from, to], guards, kind)| EdgeDecl { name, from, to, guards, kind }).collect()
}

fn checked(draft: Draft) -> Arc<Stages> {
    Stages::check(draft).unwrap_or_else(|error| panic!("{error}"))
}

/// Bytes of a frame of [`pyramid`].
pub const FRAME: u64 = 1024;
/// Bytes of the level above it.
pub const LEVEL: u64 = 256;

/// All samples.
pub fn all() -> [Arc<Stages>; 3] {
    [pyramid(), gated(), filled_by_host()]
}

/// Frames are scattered into chunks, levels are reduced from them, with rows that are carried on to the next frames; all
/// of it is read back.
pub fn pyramid() -> Arc<Stages> {
    checked(Draft {
        streams: vec!["upload", "compute", "download"],
        stages: vec![
            stage("upload", "upload", &[("staging", Writes)]),
            stage("scatter", "compute", &[("staging", Reads), ("chunks", Writes)]),
            stage("reduce", "compute", &[("chunks", Reads), ("carry", Updates), ("levels", Writes)]),
            stage("download", "download", &[("chunks", Reads), ("levels", Reads), ("readback", Writes)]),
        ],
        drain: vec![stage("collect", HOST, &[("readback", Reads)])],
        pools: vec![
            pool_of(FRAME, "staging", Count::Fixed(2), Memory::Device),
            pool_of(FRAME, "chunks", Count::PerDepth, Memory::Device),
            pool_of(LEVEL, "carry", Count::Fixed(1), Memory::Device),
            pool_of(LEVEL, "levels", Count::Fixed(1), Memory::Device),
            pool_of(FRAME + LEVEL, "readback", Count::PerDepth, Memory::Readback),
        ],
        edges: edges(&[
            ("staging filled", ["upload", "scatter"], "staging", Event),
            ("staging read", ["scatter", "upload"], "staging", Event),
            ("chunks filled", ["scatter", "reduce"], "chunks", StreamOrder),
            ("chunks whole", ["scatter", "download"], "chunks", AliasOf("levels filled")),
            ("chunks read", ["download", "scatter"], "chunks", HostRule),
            ("carried", ["reduce", "reduce"], "carry", StreamOrder),
            ("levels filled", ["reduce", "download"], "levels", Event),
            ("levels read", ["download", "reduce"], "levels", Event),
            ("readback filled", ["download", "collect"], "readback", Event),
            ("readback free", ["collect", "download"], "readback", HostRule),
        ]),
        depth_max: 3,
    })
}

/// Each item is packed behind the tail that the drain of the one before it leaves with the host; its bytes are copied when
/// it is drained, on a stream of their own.
pub fn gated() -> Arc<Stages> {
    checked(Draft {
        streams: vec!["compute", "pack", "drain"],
        stages: vec![
            stage("fill", "compute", &[("chunks", Writes)]),
            stage("pack", "pack", &[("tail", Reads), ("chunks", Reads), ("packed", Writes)]),
        ],
        drain: vec![
            stage("copy", "drain", &[("packed", Reads), ("readback", Writes)]),
            stage("deliver", HOST, &[("readback", Reads), ("tail", Writes)]),
        ],
        pools: vec![
            pool("chunks", Count::PerDepth, Memory::Device),
            pool("packed", Count::PerDepth, Memory::Device),
            pool("readback", Count::PerDepth, Memory::Readback),
            pool("tail", Count::Fixed(1), Memory::Host),
        ],
        edges: edges(&[
            ("chunks filled", ["fill", "pack"], "chunks", Event),
            ("chunks read", ["pack", "fill"], "chunks", HostRule),
            ("packed", ["pack", "copy"], "packed", Event),
            ("packed copied", ["copy", "pack"], "packed", HostRule),
            ("readback filled", ["copy", "deliver"], "readback", Event),
            ("readback free", ["deliver", "copy"], "readback", HostRule),
            ("tail known", ["deliver", "pack"], "tail", Generation),
            ("tail read", ["pack", "deliver"], "tail", AliasOf("packed")),
        ]),
        depth_max: 3,
    })
}

/// The host itself fills one of two buffers that the device then copies from, and waits until it is free again.
pub fn filled_by_host() -> Arc<Stages> {
    checked(Draft {
        streams: vec!["copy", "compute"],
        stages: vec![
            stage("fill", HOST, &[("staging", Writes)]),
            stage("upload", "copy", &[("staging", Reads), ("input", Writes)]),
            stage("work", "compute", &[("input", Reads), ("readback", Writes)]),
        ],
        drain: vec![stage("collect", HOST, &[("readback", Reads)])],
        pools: vec![
            pool("staging", Count::Fixed(2), Memory::Host),
            pool("input", Count::Fixed(1), Memory::Device),
            pool("readback", Count::PerDepth, Memory::Readback),
        ],
        edges: edges(&[
            ("staging filled", ["fill", "upload"], "staging", HostRule),
            ("staging read", ["upload", "fill"], "staging", Event),
            ("input filled", ["upload", "work"], "input", Event),
            ("input read", ["work", "upload"], "input", Event),
            ("readback filled", ["work", "collect"], "readback", Event),
            ("readback free", ["collect", "work"], "readback", HostRule),
        ]),
        depth_max: 4,
    })
}
