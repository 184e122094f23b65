//! The broker in virtual time.
