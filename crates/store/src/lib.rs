//! The record. The only crate with SQL.
