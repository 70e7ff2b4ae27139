//! `config`: what is set, and by whom.

use chancery_server::config::{Config, Layers};
use clap::Subcommand;
use serde_json::json;
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
            let file = layers.file.map(|it| it.display().to_string());
            if global.json {
                output::json(&json!({ "ok": true, "file": file }))?;
            } else {
                output::line(format_args!("ok ({})", file.as_deref().unwrap_or("no file")))?;
            }
        }
        Command::Init if global.json => output::json(&Config::default())?,
        Command::Init => {
            output::line(format_args!("{}", toml::to_string_pretty(&Config::default())?))?;
        }
        Command::Show { origin } => {
            let (mut config, layers) = settings(global, Table::new())?;
            hide_passwords(&mut config);
            if origin {
                show_origins(global, &config, &layers)?;
            } else if global.json {
                output::json(&config)?;
            } else {
                output::line(format_args!("{}", toml::to_string_pretty(&config)?))?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn show_origins(global: &Global, config: &Config, layers: &Layers) -> anyhow::Result<()> {
    let mut found = Vec::new();
    flatten("", &Table::try_from(config)?, &mut |key, value| {
        found.push((key.to_owned(), value.clone(), layers.origin(key).to_string()));
    });
    if global.json {
        let items: Vec<_> = found
            .into_iter()
            .map(|(key, value, from)| json!({ "setting": key, "value": value, "from": from }))
            .collect();
        return output::json(&items);
    }
    let rows = found.into_iter().map(|(key, value, from)| vec![key, value.to_string(), from]);
    output::table(&["SETTING", "VALUE", "FROM"], rows.collect())
}

/// URLs with a password in them are not for a terminal.
fn hide_passwords(config: &mut Config) {
    let models = config.models.values_mut().filter_map(|it| it.base_url.as_mut());
    for url in config.database.iter_mut().chain(models) {
        *url = without_password(url);
    }
}

/// The password is after the user's name, which ends with the last `@` before the host, or it is
/// a parameter. What cannot be told apart is hidden too.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(a, b)| (Some(a), b));
    let login = login.map(|it| match it.split_once(':') {
        Some((user, _)) => format!("{user}:…@"),
        None => format!("{it}@"),
    });
    let (place, query) = rest.split_once('?').map_or((rest, None), |(a, b)| (a, Some(b)));
    let query = query.map(|query| {
        let shown = query.split('&').map(|it| match it.split_once('=') {
            Some((name, _)) if name.to_lowercase().contains("pass") || name.contains("key") => {
                format!("{name}=…")
            }
            _ => it.to_owned(),
        });
        format!("?{}", shown.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{}{place}{}", login.unwrap_or_default(), query.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("postgres://lin:s3cret@db/x", "postgres://lin:…@db/x"),
            ("postgresql://lin:s3@c?ret@db:5/x?a=b", "postgresql://lin:…@db:5/x?a=b"),
            ("postgres://lin@db/x", "postgres://lin@db/x"),
            ("postgres://db/x?user=lin&password=s3cret", "postgres://db/x?user=lin&password=…"),
            ("https://api.example.org/v1", "https://api.example.org/v1"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
