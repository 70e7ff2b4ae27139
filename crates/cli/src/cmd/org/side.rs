//! Which organisation is meant: a directory's, a version of the server's, or the built-in one.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use chancery_server::organisation::reload::{load_texts, summary};
use chancery_server::organisation::{Loaded, load, read_files};
use toml::Table;

use crate::Global;
use crate::server::{client, local_url, settings};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    Running,
    BuiltIn,
    Version(u64),
    Dir(PathBuf),
}

impl FromStr for Side {
    type Err = Infallible;

    fn from_str(given: &str) -> Result<Side, Infallible> {
        Ok(match given {
            "running" => Side::Running,
            "builtin" => Side::BuiltIn,
            // A directory of that name is written `./12`.
            given => match given.trim_start_matches('v').parse() {
                Ok(number) => Side::Version(number),
                Err(_) => Side::Dir(PathBuf::from(given)),
            },
        })
    }
}

/// Without a word: the server's where there is one, else what it would start with.
pub async fn of(global: &Global, side: Option<Side>) -> anyhow::Result<Loaded> {
    let dir = match side {
        Some(Side::Running) => return running(global, None).await,
        Some(Side::Version(number)) => return running(global, Some(number)).await,
        Some(Side::Dir(dir)) => Some(dir),
        Some(Side::BuiltIn) => None,
        None => {
            let config = settings(global, Table::new())?.0;
            if global.url.is_some() || local_url(&config.data).is_some() {
                return running(global, None).await;
            }
            config.org
        }
    };
    let (files, mistakes) = read_files(dir.as_deref());
    load(files, mistakes).map_err(|it| anyhow::anyhow!("{}", summary(&it)))
}

async fn running(global: &Global, number: Option<u64>) -> anyhow::Result<Loaded> {
    let client = client(global)?;
    let number = match number {
        Some(number) => number,
        None => client.org().await?.version,
    };
    let kept = client.org_version(number).await?;
    let mut loaded = load_texts(kept.files).map_err(|it| anyhow::anyhow!("{}", summary(&it)))?;
    loaded.org.version = number;
    Ok(loaded)
}
