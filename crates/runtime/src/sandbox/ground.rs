//! What every process behind walls stands on: the system's programs and files, its devices, a
//! network with nobody in it. Made once by the resident launcher, in a mount namespace that
//! nobody else is in; each process is given a copy.

use std::fs::Metadata;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::grant::{self, DEVICES, Kind, NAMES, NETWORK, SYSTEM};
use super::namespaces::{self, Namespaces};
use super::tree;

#[derive(Debug)]
pub struct Ground {
    pub namespaces: Namespaces,
    /// Absent where each process must have one of its own.
    nowhere: Option<OwnedFd>,
    /// Where our own number is from.
    numbers: Option<OwnedFd>,
    pub pieces: Vec<Piece>,
    seen: Vec<Option<Seen>>,
    /// When it was looked at last.
    looked: Instant,
}

/// A part of it, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Link { path: PathBuf, target: PathBuf },
    Mount { path: PathBuf, kind: Kind },
}

impl Piece {
    pub fn path(&self) -> &Path {
        match self {
            Piece::Link { path, .. } | Piece::Mount { path, .. } => path,
        }
    }
}

/// A file's state. What was copied is copied anew when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen(u64, u64, i64, i64);

/// A place to build on. Any directory serves that nobody works in.
const PLACES: &[&str] = &["/sys/kernel", "/sys", "/mnt"];
const GROUND_BYTES: u64 = 16 << 20;
/// How old what a program sees of the system's settings may be.
const LOOK: Duration = Duration::from_secs(1);
/// Larger ones are mounted.
const COPIED_MAX: u64 = 256 << 10;

impl Ground {
    /// Must come while this process has one thread.
    pub fn prepare(namespaces: Namespaces) -> Result<Ground, String> {
        let mut ground = Ground {
            namespaces,
            nowhere: None,
            numbers: None,
            pieces: vec![],
            seen: vec![],
            looked: Instant::now(),
        };
        if namespaces == Namespaces::None {
            return Ok(ground);
        }
        namespaces::prepare(namespaces).map_err(|it| format!("namespaces: {it}"))?;
        if namespaces == Namespaces::Own {
            ground.nowhere = Some(nowhere().map_err(|it| format!("network: {it}"))?);
            ground.numbers = Some(of("pid").map_err(|it| format!("processes: {it}"))?);
        }
        ground.build().map_err(|it| format!("mounts: {it}"))?;
        Ok(ground)
    }

    /// Where its parts are.
    pub fn at(&self) -> &'static Path {
        place()
    }

    /// Leaves the network for one with nobody in it. Whether there is one to go to.
    pub fn leave_network(&self) -> io::Result<bool> {
        let Some(nowhere) = &self.nowhere else { return Ok(false) };
        enter(nowhere, LinkNameSpaceType::Network)?;
        Ok(true)
    }

    /// The next process is the first of a world of its own.
    pub fn number_anew(&self) -> io::Result<()> {
        match self.numbers {
            Some(_) => Ok(unshare(CloneFlags::CLONE_NEWPID)?),
            None => Ok(()),
        }
    }

    pub fn number_as_before(&self) -> io::Result<()> {
        self.numbers.as_ref().map_or(Ok(()), |it| enter(it, LinkNameSpaceType::ProcessID))
    }

    /// Built anew if the system has changed. If that fails, the old one stands as it was.
    pub fn refresh(&mut self) {
        if self.namespaces == Namespaces::None || self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        if seen() != self.seen {
            let _ = unmount(place(), UnmountFlags::DETACH);
            let _ = self.build();
        }
    }

    fn build(&mut self) -> io::Result<()> {
        self.seen = seen();
        let at = place();
        tree::blank(at, GROUND_BYTES, 0o755)?;
        let root = rustix::fs::open(at, grant::PATH | OFlags::DIRECTORY, Mode::empty())?;
        self.pieces = vec![
            Piece::Mount { path: "/etc".into(), kind: Kind::Directory },
            Piece::Mount { path: "/dev".into(), kind: Kind::Directory },
        ];
        for name in ["etc", "dev"] {
            grant::make(&root, Path::new(name), Kind::Directory)?;
        }
        for path in SYSTEM.iter().map(Path::new) {
            if let Some(piece) = lay(&root, at, path)? {
                self.pieces.push(piece);
            }
        }
        // Who one is differs, and whether there are names to look up.
        for path in NAMES.iter().chain(NETWORK) {
            let Some(name) = Path::new(path).file_name() else { continue };
            let target = Path::new("/run").join(name);
            match rustix::fs::symlinkat(&target, &root, below(Path::new(path))) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for path in DEVICES.iter().map(Path::new) {
            mount(&root, path)?;
        }
        for (name, target) in [
            ("dev/fd", "/proc/self/fd"),
            ("dev/stdin", "/proc/self/fd/0"),
            ("dev/stdout", "/proc/self/fd/1"),
            ("dev/stderr", "/proc/self/fd/2"),
            ("dev/shm", "/tmp"),
        ] {
            rustix::fs::symlinkat(target, &root, name)?;
        }
        let itself = rustix::fs::open(at, grant::PATH | OFlags::DIRECTORY, Mode::empty())?;
        tree::seal(&itself)
    }
}

/// Lays one path of the system. Answers with a piece if it is none of `/etc`.
fn lay(root: &OwnedFd, at: &Path, path: &Path) -> io::Result<Option<Piece>> {
    let Ok(link) = std::fs::symlink_metadata(path) else { return Ok(None) };
    let in_etc = path.starts_with("/etc");
    // `/bin` of most systems: where it leads is given anyway.
    if link.is_symlink() && !in_etc && path.canonicalize().is_ok_and(|it| it.starts_with("/usr")) {
        let target = std::fs::read_link(path)?;
        return Ok(Some(Piece::Link { path: path.to_owned(), target }));
    }
    let Ok(found) = std::fs::metadata(path) else { return Ok(None) };
    if in_etc && found.is_file() && found.len() <= COPIED_MAX {
        let Ok(text) = std::fs::read(path) else { return Ok(None) };
        let copy = at.join(below(path));
        grant::make(root, below(path.parent().unwrap_or(path)), Kind::Directory)?;
        std::fs::write(copy, text)?;
        return Ok(None);
    }
    let kind = if found.is_dir() { Kind::Directory } else { Kind::File };
    let mounted = mount(root, path)?;
    let piece = Piece::Mount { path: path.to_owned(), kind };
    Ok((mounted && !in_etc).then_some(piece))
}

/// Mounts what is at a path, sealed, at the same path of the ground.
fn mount(root: &OwnedFd, path: &Path) -> io::Result<bool> {
    let Some(found) = grant::outside(path, grant::Access::Read)? else { return Ok(false) };
    let copy = tree::copy(&found.at)?;
    let kind = if found.directory { Kind::Directory } else { Kind::File };
    tree::put(root, path, kind, &copy)?;
    if !path.starts_with("/dev") {
        tree::seal(&copy)?;
    }
    Ok(true)
}

fn place() -> &'static Path {
    let mut places = PLACES.iter().map(Path::new);
    places.find(|it| it.is_dir()).unwrap_or(Path::new("/mnt"))
}

fn below(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn seen() -> Vec<Option<Seen>> {
    let state = |it: Metadata| Seen(it.ino(), it.size(), it.mtime(), it.mtime_nsec());
    let etc = SYSTEM.iter().filter(|it| it.starts_with("/etc"));
    etc.map(|it| std::fs::metadata(it).ok().map(state)).collect()
}

/// A network namespace that is not ours.
fn nowhere() -> io::Result<OwnedFd> {
    let ours = of("net")?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    let nowhere = of("net")?;
    enter(&ours, LinkNameSpaceType::Network)?;
    Ok(nowhere)
}

/// One of our own.
fn of(kind: &str) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/ns/{kind}");
    Ok(rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

fn enter(namespace: &OwnedFd, kind: LinkNameSpaceType) -> io::Result<()> {
    use std::os::fd::AsFd as _;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(kind))?)
}
