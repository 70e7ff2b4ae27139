//! Layers of settings: each later one overrides key by key, and every value keeps its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Config;

/// The file that is looked for when none is named.
const FILE: &str = "chancery.toml";
const PREFIX: &str = "CHANCERY_";

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("`{}` cannot be read: {detail}", .file.display())]
    Unreadable { file: PathBuf, detail: String },
    #[error("`{}` is not TOML: {detail}", .file.display())]
    Syntax { file: PathBuf, detail: String },
    #[error("setting `{key}` ({origin}): {detail}")]
    Value { key: String, origin: Origin, detail: String },
    #[error("{0}")]
    Meaning(String),
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Environment(name) => write!(f, "${name}"),
            Origin::Flag => f.write_str("flag"),
        }
    }
}

/// What was set by whom.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    table: Table,
    origins: BTreeMap<String, Origin>,
    /// The file that was read, if one was.
    pub file: Option<PathBuf>,
}

/// Reads file and environment, puts the flags on top, and checks the whole.
pub fn load(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    flags: Table,
) -> Result<(Config, Layers), ConfigError> {
    let mut layers = Layers::default();
    let environment: BTreeMap<String, String> = environment.into_iter().collect();
    if let Some(path) = find_file(file, &environment) {
        let table = read_file(&path)?;
        layers.put(&table, &Origin::File(path.clone()), "");
        layers.file = Some(path);
    }
    for (name, value) in &environment {
        layers.put_variable(name, value);
    }
    layers.put(&flags, &Origin::Flag, "");
    let config = layers.config()?;
    check(&config)?;
    Ok((config, layers))
}

impl Layers {
    /// Where the value of a setting came from.
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }

    fn put(&mut self, table: &Table, origin: &Origin, prefix: &str) {
        for (key, value) in table {
            let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                Value::Table(inner) => self.put(inner, origin, &path),
                value => self.set(&path, value.clone(), origin.clone()),
            }
        }
    }

    fn put_variable(&mut self, name: &str, value: &str) {
        let Some(rest) = name.strip_prefix(PREFIX) else { return };
        let path = rest.to_lowercase().replace("__", ".");
        let first = path.split('.').next().unwrap_or_default();
        // Variables of the command line and of tests carry the prefix too.
        if known_keys().contains_key(first) {
            let value = scalar(value);
            self.set(&path, value, Origin::Environment(name.to_owned()));
        }
    }

    fn set(&mut self, path: &str, value: Value, origin: Origin) {
        let mut table = &mut self.table;
        let mut keys = path.split('.').peekable();
        while let Some(key) = keys.next() {
            if keys.peek().is_none() {
                table.insert(key.to_owned(), value);
                break;
            }
            let inner = table.entry(key.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            match inner {
                Value::Table(inner) => table = inner,
                _ => return,
            }
        }
        self.origins.insert(path.to_owned(), origin);
    }

    fn config(&self) -> Result<Config, ConfigError> {
        let value = Value::Table(self.table.clone());
        serde_path_to_error::deserialize(value).map_err(|error| {
            let key = error.path().to_string();
            let mut detail = error.inner().to_string().trim().replace('\n', " ");
            if let Some(suggestion) = unknown(&detail).and_then(nearest) {
                detail = format!("{detail}; did you mean `{suggestion}`?");
            }
            let origin = self
                .origins
                .iter()
                .find(|(path, _)| path.starts_with(key.trim_end_matches(".?")))
                .map_or(Origin::Default, |(_, origin)| origin.clone());
            ConfigError::Value { key, origin, detail }
        })
    }
}

fn find_file(named: Option<&Path>, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    if let Some(path) = named {
        return Some(path.to_owned());
    }
    if let Some(path) = environment.get("CHANCERY_CONFIG") {
        return Some(PathBuf::from(path));
    }
    let home = environment
        .get("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| environment.get("HOME").map(|home| Path::new(home).join(".config")));
    [
        Some(PathBuf::from(FILE)),
        home.map(|it| it.join("chancery").join(FILE)),
        Some(PathBuf::from("/etc/chancery").join(FILE)),
    ]
    .into_iter()
    .flatten()
    .find(|path| path.is_file())
}

fn read_file(path: &Path) -> Result<Table, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|it| ConfigError::Unreadable { file: path.to_owned(), detail: it.to_string() })?;
    text.parse().map_err(|it: toml::de::Error| ConfigError::Syntax {
        file: path.to_owned(),
        detail: it.to_string().trim().to_owned(),
    })
}

/// A variable's text as the value that it looks like.
fn scalar(text: &str) -> Value {
    if let Ok(number) = text.parse::<i64>() {
        return Value::Integer(number);
    }
    match text {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        _ => Value::String(text.to_owned()),
    }
}

/// The keys at the top, by asking the type itself.
fn known_keys() -> Table {
    let mut keys = Table::try_from(Config::default()).unwrap_or_default();
    for optional in ["database", "org", "workspace", "isolation"] {
        keys.insert(optional.to_owned(), Value::Boolean(true));
    }
    keys
}

fn unknown(detail: &str) -> Option<&str> {
    detail.strip_prefix("unknown field `")?.split('`').next()
}

fn nearest(given: &str) -> Option<String> {
    let shared = |known: &str| {
        let mut left: Vec<char> = known.chars().collect();
        given
            .chars()
            .filter(|it| left.iter().position(|l| l == it).map(|at| left.remove(at)).is_some())
            .count()
    };
    known_keys()
        .keys()
        .map(|known| (shared(known), known.clone()))
        .filter(|(same, known)| *same * 4 >= known.len().max(given.len()) * 3)
        .max()
        .map(|(_, known)| known)
}

fn check(config: &Config) -> Result<(), ConfigError> {
    for (tier, model) in &config.tiers {
        if !config.models.contains_key(model) {
            return Err(ConfigError::Meaning(format!(
                "tier `{tier}` names model `{model}`, which is not configured"
            )));
        }
    }
    if let Some(url) = &config.database
        && !url.starts_with("postgres://")
        && !url.starts_with("postgresql://")
    {
        return Err(ConfigError::Meaning(
            "`database` is a `postgres://` URL; for SQLite, leave it out and set `data`".to_owned(),
        ));
    }
    if config.isolation.as_ref().is_some_and(|it| it.mode == super::IsolationMode::Require) {
        return Err(ConfigError::Meaning(
            "`isolation.mode = \"require\"` cannot be met: commands are not isolated by the kernel in this version"
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(
        toml: &str,
        environment: &[(&str, &str)],
        flags: &str,
    ) -> Result<(Config, Layers), ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        std::fs::write(&path, toml).unwrap();
        let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        load(Some(&path), environment, flags.parse().unwrap())
    }

    #[test]
    fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
        let (config, layers) = loaded(
            "workers = 1\nlisten = \"127.0.0.1:1\"\n[limits]\nattempts = 7",
            &[
                ("CHANCERY_WORKERS", "2"),
                ("CHANCERY_LIMITS__LEASE_SECONDS", "4"),
                ("CHANCERY_TOKEN", "x"),
            ],
            "workers = 3",
        )
        .unwrap();
        assert_eq!(config.workers, 3);
        assert_eq!(config.listen.port(), 1);
        assert_eq!((config.limits.attempts, config.limits.lease_seconds), (7, 4));
        assert_eq!(*layers.origin("workers"), Origin::Flag);
        assert_eq!(
            *layers.origin("limits.lease_seconds"),
            Origin::Environment("CHANCERY_LIMITS__LEASE_SECONDS".to_owned())
        );
        assert_eq!(*layers.origin("limits.body_bytes"), Origin::Default);
    }

    #[test]
    fn an_unknown_key_is_refused_with_a_suggestion() {
        let error = loaded("databse = \"x\"", &[], "").unwrap_err().to_string();
        assert!(error.contains("unknown field `databse`"), "{error}");
        assert!(error.contains("did you mean `database`?"), "{error}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_sentence() {
        for (toml, said) in [
            ("database = \"mysql://x\"", "postgres://"),
            ("[tiers]\nfast = \"nobody\"", "names model `nobody`"),
            ("workers = \"many\"", "workers"),
            ("listen = \"everywhere\"", "listen"),
            ("not toml", "is not TOML"),
            ("[isolation]\nmode = \"require\"", "cannot be met"),
            ("[models.m]\nprovider = \"oracle\"", "oracle"),
        ] {
            let error = loaded(toml, &[], "").unwrap_err().to_string();
            assert!(error.contains(said), "{toml}: {error}");
            assert!(!error.contains('\n') || toml == "not toml", "{error}");
        }
    }
}
