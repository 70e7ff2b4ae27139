//! Finds out how walls can be put up here, once for a server: the best that a process of ours
//! could not get out of.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{geteuid, getpid};
use tokio_util::sync::CancellationToken;

use super::probe::{ATTEMPTS, Attempt};
use super::{Groups, Isolation, Launcher, Layers, Limits, Line, MODE, Namespaces, Users, Walls};
use crate::tool::process::{self, Behind, Ended, How, Program};

/// What the operator says about isolation, beside that it is required.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Our own binary. Absent: this very process's.
    pub launcher: Option<PathBuf>,
    pub users: Option<Users>,
    pub programs: Vec<PathBuf>,
    pub limits: Limits,
    pub workspace: PathBuf,
}

/// Whatever program a process of ours is, it is this to itself, also after an upgrade.
const OURSELVES: &str = "/proc/self/exe";
/// It takes milliseconds; a machine that is busy may need more.
const PATIENCE: Duration = Duration::from_secs(20);

impl Isolation {
    pub async fn require(settings: Settings) -> Isolation {
        let mut why = String::new();
        for namespaces in [Namespaces::Own, Namespaces::Users, Namespaces::None] {
            // With privileges there is no need for a user namespace, which would hide the
            // agents' users.
            let privileged = geteuid().is_root();
            if privileged && namespaces == Namespaces::Users
                || !privileged && namespaces == Namespaces::Own
            {
                continue;
            }
            let lacking = Some(why.clone()).filter(|it| !it.is_empty());
            match attempt(&settings, namespaces, lacking).await {
                Ok(launcher) => return Isolation::On(Arc::new(launcher)),
                Err(error) => why = error,
            }
        }
        Isolation::Lacking(why.into())
    }
}

async fn attempt(
    settings: &Settings,
    namespaces: Namespaces,
    lacking: Option<String>,
) -> Result<Launcher, String> {
    let users = settings.users.filter(|_| namespaces == Namespaces::Own);
    let users_hold = users.is_some();
    let layers = Layers { namespaces, users: users_hold, lacking, attempts: Vec::new() };
    let program = settings.launcher.clone().unwrap_or_else(|| OURSELVES.into());
    let launcher = Launcher {
        line: Line::new(program, namespaces),
        layers,
        users,
        groups: Groups::find().map(Arc::new),
        programs: settings.programs.clone(),
        limits: settings.limits,
    };
    let launcher = Arc::new(launcher);
    let binary = match &settings.launcher {
        Some(named) => named.clone(),
        None => std::env::current_exe().map_err(|it| it.to_string())?,
    };
    let binary = binary.canonicalize().map_err(|it| format!("`{}`: {it}", binary.display()))?;
    let user = users.map_or(-1, |it| i64::from(it.of(None)));
    let argv = [
        binary.to_string_lossy().into_owned(),
        MODE.to_owned(),
        ATTEMPTS.to_owned(),
        getpid().as_raw_nonzero().to_string(),
        user.to_string(),
    ];
    let mut walls = Walls::around(&settings.workspace, false);
    walls.write.clear();
    walls.programs.push(binary);
    let program = Program {
        argv: argv.to_vec(),
        environment: BTreeMap::new(),
        directory: settings.workspace.clone(),
        behind: Behind::Walls(Isolation::On(launcher.clone()), Box::new(walls)),
    };
    let ran = process::run(&program, PATIENCE, 64 * 1024, &CancellationToken::new()).await;
    let ended = ran.map_err(|it| match it.kind() {
        io::ErrorKind::Unsupported => it.to_string(),
        _ => format!("the launcher cannot be started: {it}"),
    })?;
    drop(program);
    let mut launcher =
        Arc::into_inner(launcher).ok_or_else(|| "the launcher is busy".to_owned())?;
    launcher.layers.attempts = in_vain(&ended)?;
    Ok(launcher)
}

fn in_vain(ended: &Ended) -> Result<Vec<String>, String> {
    let said = || {
        let text = ended.stderr.text();
        text.trim().chars().take(500).collect::<String>()
    };
    match ended.how {
        How::Exited(status) if status.success() => {}
        How::Exited(status) => return Err(format!("{} ({status})", said())),
        How::TimedOut | How::Cancelled => return Err("the launcher does not end".to_owned()),
    }
    let attempts: Vec<Attempt> = serde_json::from_slice(&ended.stdout.bytes)
        .map_err(|_| "the launcher is not one of ours".to_owned())?;
    let through: Vec<_> = attempts.iter().filter(|it| !it.stopped).map(|it| &*it.name).collect();
    if attempts.is_empty() || !through.is_empty() {
        return Err(format!("a process behind walls could {}", through.join(", ")));
    }
    Ok(attempts.into_iter().map(|it| it.name).collect())
}
