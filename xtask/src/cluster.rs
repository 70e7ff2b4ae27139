//! A PostgreSQL server of one's own: finds the programs, makes a data directory, and starts the
//! server as someone who is not root.
//!
//! Two crates compile this file: `xtask`, and `chancery-testkit` through `#[path]`. If one
//! depended on the other, every `cargo xtask` would first build the whole product; two copies
//! would drift apart; a crate for one file is not worth its name. So it uses the standard library
//! alone, and has no item that only one of the two needs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A first start writes a few megabytes; a minute means that it will not come.
const READY_MAX: Duration = Duration::from_secs(60);

/// A data directory with its server's address. Whether the server runs is the caller's business.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub dir: PathBuf,
    pub port: u16,
    programs: PathBuf,
    /// Set if we are root, as whom PostgreSQL refuses to run.
    owner: Option<Owner>,
}

#[derive(Debug, Clone)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Cluster {
    /// Makes the data directory inside `dir`, which exists and is empty.
    pub fn create(dir: &Path) -> io::Result<Cluster> {
        let programs = programs().ok_or_else(|| {
            io::Error::other("PostgreSQL is missing: install the package `postgresql`")
        })?;
        let owner = if is_root()? { Some(Owner::find()?) } else { None };
        let cluster = Cluster { dir: dir.to_owned(), port: free_port()?, programs, owner };
        if let Some(owner) = &cluster.owner {
            chown(dir, Some(owner.uid), Some(owner.gid))?;
        }
        let made = cluster
            .program("initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"])
            // Only the making of the empty cluster: if that is lost, it is made again.
            .arg("--no-sync")
            .arg("--pgdata")
            .arg(cluster.data())
            .output()?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr);
            return Err(io::Error::other(format!("`initdb` failed: {}", said.trim())));
        }
        Ok(cluster)
    }

    /// One of PostgreSQL's programs, run as the owner of the data directory.
    pub fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let mut command = match &self.owner {
            None => command(path),
            Some(Owner { uid, gid }) => {
                let mut command = command("setpriv");
                command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
                command.arg("--clear-groups").arg("--").arg(path);
                command
            }
        };
        // The caller's directory may be closed to the owner.
        command.current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    /// The server in the foreground, with its log in the directory. `setpriv` becomes what it
    /// starts, so the process that this makes is the server itself.
    pub fn server(&self) -> io::Result<Command> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data());
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.dir.display()),
            // Many tests at once, each with a pool.
            "max_connections=300".to_owned(),
            // What is tested is what is shipped: durable commits.
            "fsync=on".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        command.stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    /// Waits until the server takes connections, as `pg_ctl --wait` does: by the eighth line of
    /// its pid file.
    pub fn wait_ready(&self, server: &mut Child) -> io::Result<()> {
        let began = Instant::now();
        let pid = server.id().to_string();
        while began.elapsed() < READY_MAX {
            if let Some(status) = server.try_wait()? {
                return Err(self.explain(&format!("PostgreSQL ended at once ({status})")));
            }
            let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            let mut lines = file.lines().map(str::trim);
            if lines.next() == Some(pid.as_str()) && lines.nth(6) == Some("ready") {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(self.explain("PostgreSQL did not become ready"))
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    fn explain(&self, what: &str) -> io::Error {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        io::Error::other(format!("{what}; its log:\n{}", log.trim_end()))
    }
}

/// The folder of the server's programs: Debian keeps them out of the path, by version.
pub fn programs() -> Option<PathBuf> {
    let whole = |dir: &PathBuf| dir.join("initdb").is_file() && dir.join("postgres").is_file();
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    versions.sort();
    let debian = versions.into_iter().rev().map(|(_, path)| path.join("bin")).find(whole);
    debian.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(whole)
    })
}

pub fn is_root() -> io::Result<bool> {
    // Who owns our entry in /proc is who we are; elsewhere, ask.
    if let Ok(entry) = fs::metadata("/proc/self") {
        return Ok(entry.uid() == 0);
    }
    let id = command("id").arg("-u").output()?;
    Ok(id.stdout.trim_ascii() == b"0")
}

impl Owner {
    /// `postgres`, whom the Debian package makes, or else `nobody`.
    fn find() -> io::Result<Owner> {
        let users = fs::read_to_string("/etc/passwd")?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| Owner::named(name, &users))
            .ok_or_else(|| io::Error::other("there is no user `postgres` or `nobody` to run as"))
    }

    fn named(name: &str, users: &str) -> Option<Owner> {
        users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            match fields.as_slice() {
                [user, _, uid, gid, ..] if *user == name => {
                    Some(Owner { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
                }
                _ => None,
            }
        })
    }
}

/// A port below those that the kernel gives to outgoing connections, so that nobody takes it
/// while a test has the server stopped.
pub fn free_port() -> io::Result<u16> {
    for _ in 0..100 {
        let random = RandomState::new().hash_one(std::process::id());
        let port = 20_000 + u16::try_from(random % 12_000).unwrap_or_default();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("no free port between 20000 and 32000"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "PostgreSQL is a process, and this file is the one that starts it"
)]
fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
