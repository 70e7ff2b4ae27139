//! `[tools.git]`, `[tools.docker]` and `[tools.web]`: what the operator says of what lies outside
//! of the workspace. What is not said is not reached.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration::Span;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub git: GitSettings,
    pub docker: DockerSettings,
    pub web: WebSettings,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitSettings {
    /// Where the repository is, from the workspace on.
    pub repository: String,
    /// Where branches are pushed to: a URL, or the absolute path of a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The value of the `Authorization` header for it: `env:NAME`, alone or after a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DockerSettings {
    /// The docker CLI, by name or by path.
    pub program: String,
    /// `DOCKER_HOST`, unless an environment has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Those that nothing goes to without an approval.
    pub production: Vec<String>,
    /// How long an approval holds.
    pub approval_lasts: Span,
    pub environments: BTreeMap<String, EnvironmentSettings>,
}

/// Where something is deployed to, and with which options of `docker run`: the operator's, for
/// they reach the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub options: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSettings {
    /// A SearXNG endpoint that answers in JSON: `https://search.example/search`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Addresses and networks that `read_url` may reach although they are private: `10.1.2.3`,
    /// `10.0.0.0/8`, `fd00::/8`.
    pub allow_private: Vec<String>,
}

impl Default for GitSettings {
    fn default() -> GitSettings {
        GitSettings { repository: ".".to_owned(), remote: None, authorization: None }
    }
}

impl Default for DockerSettings {
    fn default() -> DockerSettings {
        let plain = EnvironmentSettings::default();
        let names = ["staging", "production"].map(|it| (it.to_owned(), plain.clone()));
        DockerSettings {
            program: "docker".to_owned(),
            host: None,
            production: vec!["production".to_owned()],
            approval_lasts: Span(Duration::from_secs(24 * 3600)),
            environments: names.into(),
        }
    }
}
