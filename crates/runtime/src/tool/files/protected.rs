//! Paths as the kernel has them, asked about by the names that are denied to everyone.

use std::path::Path;

use chancery_domain::policy;

/// The entry that stands against a path, if one does.
pub(crate) fn protected(path: &Path) -> Option<&'static str> {
    policy::protected(&path.to_string_lossy())
}

/// Whether a path is denied to everyone.
pub(in super::super) fn is_protected(path: &str) -> bool {
    policy::protected(path).is_some()
}
