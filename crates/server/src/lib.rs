//! HTTP. The only crate that knows axum.
//!
//! [`router`] is the table of contents, [`access`] says who is calling, [`error`] gives every
//! failure its status, [`view`] turns what the domain says into what the wire says. [`start`]
//! puts a whole server together from a [`config::Config`].

pub mod access;
mod answer;
mod commands;
pub mod config;
mod console;
mod document;
pub mod error;
mod extract;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod mcp;
mod metrics;
pub mod organisation;
mod paging;
mod pause;
pub mod router;
mod routes;
mod serve;
mod start;
mod stream;
mod surface;
pub mod tokens;
mod turnstile;
mod view;
mod why;

pub use start::{Running, StartError, start, url};
