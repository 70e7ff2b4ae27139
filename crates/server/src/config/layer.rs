//! Layers of settings: each later one overrides key by key, and every value keeps its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Config;

/// The file that is looked for when none is named.
const FILE: &str = "chancery.toml";
const PREFIX: &str = "CHANCERY_";
/// Variables under the names that other programs' users are used to.
const ALIASES: &[(&str, &str)] =
    &[("ADDR", "listen"), ("DATA_DIR", "data"), ("DATABASE_URL", "database")];

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
        layers.put(&table, &Origin::File(path.clone()), &[]);
        layers.file = Some(path);
    }
    for (name, value) in &environment {
        layers.put_variable(name, value);
    }
    layers.put(&flags, &Origin::Flag, &[]);
    let config = layers.config()?;
    check(&config)?;
    Ok((config, layers))
}

impl Layers {
    /// Where the value of a setting came from.
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }

    fn put(&mut self, table: &Table, origin: &Origin, above: &[String]) {
        for (key, value) in table {
            let path = [above, std::slice::from_ref(key)].concat();
            match value {
                Value::Table(inner) => self.put(inner, origin, &path),
                value => self.set(&path, value.clone(), origin.clone()),
            }
        }
    }

    fn put_variable(&mut self, name: &str, value: &str) {
        let Some(rest) = name.strip_prefix(PREFIX) else { return };
        let known_as = ALIASES.iter().find(|(alias, _)| *alias == rest);
        let rest = known_as.map_or_else(|| rest.to_lowercase(), |(_, key)| (*key).to_owned());
        let path: Vec<String> = rest.split("__").map(str::to_owned).collect();
        // Variables of the command line and of tests carry the prefix too.
        if path.first().is_some_and(|it| known_keys().contains_key(it)) {
            self.set(&path, scalar(value), Origin::Environment(name.to_owned()));
        }
    }

    fn set(&mut self, path: &[String], value: Value, origin: Origin) {
        let Some((last, above)) = path.split_last() else { return };
        let mut table = &mut self.table;
        for key in above {
            let inner = table.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            match inner {
                Value::Table(inner) => table = inner,
                _ => return,
            }
        }
        table.insert(last.clone(), value);
        self.origins.insert(path.join("."), origin);
    }

    fn config(&mut self) -> Result<Config, ConfigError> {
        loop {
            let value = Value::Table(self.table.clone());
            let error = match serde_path_to_error::deserialize(value) {
                Ok(config) => return Ok(config),
                Err(error) => error,
            };
            let key = error.path().to_string();
            let mut detail = error.inner().to_string().trim().replace('\n', " ");
            if let Some(suggestion) = unknown(&detail).and_then(nearest) {
                detail = format!("{detail}; did you mean `{suggestion}`?");
            }
            let under = key.trim_end_matches(".?").trim_end_matches('?');
            let set = self.origins.iter().find(|(path, _)| path.starts_with(under));
            let origin = set.map_or(Origin::Default, |(_, origin)| origin.clone());
            if !self.is_text_after_all(&key) {
                return Err(ConfigError::Value { key, origin, detail });
            }
        }
    }

    /// A variable's text was read as the number or the truth that it looks like, and a text is
    /// what is wanted: `CHANCERY_DATA=2026`. Answers whether there is anything new to try.
    fn is_text_after_all(&mut self, key: &str) -> bool {
        if !matches!(self.origins.get(key), Some(Origin::Environment(_))) {
            return false;
        }
        let mut table = &mut self.table;
        let (above, last) = key.rsplit_once('.').unwrap_or(("", key));
        for part in above.split('.').filter(|it| !it.is_empty()) {
            match table.get_mut(part) {
                Some(Value::Table(inner)) => table = inner,
                _ => return false,
            }
        }
        match table.get_mut(last) {
            Some(value) if !value.is_str() => {
                *value = Value::String(value.to_string());
                true
            }
            _ => false,
        }
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
    text.parse().map_err(|it: toml::de::Error| {
        let before = it.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let detail = format!("line {line}: {}", it.message().replace('\n', " "));
        ConfigError::Syntax { file: path.to_owned(), detail }
    })
}

/// A variable's text as the value that it looks like.
fn scalar(text: &str) -> Value {
    if let Ok(number) = text.parse::<i64>() {
        return Value::Integer(number);
    }
    if let Some(number) = text.parse::<f64>().ok().filter(|it| it.is_finite()) {
        return Value::Float(number);
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
    for optional in ["database", "org", "workspace", "public_url", "oidc"] {
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
    check_ranges(config)?;
    super::webhook::check(config)?;
    super::smtp::check(config)?;
    super::isolation::check(config)?;
    super::oidc::check(config)?;
    config.turnstile()?;
    for (name, model) in &config.models {
        super::model::prices(name, model)?;
    }
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
    Ok(())
}

/// What is outside of these is a slip of the pen, and would otherwise be an overflow.
fn check_ranges(config: &Config) -> Result<(), ConfigError> {
    const DAY: u64 = 24 * 60 * 60;
    // More than a million a second is no limit.
    const RATE_MAX: u64 = 60_000_000;
    let limits = &config.limits;
    let mut ranges = vec![
        ("workers".to_owned(), config.workers as u64, 1, 100_000),
        ("limits.lease_seconds".to_owned(), limits.lease_seconds, 1, DAY),
        ("limits.attempts".to_owned(), limits.attempts.into(), 1, 1_000_000),
        ("limits.body_bytes".to_owned(), limits.body_bytes as u64, 1024, 1 << 30),
        ("limits.grace_seconds".to_owned(), limits.grace_seconds, 0, DAY),
        ("limits.requests_per_minute".to_owned(), limits.requests_per_minute.into(), 1, RATE_MAX),
        ("limits.strangers_per_minute".to_owned(), limits.strangers_per_minute.into(), 1, RATE_MAX),
        ("openai.pause_hold_seconds".to_owned(), config.openai.pause_hold_seconds, 0, DAY),
    ];
    for (name, model) in &config.models {
        let timeout = model.timeout_seconds.unwrap_or(1);
        ranges.push((format!("models.{name}.timeout_seconds"), timeout, 1, DAY));
        let retries = model.retries.unwrap_or(0).into();
        ranges.push((format!("models.{name}.retries"), retries, 0, 100));
    }
    if let Some(oidc) = &config.oidc {
        ranges.push(("oidc.timeout_seconds".to_owned(), oidc.timeout_seconds, 1, 120));
    }
    if let Some(dimensions) = config.memory.embeddings.as_ref().and_then(|it| it.dimensions) {
        ranges.push(("memory.embeddings.dimensions".to_owned(), dimensions.into(), 1, 16_384));
    }
    match ranges.into_iter().find(|(_, value, low, high)| value < low || value > high) {
        None => Ok(()),
        Some((key, value, low, high)) => Err(ConfigError::Meaning(format!(
            "setting `{key}` is {value}; it can be {low} to {high}"
        ))),
    }
}

#[cfg(test)]
mod tests;
