//! HTTP. The only crate that knows axum.
