//! The walls around a process: what it may read and write, whether it has a network, and how much
//! of the machine. Says what they are; [`launch`] puts them up, in a process of its own.
//!
//! The server never restricts itself and never forks. It starts our own binary once in a hidden
//! mode, the resident launcher, which is small and has one thread: that one forks for each
//! program, and the fork restricts itself before it starts it.

mod calls;
mod cgroup;
mod establish;
mod fence;
mod filter;
mod grant;
mod ground;
mod hide;
pub mod launch;
mod limits;
mod line;
mod namespaces;
mod probe;
mod ranges;
mod resident;
mod tree;
mod user;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chancery_domain::contract::Warrant;
use chancery_domain::org::Stated;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::tool::CallContext;

pub use cgroup::Groups;
pub use establish::Settings;
pub use limits::Limits;
pub use line::{End, Input, Launched, Line};
pub use namespaces::Namespaces;
pub use probe::{Attempt, Layers};
pub use user::Users;

/// What a process may reach. Everything else of the machine is not there for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Walls {
    pub workspace: PathBuf,
    /// Beneath the workspace. One that ends in `/` is a directory.
    pub read: Vec<PathBuf>,
    /// Beneath the workspace, and readable too. A directory that is missing is made.
    pub write: Vec<PathBuf>,
    /// Outside the workspace: files and directories that may be read and run.
    pub programs: Vec<PathBuf>,
    pub network: bool,
    /// Whose process it is: its agent's, where agents have users of their own.
    pub agent: Option<String>,
    pub limits: Limits,
}

impl Walls {
    /// Those of a call: what the file scope of its agent's role says, as the organisation is now
    /// and not as it was when the run began, and for a role without one the whole workspace.
    pub fn of(context: &CallContext, workspace: &Path, network: bool) -> Walls {
        let scope = context.caller().map(|it| it.role.file_scope.as_ref());
        let (read, write) = match scope {
            Some(Some(scope)) => {
                (paths(&scope.read, &context.warrant), paths(&scope.write, &context.warrant))
            }
            Some(None) => (Vec::new(), vec![PathBuf::from("./")]),
            // Nobody of that name is there any more: nothing is theirs.
            None => (Vec::new(), Vec::new()),
        };
        let agent = Some(context.speaker.agent.to_string());
        Walls { read, write, agent, ..Walls::around(workspace, network) }
    }

    /// Those of a program that works for the organisation as a whole: it has the whole workspace.
    pub fn around(workspace: &Path, network: bool) -> Walls {
        Walls {
            workspace: workspace.to_owned(),
            read: Vec::new(),
            write: vec![PathBuf::from("./")],
            programs: Vec::new(),
            network,
            agent: None,
            limits: Limits::default(),
        }
    }
}

/// A file scope's entries as paths beneath the workspace. One that leads elsewhere, or has a
/// `{…}` that nothing stands for, grants nothing.
fn paths(entries: &[Stated<String>], warrant: &Warrant) -> Vec<PathBuf> {
    let filled = entries.iter().flat_map(|it| warrant.fill(&it.value));
    let beneath = |it: &Cow<'_, str>| {
        !it.starts_with('/') && !it.contains(['\\', '\0']) && it.split('/').all(|it| it != "..")
    };
    filled.filter(beneath).map(|it| PathBuf::from(&*it)).collect()
}

/// Whether processes are kept behind walls here. All clones are one.
#[derive(Debug, Clone)]
pub enum Isolation {
    /// By the operator's own word.
    Off,
    On(Arc<Launcher>),
    /// Required, and not to be had: nothing starts.
    Lacking(Arc<str>),
}

/// How walls are put up on this machine.
#[derive(Debug)]
pub struct Launcher {
    pub line: Line,
    pub layers: Layers,
    pub users: Option<Users>,
    /// Where they can be made.
    pub groups: Option<Arc<Groups>>,
    /// What the operator lets every program read and run, beside the system's own.
    pub programs: Vec<PathBuf>,
    pub limits: Limits,
}

/// What a process that the resident has made is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    argv: Vec<String>,
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    walls: Walls,
    user: Option<u32>,
    /// A directory of its own, where it cannot have a `/tmp` of its own.
    scratch: Option<PathBuf>,
}

/// The hidden mode.
pub const MODE: &str = "__confine";
/// What a process has on this machine beside itself. Goes when nobody is left who could use it.
#[derive(Debug, Default)]
struct Belongings {
    group: Option<cgroup::Group>,
    _scratch: Option<Scratch>,
}

/// A directory that is removed with this value.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Launcher {
    /// Starts a program behind these walls.
    pub fn launch(
        &self,
        argv: &[String],
        environment: &BTreeMap<String, String>,
        directory: &Path,
        walls: &Walls,
        input: Input,
    ) -> io::Result<Launched> {
        let mut walls = Walls { limits: self.limits.and(&walls.limits), ..walls.clone() };
        walls.programs.extend(self.programs.iter().cloned());
        let namespaces = self.layers.namespaces;
        let scratch = match namespaces {
            Namespaces::None => Some(Scratch::new()?),
            Namespaces::Own | Namespaces::Users => None,
        };
        let user = match (&self.users, &walls.agent) {
            (Some(users), agent) if namespaces == Namespaces::Own => {
                Some(users.of(agent.as_deref()))
            }
            _ => None,
        };
        let group = self.groups.as_ref().map(Groups::make).transpose()?;
        let order = Order {
            argv: argv.to_vec(),
            environment: environment.clone(),
            directory: directory.to_owned(),
            walls,
            user,
            scratch: scratch.as_ref().map(|it| it.0.clone()),
        };
        self.line.launch(&order, input, Belongings { group, _scratch: scratch })
    }
}

impl Scratch {
    fn new() -> io::Result<Scratch> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = std::env::temp_dir().join(format!("chancery-{}", clock::new_worker_id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed harms nobody: it is in the place for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use chancery_domain::id::AgentId;
    use chancery_domain::org::{Agent, FileScope, Org, Role};

    use super::*;
    use crate::tool::testing::context;

    #[test]
    fn walls_are_those_of_the_role_that_the_agent_has_now() {
        let role = |name: &str, scope: Option<&str>| Role {
            file_scope: scope
                .map(|it| FileScope { read: Vec::new(), write: vec![it.to_owned().into()] }),
            ..Role::unlimited(name)
        };
        let mut context = context();
        let agent = context.speaker.agent.clone();
        let mut walls = |roles: Vec<Role>, agents: Vec<(AgentId, Agent)>| {
            context.org = Arc::new(Org::new(roles, agents).unwrap());
            Walls::of(&context, Path::new("/w"), false).write
        };
        let began_as = || role("personal_agent", None);
        let now = vec![(agent, Agent::of("now"))];
        let narrow = walls(vec![began_as(), role("now", Some("a/"))], now.clone());
        assert_eq!(narrow, [PathBuf::from("a/")]);
        let whole = walls(vec![role("now", None)], now);
        assert_eq!(whole, [PathBuf::from("./")]);
        assert!(walls(vec![began_as()], Vec::new()).is_empty());
    }

    #[test]
    fn an_entry_that_leads_elsewhere_grants_nothing() {
        let entries = [
            "agents/qa/",
            "README.md",
            "{contract.workspace_scope}",
            "/etc",
            "../x",
            "a/../../x",
            "a\0b",
            ".",
        ];
        let entries = entries.map(|it| it.to_owned().into());
        let expected = ["agents/qa/", "README.md", "."].map(PathBuf::from);
        assert_eq!(paths(&entries, &Warrant::default()), expected);
        let scopes = vec!["src/a".to_owned(), "../b".to_owned()];
        let warrant = Warrant { scopes, ..Warrant::default() };
        assert!(paths(&entries, &warrant).contains(&PathBuf::from("src/a")));
        assert_eq!(paths(&entries, &warrant).len(), 4);
    }
}
