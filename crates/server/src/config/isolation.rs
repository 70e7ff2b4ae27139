//! `[isolation]`: whether commands are kept behind the kernel's walls, and what is in there.

use std::path::{Path, PathBuf};

use chancery_runtime::sandbox::{Isolation, Limits, Settings, Users};
use serde::{Deserialize, Serialize};

use super::{Config, ConfigError};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IsolationConfig {
    pub mode: IsolationMode,
    /// What commands may read and run, beside the system's own programs.
    pub programs: Vec<PathBuf>,
    /// Whether each agent has a Linux user of its own, where the server can give it one.
    pub users: UsersConfig,
    pub limits: Limits,
    /// What puts the walls up; this very binary unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launcher: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationMode {
    #[default]
    Require,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsersConfig {
    pub enabled: bool,
    /// The first of the numbers that are the agents', and how many there are.
    pub first: u32,
    pub count: u32,
}

impl Default for UsersConfig {
    fn default() -> UsersConfig {
        let Users { first, count } = Users::default();
        UsersConfig { enabled: true, first, count }
    }
}

impl Config {
    /// What commands are kept behind here. Tries it out.
    pub async fn isolation(&self, workspace: &Path) -> Isolation {
        if self.isolation.mode == IsolationMode::Off {
            return Isolation::Off;
        }
        let UsersConfig { enabled, first, count } = self.isolation.users;
        // Where it is not there yet, there is nothing that could be kept behind walls either.
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        Isolation::require(Settings {
            launcher: self.isolation.launcher.clone(),
            users: enabled.then_some(Users { first, count }),
            programs: self.isolation.programs.clone(),
            limits: self.isolation.limits,
            workspace,
        })
        .await
    }
}

pub fn check(config: &Config) -> Result<(), ConfigError> {
    let isolation = &config.isolation;
    let wrong = |key: &str, what: &str| {
        Err(ConfigError::Meaning(format!("setting `isolation.{key}` {what}")))
    };
    if let Some(path) = isolation.programs.iter().find(|it| !it.is_absolute()) {
        return wrong("programs", &format!("has `{}`, which is not absolute", path.display()));
    }
    let users = isolation.users;
    // The lower numbers are the system's and its people's; the last one means nobody.
    if users.first < 1000 || users.count < 2 || users.first.checked_add(users.count).is_none() {
        return wrong("users", "has no range of at least two numbers from 1000 upwards");
    }
    let limits = isolation.limits;
    for (key, value, low) in [
        ("limits.processes", limits.processes, 4),
        ("limits.memory_bytes", limits.memory_bytes, 16 << 20),
        ("limits.file_bytes", limits.file_bytes, 1 << 10),
        ("limits.open_files", limits.open_files, 16),
        ("limits.scratch_bytes", limits.scratch_bytes, 1 << 16),
    ] {
        if value < low {
            return wrong(key, &format!("is {value}; it is {low} at least"));
        }
    }
    Ok(())
}
