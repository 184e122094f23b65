//! Huffman coding for the staged gzip method: sequences become tokens, tokens become a deflate stream.
//! The host chooses the codes and knows from them where every block of the stream begins, to the bit; the bits of the
//! tokens are then written on any device, the same ones.
//!
//! | file | what it owns |
//! |---|---|
//! | `tokens.rs` | tokens, and the tables of RFC 1951 that give their symbols and extra bits |
//! | `codes.rs` | code lengths of at most 15 bits from counts, and the codes themselves |
//! | `layout.rs` | the stream but for its tokens: headers, ends of blocks, where each begins |
//! | `kernels.rs` | the bits of the tokens: kernel and twin |

mod codes;
pub(crate) mod kernels;
pub(crate) mod layout;
pub(crate) mod tokens;

/// Tokens of one deflate block: enough for its header to be small beside it.
pub(crate) const GROUP: usize = 32 << 10;
