//! zensim beside values from outside.
