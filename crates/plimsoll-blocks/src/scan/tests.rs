//! The source of pieces: what is handed over where it lies, and what stays behind it.

use super::*;

fn source(bytes: usize) -> Source<io::Cursor<Vec<u8>>> {
    let bytes = (0..bytes).map(|at| (at % 251) as u8).collect();
    Source::new(io::Cursor::new(bytes), 0, &Pool::default())
}

#[test]
fn a_large_piece_is_handed_over_where_it_lies_and_what_is_behind_it_stays() {
    let mut source = source(1 << 20);
    assert!(source.has(1000).unwrap());
    source.expect(800_000).unwrap();
    let place = source.bytes().as_ptr();
    assert!(source.has(800_000).unwrap());
    let taken = source.take(800_000);
    assert_eq!((taken.as_ptr(), taken.len(), source.at), (place, 800_000, 800_000));
    assert!(taken.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
    assert!(source.has(200_000).unwrap() && !source.has(1 << 20).unwrap());
    let behind = source.bytes().iter().enumerate();
    assert!(behind.into_iter().all(|(at, byte)| *byte == ((at + 800_000) % 251) as u8));
    assert_eq!(source.bytes().len(), (1 << 20) - 800_000);
}

/// A frame of so many small blocks, each of a kind that may give 128 KiB.
fn frame_of_blocks(raw: &[u8], blocks: usize, says_content: bool) -> Vec<u8> {
    let (mut context, mut packed) = (zstd_safe::CCtx::create(), Vec::with_capacity(2 * raw.len()));
    context.set_pledged_src_size(says_content.then_some(raw.len() as u64)).unwrap();
    for block in raw.chunks(raw.len() / blocks) {
        let mut input = zstd_safe::InBuffer::around(block);
        let filled = packed.len();
        let mut output = zstd_safe::OutBuffer::around_pos(&mut packed, filled);
        let left = context.compress_stream2(&mut output, &mut input, zstd_sys::ZSTD_EndDirective::ZSTD_e_flush);
        assert_eq!(left, Ok(0));
    }
    let filled = packed.len();
    context.end_stream(&mut zstd_safe::OutBuffer::around_pos(&mut packed, filled)).unwrap();
    packed
}

#[test]
fn a_frame_of_many_small_blocks_is_whole_if_it_says_that_it_gives_little() {
    let raw: Vec<u8> = (0..100_000_u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
    let first = |packed: &[u8]| Scanner::new(packed, &Pool::default()).next();
    let blocks = 1 + (WHOLE_RAW_MAX / frame::BLOCK_MAX) as usize;
    match first(&frame_of_blocks(&raw, blocks, true)) {
        Some(Ok(Piece::Whole(whole))) => assert_eq!(whole.raw_max, raw.len()),
        other => panic!("{other:?}"),
    }
    let silent = first(&frame_of_blocks(&raw, blocks, false));
    assert!(matches!(silent, Some(Ok(Piece::Part(_)))), "who does not say may give it all: {silent:?}");
}

#[test]
fn a_large_frame_of_a_file_is_left_there_and_what_is_wrong_with_it_is_found_all_the_same() {
    let raw = vec![7; LEFT_MIN as usize];
    let mut frame = Vec::with_capacity(raw.len());
    zstd_safe::compress(&mut frame, &raw, 3).unwrap();
    let mut small = Vec::with_capacity(100);
    zstd_safe::compress(&mut small, &raw[..50], 3).unwrap();
    let whole = [&frame[..], &small, &frame].concat();
    for cut in 0..=whole.len() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &whole[..cut]).unwrap();
        let mut left = Scanner::of_file(file, &Pool::default());
        for read in Scanner::new(&whole[..cut], &Pool::default()) {
            match (read, left.next().unwrap()) {
                (Ok(Piece::Whole(read)), Ok(Piece::Whole(left))) => {
                    assert_eq!((read.at, read.raw_max, read.packed()), (left.at, left.raw_max, left.packed()));
                    assert_eq!(left.raw_max >= LEFT_MIN as usize, matches!(left.bytes, Packed::Left(_)));
                }
                (Err(read), Err(left)) => assert_eq!(read.to_string(), left.to_string(), "cut at {cut}"),
                (read, left) => panic!("{read:?} and {left:?}, cut at {cut}"),
            }
        }
        assert!(left.next().is_none(), "cut at {cut}");
    }
}

#[test]
fn small_pieces_are_copied_and_none_is_lost() {
    let mut source = source(300_000);
    let mut all = Vec::new();
    for count in [5, 70_000, 1, 0, 129_994, 100_000] {
        source.need(count, "a test").unwrap();
        all.extend_from_slice(&source.take(count));
    }
    assert!(all.len() == 300_000 && all.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
}

#[test]
fn room_is_made_for_no_more_than_the_file_has_earned() {
    let mut source = source(5);
    assert!(source.has(5).unwrap());
    source.expect(48 << 20).unwrap();
    assert!(source.buffer.len() <= 5 * ROOM_RATIO_MAX + READ_LEAST, "{}", source.buffer.len());
    assert_eq!(source.bytes(), [0, 1, 2, 3, 4]);
}
