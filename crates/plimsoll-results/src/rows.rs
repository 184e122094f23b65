//! Rows of results in a file: CSV, JSON, JSON lines or Parquet. Invariant: no row is lost or doubled by a kill.
