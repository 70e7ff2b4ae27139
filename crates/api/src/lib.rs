//! The wire: request and response types, and a typed client. Knows nothing of the domain: what
//! is here is a promise to those who call us.

pub mod audit;
#[cfg(feature = "client")]
pub mod client;
pub mod mail;
pub mod memory;
pub mod object;
pub mod openai;
pub mod org;
pub mod permission;
pub mod problem;
pub mod run;
pub mod token;
pub mod webhook;

pub use object::Object;
pub use problem::{Problem, Problems};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of a list; ask again with `cursor` for the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// `null`: this is the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub status: String,
    pub version: String,
}
