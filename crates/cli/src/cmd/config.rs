//! `config`: what is set, and by whom.

use chancery_server::config::Config;
use clap::Subcommand;
use toml::{Table, Value};

use crate::Global;
use crate::outcome::Outcome;
use crate::output;
use crate::server::settings;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The settings in force; with --origin, where each came from
    Show {
        #[arg(long)]
        origin: bool,
    },
    /// Whether they can be used
    Check,
    /// A file with every setting at its default
    Init,
}

pub fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Check => {
            let (_, layers) = settings(global, Table::new())?;
            let file = layers.file.map_or("no file".to_owned(), |it| it.display().to_string());
            output::line(format_args!("ok ({file})"))?;
        }
        Command::Init => {
            output::line(format_args!("{}", toml::to_string_pretty(&Config::default())?))?;
        }
        Command::Show { origin } => {
            let (mut config, layers) = settings(global, Table::new())?;
            hide_password(&mut config);
            if global.json {
                output::json(&config)?;
            } else if origin {
                let mut rows = Vec::new();
                flatten("", &Table::try_from(&config)?, &mut |key, value| {
                    rows.push(vec![
                        key.to_owned(),
                        value.to_string(),
                        layers.origin(key).to_string(),
                    ]);
                });
                output::table(&["SETTING", "VALUE", "FROM"], rows)?;
            } else {
                output::line(format_args!("{}", toml::to_string_pretty(&config)?))?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// A URL with a password in it is not for a terminal.
fn hide_password(config: &mut Config) {
    if let Some(url) = &mut config.database
        && let Some((head, tail)) = url.split_once('@')
        && let Some((user, _)) = head.split_once("://").and_then(|(_, login)| login.split_once(':'))
    {
        *url = format!("postgres://{user}:…@{tail}");
    }
}

fn flatten(prefix: &str, table: &Table, each: &mut impl FnMut(&str, &Value)) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => flatten(&path, inner, each),
            value => each(&path, value),
        }
    }
}
