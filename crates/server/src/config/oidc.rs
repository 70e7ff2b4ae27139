//! `[oidc]`: who vouches for people, who of them is let in, and what they may.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use chancery_runtime::issuer::{Issuer, Terms, is_safe};
use chancery_runtime::model::Secret;
use chancery_runtime::tool::config::Span;
use serde::{Deserialize, Serialize};

use super::webhook::secret;
use super::{Config, ConfigError};

/// Where people are sent back to.
pub const CALLBACK: &str = "/signin/oidc/callback";
/// Everyone whom the issuer vouches for.
pub const EVERYONE: &str = "*";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcConfig {
    /// As its discovery document spells it, to the letter.
    pub issuer: String,
    pub client_id: String,
    /// The environment variable that holds the client's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// Or the file that holds it. Neither: a public client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// What the button says; the issuer's host unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default = "usual_scopes")]
    pub scopes: Vec<String>,
    /// The claim that people are called by; unless set, `preferred_username`, else a verified
    /// `email`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_claim: Option<String>,
    /// The claim that lists a person's groups.
    #[serde(default = "usual_groups")]
    pub groups_claim: String,
    /// The groups that are let in, beside those of `roles`; `*`: everyone.
    #[serde(default)]
    pub allow: Vec<String>,
    /// What a group's people may: `person`, `approver` or `operator`.
    #[serde(default)]
    pub roles: BTreeMap<String, Standing>,
    /// Whether those are let in who were never here.
    #[serde(default = "yes")]
    pub create: bool,
    /// Whether a name at the issuer is the same person as that name here.
    #[serde(default)]
    pub link: bool,
    /// How long a visit lasts: what the issuer takes back is noticed after it.
    #[serde(default = "usual_visit")]
    pub visit: Span,
    /// How long one answer of the issuer may take.
    #[serde(default = "usual_timeout")]
    pub timeout_seconds: u64,
}

/// What a person may, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Person,
    /// Answers what others' agents ask.
    Approver,
    /// Acts for anybody.
    Operator,
}

fn usual_scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).to_vec()
}

fn usual_groups() -> String {
    "groups".to_owned()
}

fn usual_visit() -> Span {
    Span(Duration::from_secs(12 * 60 * 60))
}

fn usual_timeout() -> u64 {
    10
}

fn yes() -> bool {
    true
}

impl OidcConfig {
    pub fn new(issuer: &str, client_id: &str) -> OidcConfig {
        OidcConfig {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret_env: None,
            client_secret_file: None,
            name: None,
            scopes: usual_scopes(),
            username_claim: None,
            groups_claim: usual_groups(),
            allow: Vec::new(),
            roles: BTreeMap::new(),
            create: true,
            link: false,
            visit: usual_visit(),
            timeout_seconds: usual_timeout(),
        }
    }

    /// What the button says.
    pub(crate) fn shown_as(&self) -> String {
        let host = self.issuer.split_once("://").map_or(&*self.issuer, |it| it.1);
        let host = host.split('/').next().unwrap_or(host);
        self.name.clone().unwrap_or_else(|| host.to_owned())
    }

    /// Whether anybody who is vouched for answers what others' agents ask.
    pub(crate) fn names_approvers(&self) -> bool {
        self.roles.values().any(|it| *it >= Standing::Approver)
    }

    /// What somebody of these groups may. `None`: they are not let in.
    pub(crate) fn standing(&self, groups: &BTreeSet<String>) -> Option<Standing> {
        let given = groups.iter().filter_map(|it| self.roles.get(it)).max().copied();
        let allowed = |it: &String| it == EVERYONE || groups.contains(it);
        given.or_else(|| self.allow.iter().any(allowed).then_some(Standing::Person))
    }

    /// `base` is where people reach this server.
    pub(crate) fn issuer(
        &self,
        base: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<Issuer, ConfigError> {
        let wrong = |detail: String| ConfigError::Meaning(format!("oidc: {detail}"));
        let client_secret = match (&self.client_secret_env, &self.client_secret_file) {
            (Some(variable), _) => Some(secret(environment, variable).map_err(wrong)?),
            (None, Some(file)) => Some(std::fs::read_to_string(file).map_err(|it| {
                wrong(format!("`client_secret_file`: `{}`: {it}", file.display()))
            })?),
            (None, None) => None,
        };
        let mut wanted = vec![self.groups_claim.clone()];
        wanted.push(self.username_claim.clone().unwrap_or("preferred_username".to_owned()));
        let terms = Terms {
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret: client_secret.map(Secret::from),
            scopes: self.scopes.clone(),
            redirect_uri: format!("{}{CALLBACK}", base.trim_end_matches('/')),
            wanted,
            patience: Duration::from_secs(self.timeout_seconds),
        };
        Issuer::new(terms).map_err(|it| wrong(it.to_string()))
    }
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let Some(oidc) = &config.oidc else { return Ok(()) };
    let wrong = |detail: &str| Err(ConfigError::Meaning(format!("oidc: {detail}")));
    if !is_safe(&oidc.issuer) || oidc.issuer.contains('?') {
        return wrong("`issuer` is an `https://` URL (`http://` on this machine alone)");
    }
    if oidc.client_id.is_empty() {
        return wrong("`client_id` is empty");
    }
    if oidc.client_secret_env.is_some() && oidc.client_secret_file.is_some() {
        return wrong("the secret is in `client_secret_env` or in `client_secret_file`, not both");
    }
    if !oidc.scopes.iter().any(|it| it == "openid") {
        return wrong("`scopes` must name `openid`");
    }
    if oidc.scopes.iter().any(|it| it.is_empty() || it.contains(char::is_whitespace)) {
        return wrong("a scope is one word");
    }
    if oidc.allow.is_empty() && oidc.roles.is_empty() {
        return wrong(
            "nobody is let in: name groups in `allow` or `roles`, or write `allow = [\"*\"]` for \
             everyone whom the issuer vouches for",
        );
    }
    match &config.public_url {
        Some(url) if !is_safe(url) => wrong(
            "people come back to `public_url`, which must be an `https://` URL (`http://` on this \
             machine alone)",
        ),
        None if !config.listen.ip().is_loopback() => {
            wrong("people come back to `public_url`: set it to where they reach this server")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_any_group_gives_counts_and_no_group_gives_nothing() {
        let mut config = OidcConfig::new("https://id.example", "chancery");
        config.allow = vec!["staff".to_owned()];
        config.roles = BTreeMap::from([
            ("leads".to_owned(), Standing::Approver),
            ("ops".to_owned(), Standing::Operator),
        ]);
        let standing = |config: &OidcConfig, groups: &[&str]| {
            config.standing(&groups.iter().map(|it| (*it).to_owned()).collect())
        };
        for (groups, expected) in [
            (&["staff"][..], Some(Standing::Person)),
            (&["staff", "leads"], Some(Standing::Approver)),
            (&["leads", "ops", "x"], Some(Standing::Operator)),
            (&["Staff", "OPS", "staff ", "*"], None),
            (&[], None),
        ] {
            assert_eq!(standing(&config, groups), expected, "{groups:?}");
        }
        config.allow = vec![EVERYONE.to_owned()];
        assert_eq!(standing(&config, &[]), Some(Standing::Person));
        assert_eq!(standing(&config, &["ops"]), Some(Standing::Operator));
    }
}
