//! What a process is given of the file system, as open handles: between looking a path up and
//! using it nobody can put something else in its place.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Walls;

#[derive(Debug)]
pub struct Grant {
    pub at: OwnedFd,
    /// Where it is.
    pub path: PathBuf,
    pub access: Access,
    pub directory: bool,
    pub origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// And run.
    Read,
    Write,
    Device,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    System,
    Workspace,
}

/// What programs need to run at all. Of `/etc` what is named: the rest may hold secrets.
pub const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/sys/devices/system/cpu",
];

/// Who is who. Behind a wall of its own a process has others.
pub const NAMES: &[&str] = &["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"];

pub const NETWORK: &[&str] =
    &["/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf"];

pub const DEVICES: &[&str] =
    &["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// Opens what these walls in particular let a process reach. What is not there is not given.
pub fn open(walls: &Walls, program: Option<&Path>) -> io::Result<Vec<Grant>> {
    let mut grants = Vec::new();
    for path in walls.programs.iter().map(PathBuf::as_path).chain(program) {
        grants.extend(outside(path, Access::Read)?);
    }
    let root = rustix::fs::open(&walls.workspace, PATH | OFlags::DIRECTORY, Mode::empty())?;
    for (paths, access) in [(&walls.read, Access::Read), (&walls.write, Access::Write)] {
        for path in paths {
            grants.extend(beneath(&root, &walls.workspace, path, access)?);
        }
    }
    Ok(grants)
}

/// Opens what every process is given of the system, where it has no world of its own.
pub fn common(walls: &Walls) -> io::Result<Vec<Grant>> {
    let network = if walls.network { NETWORK } else { &[] };
    let read = [SYSTEM, NAMES, network, &["/proc"]].concat();
    let read = read.into_iter().map(|it| (it, Access::Read));
    let devices = DEVICES.iter().map(|it| (*it, Access::Device));
    let found = read.chain(devices).map(|(path, access)| outside(Path::new(path), access));
    Ok(found.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

pub const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A path that the operator or the system named; links in it are theirs.
pub fn outside(path: &Path, access: Access) -> io::Result<Option<Grant>> {
    match rustix::fs::openat(CWD, path, PATH, Mode::empty()) {
        Ok(at) => Grant::new(at, path.to_owned(), access, Origin::System).map(Some),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A path beneath the workspace, where agents write: a link in it leads nowhere.
fn beneath(
    root: &OwnedFd,
    workspace: &Path,
    path: &Path,
    access: Access,
) -> io::Result<Option<Grant>> {
    let given = path.as_os_str().as_bytes();
    let wanted = access == Access::Write && given.ends_with(b"/");
    let opened = if wanted { make(root, path, Kind::Directory) } else { find(root, path) };
    match opened {
        Ok(at) => {
            let path: PathBuf = workspace.join(path).components().collect();
            Grant::new(at, path, access, Origin::Workspace).map(Some)
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// What a path is beneath a directory, without following links.
pub fn find(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    // The kernel gives up when something is renamed while it walks.
    let mut outcome = Err(Errno::AGAIN);
    for _ in 0..16 {
        outcome = rustix::fs::openat2(&root, path, PATH, Mode::empty(), BENEATH);
        if !matches!(outcome, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    outcome
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
}

/// The same, and makes what is missing of it.
pub fn make(root: impl AsFd, path: &Path, kind: Kind) -> rustix::io::Result<OwnedFd> {
    let mut at = find(&root, Path::new("."))?;
    let parts: Vec<&OsStr> = path
        .components()
        .filter_map(|it| match it {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    for (place, name) in parts.iter().enumerate() {
        let last = place + 1 == parts.len();
        at = match find(&at, Path::new(name)) {
            Err(Errno::NOENT) if last && kind == Kind::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                rustix::fs::openat(&at, *name, flags, Mode::from_raw_mode(0o444))?;
                find(&at, Path::new(name))?
            }
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&at, *name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
                find(&at, Path::new(name))?
            }
            outcome => outcome?,
        };
    }
    Ok(at)
}

impl Grant {
    pub fn new(at: OwnedFd, path: PathBuf, access: Access, origin: Origin) -> io::Result<Grant> {
        let stat = rustix::fs::fstat(&at)?;
        let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        Ok(Grant { at, path, access, directory, origin })
    }
}
