//! `tools.yaml`: what the operator says about tools, and [`build`], which makes a registry of it.
//!
//! Reads and checks; grants nothing. What a role may call is the policy's matter.

mod build;

use std::collections::BTreeMap;

use chancery_domain::policy::{Risk, glob, is_glob};
use serde::Deserialize;
use serde_json::Value;

use super::ToolSpec;

pub use super::duration::{BadSpan, Span};
pub use build::{BuildError, Place, Report, build, displaced, plan, schemas, specs};

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsConfig {
    /// Says that the file adds to the built-in tools, which it does anyway.
    pub extends: Option<Extends>,
    /// Over what tools declare of themselves, by name.
    #[serde(default)]
    pub tools: Overrides,
    /// The operator's own tools.
    #[serde(default)]
    pub commands: BTreeMap<String, CommandConfig>,
    #[serde(default)]
    pub mcp: BTreeMap<String, McpConfig>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extends {
    Builtin,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Overrides(pub BTreeMap<String, Override>);

/// `None` leaves things as they are.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    pub risk: Option<Risk>,
    pub capabilities: Option<Vec<String>>,
    pub mutating: Option<bool>,
    pub idempotent: Option<bool>,
    pub supports_parallel: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    pub description: String,
    /// The program and its arguments, with `{name}` for the values of parameters. A program with
    /// a `/` in its name is looked for from the directory of the file; the others in `PATH`.
    pub command: Vec<String>,
    /// A JSON Schema. Absent: the tool takes no arguments.
    #[serde(default = "nothing")]
    pub parameters: Value,
    pub risk: Option<Risk>,
    #[serde(default)]
    pub capabilities: Vec<String>,
    #[serde(default = "yes")]
    pub mutating: bool,
    #[serde(default)]
    pub idempotent: bool,
    #[serde(default)]
    pub supports_parallel: bool,
    pub timeout: Option<Span>,
    #[serde(default)]
    pub network: bool,
}

/// Either `command` or `url`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    pub command: Option<Vec<String>>,
    /// The process's environment, beside `PATH`, `HOME` and `LANG`. `env:NAME` stands for a
    /// variable of ours.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub url: Option<String>,
    /// `env:NAME`, alone or after a word such as `Bearer`, stands for a variable of ours.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How long one call may take.
    pub timeout: Option<Span>,
    /// Said of a `command`, either way, it puts the server behind the walls that commands have,
    /// with the whole workspace. Absent: it is the operator's own program, and as free as ours.
    pub network: Option<bool>,
}

/// A file that cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {detail}")]
pub struct ConfigError {
    pub file: String,
    pub line: u64,
    pub column: u64,
    pub detail: String,
}

fn nothing() -> Value {
    serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false})
}

fn yes() -> bool {
    true
}

impl ToolsConfig {
    /// `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<ToolsConfig, ConfigError> {
        // A file with nothing in it says nothing; to the parser it is a null.
        let read: Result<Option<ToolsConfig>, _> = serde_saphyr::from_str(text);
        read.map(Option::unwrap_or_default).map_err(|error| {
            let place = error.location();
            let (line, column) = place.map_or((1, 1), |it| (it.line(), it.column()));
            let said = error.without_snippet().to_string();
            ConfigError { file: file.to_owned(), line, column, detail: without_place(&said) }
        })
    }
}

impl Overrides {
    /// An entry by the very name, or else the first glob that matches.
    pub fn over(&self, name: &str) -> Option<(&str, &Override)> {
        let by_glob = || self.0.iter().find(|(entry, _)| is_glob(entry) && glob(entry, name));
        let found = self.0.get_key_value(name).or_else(by_glob);
        found.map(|(entry, over)| (entry.as_str(), over))
    }

    pub fn apply(&self, spec: &mut ToolSpec) {
        if let Some((_, over)) = self.over(&spec.name) {
            spec.risk = over.risk.unwrap_or(spec.risk);
            if let Some(capabilities) = &over.capabilities {
                spec.capabilities = capabilities.clone();
            }
            spec.idempotent = over.idempotent.unwrap_or(spec.idempotent);
            spec.supports_parallel = over.supports_parallel.unwrap_or(spec.supports_parallel);
        }
    }
}

/// The parser puts the place at one end of its message; ours is in front.
fn without_place(said: &str) -> String {
    let said = said.lines().next().unwrap_or_default();
    let said = match said.split_once(": ") {
        Some((head, rest)) if head.contains("line ") && head.contains("column ") => rest,
        _ => said,
    };
    said.split(" at line ").next().unwrap_or(said).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FILE: &str = r#"
tools:
  docker_deploy: {risk: high, capabilities: [deploy]}
  read_file: {supports_parallel: false}
commands:
  payroll: {description: Pays, command: ["./payroll", "--to", "{to}"],
            parameters: {type: object, properties: {to: {type: string}}, required: [to]},
            risk: high, capabilities: [payment], mutating: true, idempotent: false,
            supports_parallel: false, timeout: 30s, network: false}
mcp:
  files: {command: [npx, -y, "@modelcontextprotocol/server-filesystem", "."]}
  tracker: {url: "https://tracker.example/mcp", headers: {Authorization: "env:TRACKER_TOKEN"}}
"#;

    #[test]
    fn the_file_of_the_design_is_read() {
        let config = ToolsConfig::parse("tools.yaml", FILE).unwrap();
        let payroll = &config.commands["payroll"];
        assert_eq!(payroll.timeout, Some(Span(Duration::from_secs(30))));
        assert_eq!(payroll.risk, Some(Risk::High));
        assert_eq!(payroll.parameters["required"][0], "to");
        assert_eq!(config.mcp["tracker"].headers["Authorization"], "env:TRACKER_TOKEN");
        assert_eq!(config.tools.0["docker_deploy"].capabilities, Some(vec!["deploy".to_owned()]));
        for empty in ["", "# nothing yet\n", "extends: builtin\n", "{}"] {
            assert!(ToolsConfig::parse("tools.yaml", empty).is_ok(), "{empty:?}");
        }
    }

    #[test]
    fn a_mistake_is_shown_with_its_place() {
        for (text, place, part) in [
            ("tools:\n  x: {risky: high}\n", "tools.yaml:2:7", "risky"),
            ("tools:\n  x: {risk: deadly}\n", "tools.yaml:2:13", "deadly"),
            ("commands:\n  x: {description: d}\n", "tools.yaml:2:7", "command"),
            ("mcp:\n  x:\n    url: u\n    timeout: soon\n", "tools.yaml:4:14", "soon"),
            ("tools: [\n", "tools.yaml:", ""),
            ("tools: {}\ntools: {}\n", "tools.yaml:2:1", "tools"),
        ] {
            let error = ToolsConfig::parse("tools.yaml", text).unwrap_err().to_string();
            assert!(error.starts_with(place), "{error}");
            assert!(error.contains(part), "{error}");
        }
    }
}
