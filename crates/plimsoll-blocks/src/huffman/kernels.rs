//! The bits of the tokens: kernel and twin, the same words.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Kernel, Launch, Twin};

use super::GROUP;
use super::layout::{Layout, TABLE, put};
use super::tokens::{LITERALS, Symbol, as_match, distance_symbol, length_symbol};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    tokens: u32,
    group: u32,
    unused: [u32; 2],
}

static PUT: Kernel = Kernel {
    name: "huffman_put",
    wgsl: include_str!("huffman.wgsl"),
    entry: "huffman_put",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: huffman_put,
};

fn huffman_put(twin: &mut Twin<'_>) {
    let Params { tokens: count, .. } = twin.params();
    let tokens = twin.words(0)[..count as usize].to_vec();
    let (starts, tables) = (twin.words(1).to_vec(), twin.words(2).to_vec());
    put_tokens(&tokens, &starts, &tables, twin.words_mut(3));
}

/// Writes the bits of all tokens.
fn put_tokens(tokens: &[u32], starts: &[u32], tables: &[u32], words: &mut [u32]) {
    for ((group, start), table) in tokens.chunks(GROUP).zip(starts).zip(tables.chunks_exact(TABLE)) {
        let mut at = *start as usize;
        let mut write = |value: u32, bits: u32| {
            put(words, at, value, bits);
            at += bits as usize;
        };
        let mut symbol = |table: &[u32], Symbol { symbol, extra, extra_bits }: Symbol| {
            let code = table[symbol as usize];
            write(code & 0xffff, code >> 16);
            write(extra, extra_bits);
        };
        for token in group {
            match as_match(*token) {
                None => symbol(table, Symbol { symbol: token & 0xff, extra: 0, extra_bits: 0 }),
                Some((length, distance)) => {
                    symbol(table, length_symbol(length));
                    symbol(&table[LITERALS..], distance_symbol(distance));
                }
            }
        }
    }
}

/// Bytes of the buffers that so many tokens take at the most: themselves, the tables, and two bytes of stream for each.
pub(crate) fn bytes_for(tokens: usize) -> Bytes {
    let groups = tokens.div_ceil(GROUP).max(1);
    Bytes((tokens * 4 + groups * (TABLE + 1) * 4 + tokens * 6 + 1024) as u64)
}

/// The stream of these tokens, on the CPU.
pub(crate) fn on_host(tokens: &[u32], layout: Layout) -> Vec<u8> {
    let Layout { mut words, starts, tables, bits } = layout;
    put_tokens(tokens, &starts, &tables, &mut words);
    bytes(&words, bits)
}

/// The stream of these tokens, on any device.
pub(crate) fn on_device(backend: &mut dyn Backend, tokens: &[u32], layout: &Layout) -> Result<Vec<u8>, Fault> {
    let upload = |backend: &mut dyn Backend, words: &[u32]| {
        let buffer = backend.allocate(Bytes(4 * words.len().max(1) as u64))?;
        backend.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(words))?;
        Ok::<_, Fault>(buffer)
    };
    let (data, starts) = (upload(backend, tokens)?, upload(backend, &layout.starts)?);
    let (tables, out) = (upload(backend, &layout.tables)?, upload(backend, &layout.words)?);
    let params = Params { tokens: tokens.len() as u32, group: GROUP as u32, unused: [0; 2] };
    let (buffers, params) = (&[&data, &starts, &tables, &out][..], bytemuck::bytes_of(&params));
    let groups = [layout.starts.len() as u32, 1, 1];
    backend.launch(&Launch { kernel: &PUT, buffers, params, groups })?;
    let mut words = vec![0_u32; layout.words.len()];
    backend.read(&out, Bytes::ZERO, bytemuck::cast_slice_mut(&mut words))?;
    Ok(bytes(&words, layout.bits))
}

fn bytes(words: &[u32], bits: usize) -> Vec<u8> {
    let mut bytes = bytemuck::cast_slice::<u32, u8>(words).to_vec();
    bytes.truncate(bits.div_ceil(8));
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::layout::layout;
    use super::super::tokens::tokens;
    use super::*;
    use crate::matches::parse::sequences;
    use crate::matches::tables::Tables;
    use crate::matches::{Reach, sample_blocks};

    #[test]
    fn the_library_reads_what_is_coded() {
        let mut tables = Tables::new();
        for block in &sample_blocks() {
            let mut finder = tables.finder(block, Reach::DEFLATE);
            let taken = sequences(block, false, |position| finder.at(position)).unwrap();
            let tokens = tokens(block, &taken);
            let stream = on_host(&tokens, layout(&tokens));
            let mut out = vec![0; block.len()];
            let read = libdeflater::Decompressor::new().deflate_decompress(&stream, &mut out).unwrap();
            assert!(read == block.len() && out == *block, "{} bytes", block.len());
        }
    }
}
