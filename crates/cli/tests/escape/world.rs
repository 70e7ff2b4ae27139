//! A machine to get out into, and the walls around the attacker.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "tests start processes")]

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chancery_runtime::sandbox::{
    Groups, Input, Launched, Launcher, Layers, Limits, Line, Namespaces, Users, Walls,
};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Runtime;

#[derive(Debug)]
pub struct World {
    dir: TempDir,
    launcher: Launcher,
    _resident: Victim,
    runtime: Runtime,
    /// Who starts the launcher.
    starter: Option<u32>,
    victim: Victim,
    tcp: TcpListener,
    udp: UdpSocket,
    _sockets: [UnixListener; 2],
}

/// How an attempt went.
#[derive(Debug, Clone, PartialEq)]
pub struct Went {
    pub stopped: bool,
    pub said: String,
    pub took: Duration,
}

pub const NOBODY: u32 = 65534;
const AGENT: &str = "pa";

impl World {
    /// As root, with a user for each agent; or as nobody, in a user namespace or in none.
    pub fn new(namespaces: Namespaces) -> World {
        // Not in `/tmp`, of which each process has one of its own.
        let dir =
            tempfile::Builder::new().prefix("chancery-escape-").tempdir_in("/var/tmp").unwrap();
        let users = Users::default();
        let (starter, agent) = match namespaces {
            Namespaces::Own => (None, users.of(Some(AGENT))),
            Namespaces::Users | Namespaces::None => (Some(NOBODY), NOBODY),
        };
        let at = |name: &str| dir.path().join(name);
        furnish(dir.path(), starter, agent);
        let binary = at("chancery");
        let ours = Path::new(env!("CARGO_BIN_EXE_chancery"));
        // It lies where only we may look.
        std::fs::hard_link(ours, &binary)
            .or_else(|_| std::fs::copy(ours, &binary).map(drop))
            .unwrap();
        compile("attacker.c", &at("attacker"), &[]);
        compile("preload.c", &at("preload.so"), &["-shared", "-fPIC"]);
        let (line, resident) = resident(&binary, &at("outside/secret"), starter, namespaces);
        let launcher = Launcher {
            line,
            layers: Layers {
                namespaces,
                users: starter.is_none(),
                lacking: None,
                attempts: vec![],
            },
            users: starter.is_none().then_some(users),
            groups: starter.is_none().then(Groups::find).flatten().map(Arc::new),
            programs: vec![at("attacker"), at("preload.so")],
            limits: Limits {
                memory_bytes: 256 << 20,
                file_bytes: 8 << 20,
                cpu_seconds: Some(1),
                ..Limits::default()
            },
        };
        let mut victim = Command::new("sleep");
        victim.arg("120").env_clear().env("PATH", "/usr/bin:/bin").env("SECRET", "s3cret");
        victim.current_dir(at("outside")).uid(agent).gid(agent).stdin(Stdio::null());
        let victim = Victim(victim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let name = dir.path().file_name().unwrap().as_encoded_bytes();
        let hidden = SocketAddr::from_abstract_name(name).unwrap();
        let open = UnixListener::bind(at("outside/socket")).unwrap();
        std::fs::set_permissions(at("outside/socket"), PermissionsExt::from_mode(0o777)).unwrap();
        World {
            launcher,
            _resident: resident,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            starter,
            victim,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _sockets: [open, UnixListener::bind_addr(&hidden).unwrap()],
            dir,
        }
    }

    pub fn has_groups(&self) -> bool {
        self.launcher.groups.is_some()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn walls(&self) -> Walls {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect();
        Walls {
            read: paths(&["docs/"]),
            write: paths(&["agents/pa/", "src/"]),
            agent: Some(AGENT.to_owned()),
            ..Walls::around(&self.path("ws"), false)
        }
    }

    /// Behind the walls.
    pub fn attempt(&self, words: &[&str]) -> Went {
        let program = self.path("attacker").display().to_string();
        let argv: Vec<String> =
            [program].into_iter().chain(words.iter().map(|it| self.filled(it))).collect();
        let environment = BTreeMap::from([
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("LD_PRELOAD".to_owned(), self.path("preload.so").display().to_string()),
        ]);
        let workspace = self.path("ws");
        let began = Instant::now();
        let (status, said) = self.runtime.block_on(async {
            let nothing = Input::Nothing;
            let launched =
                self.launcher.launch(&argv, &environment, &workspace, &self.walls(), nothing);
            let Launched { mut stdout, mut stderr, mut end, .. } = launched.unwrap();
            let ended = async {
                let status = end.wait().await.unwrap().unwrap();
                // As the server does. What left the group holds the output until its end.
                end.kill();
                status
            };
            let (mut out, mut err) = (String::new(), String::new());
            let said = async {
                stdout.read_to_string(&mut out).await.unwrap();
                stderr.read_to_string(&mut err).await.unwrap();
            };
            let (status, ()) = tokio::join!(ended, said);
            (status, out + &err)
        });
        went(status, &said, began)
    }

    /// With nothing around it: what must be possible, so that being stopped means something.
    pub fn attempt_freely(&self, words: &[&str]) -> Went {
        let mut command = Command::new(self.path("attacker"));
        command.args(words.iter().map(|it| self.filled(it))).env_clear();
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Went {
        command.current_dir(self.path("ws")).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(user) = self.starter {
            command.uid(user).gid(user);
        }
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        let reading = std::thread::spawn(move || {
            let mut said = String::new();
            for output in &mut outputs {
                output.read_to_string(&mut said).unwrap();
            }
            said
        });
        let status = child.wait().unwrap();
        // As the server does. What left the group holds the output until its end.
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let _ = kill_process_group(group, Signal::KILL);
        let said = reading.join().unwrap();
        went(status, &said, began)
    }

    fn filled(&self, word: &str) -> String {
        let port = |it: std::io::Result<std::net::SocketAddr>| it.unwrap().port().to_string();
        let outside = self.path("outside").display().to_string();
        match word {
            "TCP" => port(self.tcp.local_addr()),
            "UDP" => port(self.udp.local_addr()),
            "ABSTRACT" => self.dir.path().file_name().unwrap().to_string_lossy().into_owned(),
            "SHARED" => "77".to_owned(),
            _ => word
                .replace("VICTIM", &self.victim.0.id().to_string())
                .replace("/OUT", &outside)
                .replace("OUT", &outside),
        }
    }
}

fn went(status: ExitStatus, said: &str, began: Instant) -> Went {
    let (code, signal) = (status.code(), status.signal());
    assert!(matches!((code, signal), (Some(0 | 1), None) | (None, Some(_))), "{code:?} {said}");
    Went { stopped: code != Some(0), said: said.trim().to_owned(), took: began.elapsed() }
}

/// The resident launcher as a server would have it, started by somebody who leaves it a descriptor
/// that it should not have, and a variable too.
fn resident(
    binary: &Path,
    secret: &Path,
    starter: Option<u32>,
    namespaces: Namespaces,
) -> (Line, Victim) {
    let (line, theirs) = UnixStream::pair().unwrap();
    let script = "exec 7< \"$1\"; shift; exec \"$@\"";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).arg(secret).arg(binary).args(Line::arguments(namespaces));
    command.env_clear().env("SERVER_SECRET", "s3cret").stdin(OwnedFd::from(theirs));
    if let Some(user) = starter {
        command.uid(user).gid(user);
    }
    let resident = Victim(command.spawn().unwrap());
    (Line::to(line, namespaces), resident)
}

/// A process that ends with the test, however that ends.
#[derive(Debug)]
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn furnish(dir: &Path, owner: Option<u32>, agent: u32) {
    let at = |name: &str| dir.join(name);
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    for name in ["outside/open", "ws/agents/pa", "ws/agents/other", "ws/docs", "ws/private"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    for name in ["ws/src/deep/er", "ws/src/.git/hooks"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    for name in [
        "outside/secret",
        "outside/planted",
        "outside/open/file",
        "outside/open/gone",
        "outside/open/mine",
        "outside/open/moved",
        "ws/agents/other/diary",
        "ws/docs/readme",
        "ws/private/note",
        "ws/src/main",
        "ws/src/spare",
        "ws/src/.env",
        "ws/src/deep/er/server.key",
        "ws/src/.git/config",
    ] {
        std::fs::write(at(name), "s3cret\n").unwrap();
    }
    std::fs::write(at("outside/tool"), "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(at("outside/tool"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(at("outside/open/file"), PermissionsExt::from_mode(0o666)).unwrap();
    std::fs::set_permissions(at("outside/open"), PermissionsExt::from_mode(0o777)).unwrap();
    symlink(at("outside"), at("ws/src/link")).unwrap();
    std::fs::hard_link(at("outside/planted"), at("ws/src/planted")).unwrap();
    for entry in walk(&at("ws")) {
        if entry.file_name().is_none_or(|it| it != "planted") {
            std::os::unix::fs::lchown(&entry, owner, owner).unwrap();
        }
    }
    chown(at("outside/open/mine"), Some(agent), Some(agent)).unwrap();
    // Says whether it is root, and is owned by root where we are.
    compile("setuid.c", &at("ws/src/setuid"), &[]);
    std::fs::set_permissions(at("ws/src/setuid"), PermissionsExt::from_mode(0o4755)).unwrap();
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

fn compile(source: &str, to: &Path, more: &[&str]) {
    let source = chancery_testkit::package().join("tests/escape").join(source);
    let mut compiler = Command::new("cc");
    let status = compiler.args(["-O1", "-o"]).arg(to).arg(source).args(more).status().unwrap();
    assert!(status.success(), "a C compiler is needed");
}
