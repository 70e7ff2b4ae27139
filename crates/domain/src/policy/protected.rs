//! Names of files that hold secrets or run by themselves. Denied to everyone, whatever the scope.

use super::{Layer, Reason, Ruling, glob};

/// Matched, without regard to case, against every run of neighbouring parts of a path.
const PROTECTED: &[&str] = &[
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".ssh",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    // Holds tokens in remote URLs, and names programs that git runs.
    ".git/config",
    ".git/hooks",
    ".git/modules",
    ".git/worktrees",
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    ".cargo/credentials*",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "credentials.yaml",
    "credentials.yml",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
];

/// Templates that are made to be read and copied.
const TEMPLATES: &[&str] = &[".env.example", ".env.sample", ".env.template"];

/// The entry that stands against a path, if one does.
pub fn protected(path: &str) -> Option<&'static str> {
    let parts: Vec<String> =
        path.split('/').filter(|it| !["", ".", ".."].contains(it)).map(str::to_lowercase).collect();
    PROTECTED.iter().copied().find(|entry| {
        let wanted: Vec<&str> = entry.split('/').collect();
        parts.windows(wanted.len()).any(|run| {
            let template = matches!(run, [name] if TEMPLATES.contains(&&**name));
            !template && wanted.iter().zip(run).all(|(pattern, name)| glob(pattern, name))
        })
    })
}

/// What stands against touching a path, whoever does it.
pub fn rule_on_protected(path: &str) -> Option<Reason> {
    protected(path).map(|entry| Reason {
        layer: Layer::Arguments.as_str().to_owned(),
        rule: format!("protected `{entry}`"),
        outcome: Ruling::Deny,
        detail: format!("`{path}` is denied to everyone: it may hold a secret, or run by itself"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_names() {
        for (path, denied) in [
            (".env", true),
            ("app/.ENV", true),
            (".env.production", true),
            (".env.example", false),
            ("environment.md", false),
            ("certs/server.pem", true),
            ("certs/server.key", true),
            ("keys/readme.md", false),
            ("keyboard.txt", false),
            ("id_rsa", true),
            ("backup/id_rsa.old", true),
            (".git/config", true),
            ("vendored/lib/.git/config", true),
            (".git/hooks/pre-commit", true),
            (".git/HEAD", false),
            ("config", false),
            ("app/credentials.json", true),
            ("docs/credentials.md", false),
            ("git/config", false),
            ("./a/../.env", true),
            ("/srv/x//.env/", true),
        ] {
            assert_eq!(protected(path).is_some(), denied, "{path}");
        }
    }
}
