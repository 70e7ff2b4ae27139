//! The handlers, a file for each thing that they are about.

pub mod audit;
pub mod authorize;
pub mod contracts;
pub mod forks;
pub mod health;
pub mod inquiries;
pub mod mail;
pub mod matches;
pub mod memories;
pub mod openai;
pub mod org;
pub mod permissions;
pub mod rules;
pub mod runs;
pub mod signals;
pub mod steer;
pub mod tokens;
pub mod webhooks;
