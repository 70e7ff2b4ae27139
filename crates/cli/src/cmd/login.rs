//! `login` and `logout`: which server elsewhere is meant, and with which token, where nothing else
//! says so.

use std::io::BufRead as _;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use anyhow::Context as _;
use chancery_api::client::{Client, ClientError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;
use crate::server::environment;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the server is
    url: String,
}

/// What is kept between commands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Login {
    pub url: String,
    pub token: String,
}

impl Login {
    /// What was kept, if anything can be read of it.
    pub fn kept() -> Option<Login> {
        let text = std::fs::read_to_string(place()?).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// Beside the settings' file of one's own.
fn place() -> Option<PathBuf> {
    let of = |name: &str| environment().find(|it| it.0 == name).map(|it| PathBuf::from(it.1));
    let home = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|it| it.join(".config")))?;
    Some(home.join("chancery").join("login.json"))
}

/// The token is the flag's, or the first line of standard input.
pub async fn login(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let url = args.url.trim().trim_end_matches('/').to_owned();
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(Misused(format!("`{url}` is no address: it begins with `https://`")).into());
    }
    let token = match &global.token {
        Some(token) => token.trim().to_owned(),
        None => {
            output::note(format_args!("A person's token for {url}:"));
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line)?;
            line.trim().to_owned()
        }
    };
    match Client::new(&url, &token).runs(&[("limit", "1".to_owned())]).await {
        // Not everyone who is known may look at runs.
        Err(ClientError::Problem(problem)) if problem.status == 403 => {}
        asked => drop(asked?),
    }
    let path = place().context("neither XDG_CONFIG_HOME nor HOME is set")?;
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("`{}`", dir.display()))?;
    }
    let _ = std::fs::remove_file(&path);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(serde_json::to_string(&Login { url: url.clone(), token })?.as_bytes())?;
    if global.json {
        output::json(&json!({ "url": url, "file": path.display().to_string() }))?;
    } else {
        let file = path.display();
        output::line(format_args!("{url} is meant where no other server is ({file})"))?;
    }
    Ok(Outcome::Done)
}

pub fn logout(global: &Global) -> anyhow::Result<Outcome> {
    let kept = Login::kept();
    if let Some(path) = place()
        && let Err(error) = std::fs::remove_file(&path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("`{}`", path.display()));
    }
    let url = kept.map(|it| it.url);
    if global.json {
        output::json(&json!({ "url": url }))?;
    } else {
        match url {
            Some(url) => output::line(format_args!("{url} is forgotten; its token still holds"))?,
            None => output::line(format_args!("nothing was kept"))?,
        }
    }
    Ok(Outcome::Done)
}
