//! A directory for what starts a server of its own.

use std::path::PathBuf;

use anyhow::Context as _;

/// The one that was asked for, or one that goes away with this value.
#[derive(Debug)]
pub struct Scratch {
    pub dir: PathBuf,
    temporary: bool,
}

impl Scratch {
    pub fn new(name: &str, asked: Option<PathBuf>) -> anyhow::Result<Scratch> {
        let temporary = asked.is_none();
        let dir = asked.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("chancery-{name}-{}", std::process::id()))
        });
        std::fs::create_dir_all(&dir).with_context(|| format!("`{}`", dir.display()))?;
        Ok(Scratch { dir, temporary })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.temporary {
            // Best effort: it lies where temporary things lie.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
