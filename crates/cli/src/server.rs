//! Finding the settings and the running server.

use std::path::Path;

use anyhow::Context as _;
use chancery_api::client::Client;
use chancery_server::config::{self, Config, Layers};
use toml::{Table, Value};

use crate::Global;
use crate::cmd::login::Login;

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

/// The server that was named, or the one that uses the data directory. The operator's token in
/// that directory is for the server that wrote it, and for no other.
pub fn client(global: &Global) -> anyhow::Result<Client> {
    let token = global.token.as_ref().filter(|it| !it.trim().is_empty());
    let url = global.url.as_ref().filter(|it| !it.trim().is_empty());
    if let (Some(url), Some(token)) = (url, token) {
        return Ok(Client::new(url.trim(), token.trim()));
    }
    let data = settings(global, Table::new())?.0.data;
    let local = local_url(&data);
    let kept = Login::kept();
    let url = match (url, &local, &kept) {
        (Some(url), ..) => url.trim().trim_end_matches('/').to_owned(),
        (None, Some(local), _) => local.clone(),
        (None, None, Some(kept)) => kept.url.clone(),
        (None, None, None) => anyhow::bail!(
            "no server was named with `--url`, and none runs on `{}`; start one with `chancery serve`",
            data.display()
        ),
    };
    let kept = kept.filter(|it| it.url == url).map(|it| it.token);
    let token = match token {
        Some(token) => token.trim().to_owned(),
        None if local.as_ref() == Some(&url) => std::fs::read_to_string(data.join("token"))
            .with_context(|| {
                format!("no token was given with `--token`, and none is in `{}`", data.display())
            })?,
        None => kept.with_context(|| {
            format!("no token was given with `--token` or CHANCERY_TOKEN for `{url}`")
        })?,
    };
    Ok(Client::new(&url, token.trim()))
}

/// Where the server is that uses a data directory, if one does.
pub fn local_url(data: &Path) -> Option<String> {
    let written = std::fs::read_to_string(data.join("server")).ok()?;
    Some(written.trim().to_owned())
}
