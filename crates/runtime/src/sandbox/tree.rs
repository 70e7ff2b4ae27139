//! A file system of its own: a process sees what it is given, and of the rest not even the names.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, mount_remount, move_mount, open_tree, unmount,
};

use super::grant::{self, Access, Grant, Kind};
use super::{Order, hide};

/// Builds it over the working directory, which is to be its root. Must come within a mount
/// namespace of our own.
pub fn build(order: &Order, grants: &mut [Grant]) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Opened again from here: a handle from before is in the namespace that we left.
    for grant in grants.iter_mut() {
        grant.at = copy(&grant.at)?;
    }
    // Any directory serves as the place to build in: all that is needed of the old tree is open.
    let place = &order.walls.workspace;
    blank(place, FRAME_BYTES, 0o755)?;
    rustix::process::chdir(place)?;
    let root = rustix::fs::open(".", grant::PATH | OFlags::DIRECTORY, Mode::empty())?;
    frame(order, &root)?;
    // What contains another comes before it.
    grants.sort_by_key(|it| (it.path.components().count(), it.access != Access::Write));
    let mut there: Vec<(PathBuf, Access)> = Vec::new();
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

/// Leaves the old file system behind. The working directory is the new root.
pub fn enter() -> io::Result<()> {
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    mount_remount("/", MountFlags::BIND | SEALED, c"")?;
    Ok(())
}

/// What the walls are to be held with, once inside: a handle to the new `/tmp` and `/proc`.
pub fn inside() -> io::Result<Vec<Grant>> {
    let given = [("/tmp", Access::Write), ("/proc", Access::Read), ("/etc", Access::Read)];
    let found = given.map(|(path, access)| grant::outside(Path::new(path), access));
    Ok(found.into_iter().collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

const FRAME_BYTES: u64 = 4 << 20;
const SEALED: MountFlags = MountFlags::RDONLY.union(MountFlags::NOSUID).union(MountFlags::NODEV);

/// What every process has of its own.
fn frame(order: &Order, root: &OwnedFd) -> io::Result<()> {
    for name in ["proc", "dev", "etc"] {
        grant::make(root, Path::new(name), Kind::Directory)?;
    }
    grant::make(root, Path::new("tmp"), Kind::Directory)?;
    blank(Path::new("tmp"), order.walls.limits.scratch_bytes, 0o1777)?;
    // Where it starts is there, even if nothing in it is its own.
    for path in [&order.walls.workspace, &order.directory] {
        grant::make(root, path, Kind::Directory)?;
    }
    for (name, target) in [
        ("dev/fd", "/proc/self/fd"),
        ("dev/stdin", "/proc/self/fd/0"),
        ("dev/stdout", "/proc/self/fd/1"),
        ("dev/stderr", "/proc/self/fd/2"),
        ("dev/shm", "/tmp"),
    ] {
        rustix::fs::symlinkat(target, CWD, name)?;
    }
    let user = order.user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    let group = order.user.unwrap_or_else(|| rustix::process::getegid().as_raw());
    let name = order.walls.agent.as_deref().unwrap_or("chancery");
    // A name with a colon in it would be two fields.
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let passwd = format!("{name}:x:{user}:{group}::/tmp:/bin/sh\n");
    std::fs::write("etc/passwd", passwd)?;
    std::fs::write("etc/group", format!("{name}:x:{group}:\n"))?;
    if !order.walls.network {
        std::fs::write("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")?;
    }
    Ok(())
}

/// An empty file system in memory.
fn blank(at: &Path, bytes: u64, mode: u32) -> io::Result<()> {
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

fn put(root: &OwnedFd, path: &Path, kind: Kind, what: &OwnedFd) -> io::Result<()> {
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
