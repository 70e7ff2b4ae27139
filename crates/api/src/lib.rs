//! The wire: request and response types, and a typed client.
