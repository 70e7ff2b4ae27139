//! A file system of its own: a process sees what it is given, and of the rest not even the names.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_remount, move_mount,
    open_tree, unmount,
};

use super::grant::{self, Access, DEVICES, Grant, Kind, NETWORK};
use super::ground::{Ground, Piece};
use super::{Order, hide};

/// Builds it over the working directory, which is to be its root. Must come within a mount
/// namespace of our own.
pub fn build(order: &Order, ground: &Ground, grants: &mut [Grant]) -> io::Result<()> {
    // What is beneath the place that we build in must be open by then.
    for grant in grants.iter_mut() {
        grant.at = copy(&grant.at)?;
    }
    let place = &order.walls.workspace;
    blank(place, FRAME_BYTES, 0o755)?;
    rustix::process::chdir(place)?;
    let root = rustix::fs::open(".", grant::PATH | OFlags::DIRECTORY, Mode::empty())?;
    frame(order, &root)?;
    let mut there: Vec<(PathBuf, Access)> = Vec::new();
    for piece in &ground.pieces {
        lay(&root, ground, piece)?;
        there.push((piece.path().to_owned(), Access::Read));
    }
    // What contains another comes before it.
    grants.sort_by_key(|it| (it.path.components().count(), it.access != Access::Write));
    for grant in grants.iter() {
        let within = |(path, access): &(PathBuf, Access)| {
            grant.path.starts_with(path) && (*access == grant.access || *access == Access::Write)
        };
        if there.iter().any(within) {
            continue;
        }
        let kind = if grant.directory { Kind::Directory } else { Kind::File };
        put(&root, &grant.path, kind, &grant.at)?;
        if grant.access == Access::Read {
            seal(&grant.at)?;
        }
        there.push((grant.path.clone(), grant.access));
    }
    hide::hide(&root, &order.walls, grants)?;
    Ok(())
}

/// A part of the ground, in its place. It is sealed already.
fn lay(root: &OwnedFd, ground: &Ground, piece: &Piece) -> io::Result<()> {
    let below = |it: &Path| it.strip_prefix("/").map_or_else(|_| it.to_owned(), Path::to_owned);
    match piece {
        Piece::Link { path, target } => {
            let path = below(path);
            if let Some(parent) = path.parent() {
                grant::make(root, parent, Kind::Directory)?;
            }
            Ok(rustix::fs::symlinkat(target, root, path)?)
        }
        Piece::Mount { path, kind } => {
            let source = ground.at().join(below(path));
            let source = rustix::fs::open(source, grant::PATH, Mode::empty())?;
            put(root, path, *kind, &copy(&source)?)
        }
    }
}

/// Leaves the old file system behind. The working directory is the new root.
pub fn enter() -> io::Result<()> {
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    mount_remount("/", MountFlags::BIND | SEALED, c"")?;
    Ok(())
}

/// What the walls are to be held with, once inside: handles to what every process has.
pub fn inside(ground: &Ground) -> io::Result<Vec<Grant>> {
    let mounted = ground.pieces.iter().filter_map(|it| match it {
        Piece::Mount { path, .. } if path != Path::new("/dev") => Some((&**path, Access::Read)),
        Piece::Mount { .. } | Piece::Link { .. } => None,
    });
    let own = [("/tmp", Access::Write), ("/proc", Access::Read), ("/run", Access::Read)];
    let own = own.into_iter().map(|(path, access)| (Path::new(path), access));
    let devices = DEVICES.iter().map(|it| (Path::new(*it), Access::Device));
    let found = mounted.chain(own).chain(devices);
    let found = found.map(|(path, access)| grant::outside(path, access));
    Ok(found.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

const FRAME_BYTES: u64 = 4 << 20;
const SEALED: MountFlags = MountFlags::RDONLY.union(MountFlags::NOSUID).union(MountFlags::NODEV);

/// What every process has of its own.
fn frame(order: &Order, root: &OwnedFd) -> io::Result<()> {
    for name in ["proc", "run", "tmp"] {
        grant::make(root, Path::new(name), Kind::Directory)?;
    }
    blank(Path::new("tmp"), order.walls.limits.scratch_bytes, 0o1777)?;
    // Where it starts is there, even if nothing in it is its own.
    for path in [&order.walls.workspace, &order.directory] {
        grant::make(root, path, Kind::Directory)?;
    }
    let user = order.user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    let group = order.user.unwrap_or_else(|| rustix::process::getegid().as_raw());
    let name = order.walls.agent.as_deref().unwrap_or("chancery");
    // A name with a colon in it would be two fields.
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let passwd = format!("{name}:x:{user}:{group}::/tmp:/bin/sh\n");
    std::fs::write("run/passwd", passwd)?;
    std::fs::write("run/group", format!("{name}:x:{group}:\n"))?;
    if !order.walls.network {
        std::fs::write("run/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")?;
        return Ok(());
    }
    for path in NETWORK.iter().map(Path::new) {
        // What is not there is not given.
        if let (Some(name), Ok(text)) = (path.file_name(), std::fs::read(path)) {
            std::fs::write(Path::new("run").join(name), text)?;
        }
    }
    Ok(())
}

/// An empty file system in memory.
pub fn blank(at: &Path, bytes: u64, mode: u32) -> io::Result<()> {
    let options = CString::new(format!("size={bytes},nr_inodes=65536,mode={mode:o}"))?;
    mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())?;
    Ok(())
}

/// A mount of what a handle is open on, not yet in any place.
pub fn copy(of: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(of, "", flags)?)
}

/// Puts a mount in its place beneath a root, which is made if it is missing.
pub fn put(root: &OwnedFd, path: &Path, kind: Kind, what: &OwnedFd) -> io::Result<()> {
    let place = grant::make(root, path, kind)?;
    over(&place, what)
}

/// Puts a mount in its place.
pub fn over(place: &OwnedFd, what: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(what, "", place, "", flags)?)
}

/// Makes a mount, once it is in its place, one that nobody can write to.
pub fn seal(what: &OwnedFd) -> io::Result<()> {
    let at = format!("/proc/self/fd/{}", what.as_raw_fd());
    Ok(mount_remount(at, MountFlags::BIND | SEALED, c"")?)
}
