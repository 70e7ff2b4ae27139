//! The repository, and how git is run on it. Whoever writes in the workspace may have written in
//! the repository, so nothing that it says is let to run anything: git works in a directory of
//! its own with settings of ours, on the repository's objects. Of the repository itself only
//! names are read and moved.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chancery_domain::event::CallResult;
use serde_json::{Value, json};

use super::super::CallContext;
use super::super::process::{self, Behind, Ended, How, Program};
use crate::clock;

/// Git on this machine, and the one repository that agents work on.
#[derive(Debug)]
pub struct Git {
    /// The workspace, or a folder beneath it.
    root: PathBuf,
    /// What paths of the workspace begin with that are in the repository: nothing, or `a/b/`.
    prefix: String,
    search: String,
    remote: Option<Remote>,
}

/// Where branches are pushed to: the operator's word, not the repository's.
#[derive(Clone)]
pub struct Remote {
    pub url: String,
    /// The value of the `Authorization` header.
    pub authorization: Option<String>,
    /// Where `ssh` finds its keys.
    pub home: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error(
        "there is no git repository in `{0}` of the workspace: make one there, or name its folder in `[tools.git] repository`"
    )]
    NoRepository(String),
    #[error(
        "no remote is configured: set `[tools.git] remote` to the URL that branches are pushed to"
    )]
    NoRemote,
    #[error("`git` cannot be started: {0}")]
    Start(io::Error),
    #[error("git did not end in time")]
    TimedOut,
    #[error("the call was cancelled")]
    Cancelled,
    #[error("git refused: {0}")]
    Refused(String),
}

const TIMEOUT: Duration = Duration::from_secs(60);
const PUSH_TIMEOUT: Duration = Duration::from_secs(300);
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// What overrides a repository's own settings: none of them names a program that is run.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.symlinks=false",
    "core.sshCommand=ssh -oBatchMode=yes",
    "core.gitProxy=",
    "core.askPass=",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "protocol.ext.allow=never",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "push.recurseSubmodules=no",
    "push.followTags=false",
    "safe.directory=*",
];

impl Git {
    /// `repository` is a path from the workspace on.
    pub fn new(
        workspace: &Path,
        repository: &str,
        search: String,
        remote: Option<Remote>,
    ) -> Result<Git, String> {
        let parts = chancery_domain::policy::scope_components(repository).ok_or_else(|| {
            format!("`tools.git.repository`: `{repository}` is not a path beneath the workspace")
        })?;
        let prefix: String = parts.iter().map(|it| format!("{it}/")).collect();
        if let Some(remote) = &remote {
            check_url(&remote.url)?;
        }
        let root = parts.iter().fold(workspace.to_owned(), |at, part| at.join(part));
        Ok(Git { root, prefix, search, remote })
    }

    /// A path of the workspace, as the repository knows it.
    pub(super) fn within<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&*self.prefix).filter(|it| !it.is_empty())
    }

    /// What is pushed where: part of what somebody grants.
    pub(super) fn definition(&self) -> Value {
        json!({"repository": self.prefix, "remote": self.remote.as_ref().map(|it| &it.url)})
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A place to work in, for one call.
    pub(super) fn bench<'g>(&'g self, context: &'g CallContext) -> Result<Bench<'g>, GitError> {
        let own = self.root.join(".git");
        // A link would lead wherever somebody put it.
        let is_folder = |it: &Path| it.symlink_metadata().is_ok_and(|it| it.is_dir());
        let is_here = self.root.canonicalize().is_ok_and(|it| it == self.root);
        if !is_here || !is_folder(&own) || !is_folder(&own.join("objects")) {
            let named = self.prefix.trim_end_matches('/');
            let named = if named.is_empty() { "the root" } else { named };
            return Err(GitError::NoRepository(named.to_owned()));
        }
        let dir = own.join(format!("chancery-{}", clock::new_secret()));
        let bench = Bench { git: self, context, own, dir };
        bench.set_up().map_err(GitError::Start)?;
        Ok(bench)
    }
}

fn check_url(url: &str) -> Result<(), String> {
    let known = ["https://", "http://", "ssh://", "file://", "/"];
    let scp = url.split_once(':').is_some_and(|(host, path)| {
        host.contains('@') && !host.contains('/') && !path.starts_with(':')
    });
    if url.starts_with('-') || url.contains("::") || url.chars().any(char::is_control) {
        return Err(format!("`tools.git.remote`: `{url}` is not a URL of a repository"));
    }
    if !scp && !known.iter().any(|it| url.starts_with(it)) {
        return Err(format!(
            "`tools.git.remote`: `{url}` is neither https, http, ssh, a file: URL nor an absolute path"
        ));
    }
    if url.starts_with("http") && url.split('/').nth(2).is_some_and(|it| it.contains('@')) {
        return Err("`tools.git.remote` has credentials in it: set `tools.git.authorization` to \
                    `env:NAME` instead"
            .to_owned());
    }
    Ok(())
}

/// Where one call works: a git directory of ours beside the repository's objects. Ends with the
/// call.
#[derive(Debug)]
pub(super) struct Bench<'g> {
    git: &'g Git,
    context: &'g CallContext,
    /// The repository's own directory.
    own: PathBuf,
    dir: PathBuf,
}

/// On which directory git works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    /// Ours: with none of the repository's settings.
    Bench,
    /// The repository's own: for its names alone.
    Names,
}

impl Bench<'_> {
    fn set_up(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        for dir in ["", "refs", "objects", "files", "tree"] {
            builder.create(self.dir.join(dir))?;
        }
        std::fs::write(self.dir.join("HEAD"), "ref: refs/heads/none\n")
    }

    /// Objects of another format have longer names, and git wants to be told.
    fn set_format(&self, name: &str) -> Result<(), GitError> {
        let config = match name.len() {
            64 => {
                "[core]\nrepositoryformatversion = 1\nbare = true\n[extensions]\nobjectformat = sha256\n"
            }
            _ => "[core]\nrepositoryformatversion = 0\nbare = true\n",
        };
        std::fs::write(self.dir.join("config"), config).map_err(GitError::Start)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The commit that a branch is at.
    pub(super) async fn tip(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit_at(&format!("refs/heads/{branch}^{{commit}}")).await
    }

    pub(super) async fn head(&self) -> Result<Option<String>, GitError> {
        self.commit_at("HEAD^{commit}").await
    }

    async fn commit_at(&self, name: &str) -> Result<Option<String>, GitError> {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", name];
        let ended = self.start(On::Names, &args, TIMEOUT).await?;
        let name = ended.stdout.text().trim().to_owned();
        let is_name = !name.is_empty() && name.chars().all(|it| it.is_ascii_hexdigit());
        if !succeeded(&ended) || !is_name {
            return Ok(None);
        }
        self.set_format(&name)?;
        Ok(Some(name))
    }

    /// Moves a branch from where it was. `false`: it is elsewhere by now.
    pub(super) async fn move_branch(
        &self,
        branch: &str,
        to: &str,
        from: Option<&str>,
    ) -> Result<bool, GitError> {
        let name = format!("refs/heads/{branch}");
        let nowhere = "0".repeat(to.len());
        let from = from.unwrap_or(&nowhere);
        let args = ["update-ref", "--no-deref", "-m", "chancery", &name, to, from];
        let ended = self.start(On::Names, &args, TIMEOUT).await?;
        if succeeded(&ended) {
            return Ok(true);
        }
        let said = ended.stderr.text();
        if said.contains("but expected") || said.contains("already exists") {
            return Ok(false);
        }
        Err(GitError::Refused(shown(&said)))
    }

    /// Runs git with none of the repository's settings; answers what it said.
    pub(super) async fn run(&self, args: &[&str]) -> Result<String, GitError> {
        let ended = self.start(On::Bench, args, TIMEOUT).await?;
        if succeeded(&ended) {
            return Ok(ended.stdout.text());
        }
        Err(GitError::Refused(shown(&ended.stderr.text())))
    }

    pub(super) async fn push(&self, branch: &str, tip: &str) -> Result<(), GitError> {
        let remote = self.git.remote.as_ref().ok_or(GitError::NoRemote)?;
        let what = format!("{tip}:refs/heads/{branch}");
        let args = ["push", "--porcelain", "--no-verify", "--", &remote.url, &what];
        let ended = self.start(On::Bench, &args, PUSH_TIMEOUT).await?;
        if succeeded(&ended) {
            return Ok(());
        }
        let said = format!("{}{}", ended.stdout.text(), ended.stderr.text());
        Err(GitError::Refused(shown(&said)))
    }

    async fn start(&self, on: On, args: &[&str], timeout: Duration) -> Result<Ended, GitError> {
        let mut argv = vec!["git".to_owned(), "--no-pager".to_owned()];
        for setting in SETTINGS {
            argv.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        argv.extend(args.iter().map(|it| (*it).to_owned()));
        let program =
            // Its settings and its arguments are ours, and it runs nothing of the repository's.
            Program {
                argv,
                environment: self.environment(on),
                directory: self.dir.clone(),
                behind: Behind::Nothing,
            };
        let ended = process::run(&program, timeout, OUTPUT_BYTES_MAX, &self.context.cancelled)
            .await
            .map_err(GitError::Start)?;
        match ended.how {
            How::Exited(_) => Ok(ended),
            How::TimedOut => Err(GitError::TimedOut),
            How::Cancelled => Err(GitError::Cancelled),
        }
    }

    fn environment(&self, on: On) -> BTreeMap<String, String> {
        let path = |it: &Path| it.to_string_lossy().into_owned();
        let agent = self.context.speaker.agent.as_str();
        let date = format!("@{} +0000", clock::now().as_second());
        let mut all = BTreeMap::from([
            ("PATH", self.git.search.clone()),
            ("HOME", path(&self.dir)),
            ("LANG", "C.UTF-8".to_owned()),
            ("GIT_DIR", path(if on == On::Bench { &self.dir } else { &self.own })),
            ("GIT_WORK_TREE", path(&self.dir.join("tree"))),
            ("GIT_INDEX_FILE", path(&self.dir.join("index"))),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_ATTR_NOSYSTEM", "1".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_ASKPASS", "/bin/false".to_owned()),
            ("GIT_NO_LAZY_FETCH", "1".to_owned()),
            ("GIT_NO_REPLACE_OBJECTS", "1".to_owned()),
            ("GIT_GRAFT_FILE", "/dev/null".to_owned()),
            ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
            ("GIT_LITERAL_PATHSPECS", "1".to_owned()),
            ("GIT_ALLOW_PROTOCOL", "https:http:ssh:file".to_owned()),
            ("GIT_AUTHOR_NAME", agent.to_owned()),
            ("GIT_AUTHOR_EMAIL", format!("{agent}@agents.invalid")),
            ("GIT_AUTHOR_DATE", date.clone()),
            ("GIT_COMMITTER_NAME", agent.to_owned()),
            ("GIT_COMMITTER_EMAIL", format!("{agent}@agents.invalid")),
            ("GIT_COMMITTER_DATE", date),
        ]);
        if on == On::Bench {
            all.insert("GIT_OBJECT_DIRECTORY", path(&self.own.join("objects")));
            let remote = self.git.remote.as_ref();
            if let Some(home) = remote.and_then(|it| it.home.clone()) {
                all.insert("HOME", home);
            }
            // In the environment, where other users of the machine do not read it.
            if let Some(value) = remote.and_then(|it| it.authorization.as_ref()) {
                all.insert("GIT_CONFIG_COUNT", "1".to_owned());
                all.insert("GIT_CONFIG_KEY_0", "http.extraHeader".to_owned());
                all.insert("GIT_CONFIG_VALUE_0", format!("Authorization: {value}"));
            }
        }
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "A directory of git stays behind: {error}");
        }
    }
}

fn succeeded(ended: &Ended) -> bool {
    matches!(ended.how, How::Exited(status) if status.success())
}

fn shown(said: &str) -> String {
    chancery_domain::text::visible(said.trim()).chars().take(4000).collect()
}

// Without what authorises.
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

impl From<GitError> for CallResult {
    fn from(error: GitError) -> CallResult {
        let code = match error {
            GitError::NoRepository(_) | GitError::NoRemote => "NOT_CONFIGURED",
            GitError::Start(_) | GitError::Refused(_) => "GIT_FAILED",
            GitError::TimedOut => "TIMEOUT",
            GitError::Cancelled => "CANCELLED",
        };
        CallResult::error(code, error.to_string())
    }
}
