//! Finding the settings and the running server.

use std::path::PathBuf;

use anyhow::Context as _;
use chancery_api::client::Client;
use chancery_server::config::{self, Config, Layers};
use toml::{Table, Value};

use crate::Global;

/// The settings, with the command line's flags on top.
pub fn settings(global: &Global, more: Table) -> anyhow::Result<(Config, Layers)> {
    let mut flags = more;
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            flags.insert(key.to_owned(), Value::String(value));
        }
    };
    put("data", global.data.as_ref().map(|it| it.display().to_string()));
    put("database", global.database.clone());
    Ok(config::load(global.config.as_deref(), environment(), flags)?)
}

/// The environment; variables that are not text are nobody's settings.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
}

/// The server that was named, or the one that uses the data directory.
pub fn client(global: &Global) -> anyhow::Result<Client> {
    let data = || -> anyhow::Result<PathBuf> { Ok(settings(global, Table::new())?.0.data) };
    let url = match &global.url {
        Some(url) => url.clone(),
        None => {
            let file = data()?.join("server");
            std::fs::read_to_string(&file).with_context(|| {
                format!(
                    "no server was named with `--url`, and none runs on `{}`; start one with `chancery serve`",
                    file.parent().unwrap_or(&file).display()
                )
            })?
        }
    };
    let token = match &global.token {
        Some(token) => token.clone(),
        None => std::fs::read_to_string(data()?.join("token"))
            .context("no token was given with `--token` or CHANCERY_TOKEN")?,
    };
    Ok(Client::new(url.trim(), token.trim()))
}
