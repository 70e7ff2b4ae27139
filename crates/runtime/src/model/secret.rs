//! A key that can be sent and cannot be shown: neither by `Debug` nor in an error that quotes
//! what the far side said.

use std::fmt;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// For the one header that it belongs into.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without the secret in it.
    pub(super) fn redact(&self, text: &str) -> String {
        match self.0.is_empty() {
            true => text.to_owned(),
            false => text.replace(&self.0, "[key]"),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    /// Keys come from files and variables that end with a line feed more often than not.
    fn from(text: String) -> Secret {
        Secret(text.trim().to_owned())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret::from(text.to_owned())
    }
}
