//! A Linux user for each agent, where we have the privilege to become one: what is an agent's own
//! is closed to the others by the oldest wall there is.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Dir, FileType, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySets, set_capabilities};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Walls;
use super::grant::{self, Access, Grant, Origin};

/// The numbers that are the agents'. Nobody else on the machine may have one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    pub first: u32,
    pub count: u32,
}

impl Default for Users {
    /// Above what the system, its containers and its people are given. So many that two agents
    /// of a thousand share one in less than one case of a hundred.
    fn default() -> Users {
        Users { first: 1_900_000_000, count: 100_000_000 }
    }
}

impl Users {
    /// An agent's own, the same on every server and for ever. The first is for what is no
    /// agent's.
    pub fn of(&self, agent: Option<&str>) -> u32 {
        let Some(agent) = agent else { return self.first };
        let digest = Sha256::digest(agent.as_bytes());
        let number = digest.iter().take(8).fold(0_u64, |so_far, it| so_far << 8 | u64::from(*it));
        let others = u64::from(self.count.saturating_sub(1).max(1));
        self.first.saturating_add(u32::try_from(number % others + 1).unwrap_or(1))
    }
}

/// Leaves every privilege behind; with a user, becomes it.
pub fn become_user(user: Option<u32>) -> io::Result<()> {
    if let Some(user) = user {
        let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
    }
    let none = rustix::thread::CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// The directory of an agent's own files, of those that it may write.
fn is_own(walls: &Walls, grant: &Grant) -> bool {
    let Some(agent) = &walls.agent else { return false };
    grant.path == walls.workspace.join("agents").join(agent)
}

/// Lets an agent's user in to what its walls give it of the workspace. Walks a directory the
/// first time only: what is made in it later inherits.
pub fn admit(walls: &Walls, grants: &[Grant], user: u32) -> io::Result<()> {
    for grant in grants.iter().filter(|it| it.origin == Origin::Workspace) {
        let name = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
        let at = name(&grant.at);
        if is_own(walls, grant) && grant.access == Access::Write && grant.directory {
            let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
            let stat = rustix::fs::fstat(&grant.at)?;
            if stat.st_uid != user || stat.st_mode & 0o7777 != 0o700 {
                walk(walls, &grant.at, &grant.path, &mut |_, fd, _| {
                    Ok(rustix::fs::chown(name(fd), Some(uid), Some(gid))?)
                })?;
                rustix::fs::chown(&at, Some(uid), Some(gid))?;
                rustix::fs::chmod(&at, Mode::from_raw_mode(0o700))?;
            }
            continue;
        }
        let perm = if grant.access == Access::Write { READ | WRITE } else { READ };
        let list = if grant.directory { DEFAULT } else { ACCESS };
        if List::of(&at, list)?.is_some_and(|it| it.admits(user, perm)) {
            continue;
        }
        if grant.directory {
            let mut open = |_: &Path, fd: &OwnedFd, kind| admit_one(&name(fd), kind, user, perm);
            walk(walls, &grant.at, &grant.path, &mut open)?;
        }
        let kind = if grant.directory { FileType::Directory } else { FileType::RegularFile };
        admit_one(&at, kind, user, perm)?;
    }
    Ok(())
}

fn admit_one(at: &str, kind: FileType, user: u32, perm: u16) -> io::Result<()> {
    let mode = rustix::fs::stat(at)?.st_mode;
    let list = List::of(at, ACCESS)?.unwrap_or_else(|| List::plain(mode));
    let run = if kind == FileType::Directory || mode & 0o111 != 0 { RUN } else { 0 };
    list.with(user, perm | run).set(at, ACCESS)?;
    if kind == FileType::Directory {
        let list = List::of(at, DEFAULT)?.unwrap_or_else(|| List::plain(mode));
        // Last, for it says that the directory is done. A command that is killed on the way is
        // followed by one that begins anew.
        list.with(user, perm | RUN).set(at, DEFAULT)?;
    }
    Ok(())
}

/// More than this is not walked through for one command.
const ENTRIES_MAX: usize = 1_000_000;

/// Every file and directory beneath, children first, without following links. The own directories
/// of other agents are left out: they are theirs, whatever a scope says.
fn walk(
    walls: &Walls,
    top: &OwnedFd,
    path: &Path,
    each: &mut dyn FnMut(&Path, &OwnedFd, FileType) -> io::Result<()>,
) -> io::Result<()> {
    let agents = walls.workspace.join("agents");
    let own = walls.agent.as_ref().map(|it| agents.join(it));
    let others = |it: &Path| it.parent() == Some(&*agents) && Some(it) != own.as_deref();
    let mut left = ENTRIES_MAX;
    descend(&others, top, path, each, &mut left)
}

fn descend(
    others: &dyn Fn(&Path) -> bool,
    at: &OwnedFd,
    path: &Path,
    each: &mut dyn FnMut(&Path, &OwnedFd, FileType) -> io::Result<()>,
    left: &mut usize,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(at, ".", flags, Mode::empty())?;
    for entry in Dir::read_from(opened)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        *left = left.checked_sub(1).ok_or_else(|| io::Error::other("too many files"))?;
        let name = Path::new(OsStr::from_bytes(name));
        let below = path.join(name);
        if others(&below) {
            continue;
        }
        let Ok(fd) = grant::find(at, name) else { continue };
        let stat = rustix::fs::fstat(&fd)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        // A file with a second name may be somebody else's.
        if kind == FileType::RegularFile && stat.st_nlink > 1 {
            continue;
        }
        if kind == FileType::Directory {
            descend(others, &fd, &below, each, left)?;
        }
        if matches!(kind, FileType::Directory | FileType::RegularFile) {
            each(path, &fd, kind)?;
        }
    }
    Ok(())
}

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";
const READ: u16 = 4;
const WRITE: u16 = 2;
const RUN: u16 = 1;

/// An access list as the kernel keeps it: a tag, rights and an id each.
#[derive(Debug, Clone, PartialEq, Eq)]
struct List(Vec<(u16, u16, u32)>);

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const NAMED_GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const NOBODY: u32 = u32::MAX;
const VERSION: u32 = 2;

impl List {
    fn plain(mode: u32) -> List {
        let bits = |shift: u32| u16::try_from(mode >> shift & 7).unwrap_or_default();
        List(vec![(OWNER, bits(6), NOBODY), (GROUP, bits(3), NOBODY), (OTHER, bits(0), NOBODY)])
    }

    fn of(at: &str, name: &str) -> io::Result<Option<List>> {
        let mut bytes = vec![0; 4096];
        let read = match rustix::fs::getxattr(at, name, bytes.as_mut_slice()) {
            Ok(read) => read,
            Err(Errno::NODATA) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let entries = bytes.get(4..read).unwrap_or_default().chunks_exact(8).map(|it| {
            let short = |at: usize| u16::from_le_bytes([it[at], it[at + 1]]);
            (short(0), short(2), u32::from_le_bytes([it[4], it[5], it[6], it[7]]))
        });
        Ok(Some(List(entries.collect())))
    }

    fn admits(&self, user: u32, perm: u16) -> bool {
        self.0.iter().any(|it| it.0 == USER && it.2 == user && it.1 & perm == perm)
    }

    /// With rights for one more user, and a mask that lets them through.
    fn with(mut self, user: u32, perm: u16) -> List {
        let had = self.0.iter().find(|it| it.0 == USER && it.2 == user).map_or(0, |it| it.1);
        self.0.retain(|it| it.0 != MASK && !(it.0 == USER && it.2 == user));
        self.0.push((USER, had | perm, user));
        let masked = [USER, GROUP, NAMED_GROUP];
        let mask = self.0.iter().filter(|it| masked.contains(&it.0)).fold(0, |all, it| all | it.1);
        self.0.push((MASK, mask, NOBODY));
        self.0.sort_by_key(|it| (it.0, it.2));
        self
    }

    fn set(&self, at: &str, name: &str) -> io::Result<()> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for (tag, perm, id) in &self.0 {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(perm.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        Ok(rustix::fs::setxattr(at, name, &bytes, XattrFlags::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_one_user_and_it_is_within_the_range() {
        let users = Users::default();
        assert_eq!(users.of(None), 1_900_000_000);
        assert_eq!(users.of(Some("pa")), users.of(Some("pa")));
        assert_ne!(users.of(Some("pa")), users.of(Some("qa_worker")));
        let few = Users { first: 5000, count: 3 };
        for agent in ["a", "b", "c", "d", "e", ""] {
            assert!((5001..5003).contains(&few.of(Some(agent))), "{agent}");
        }
    }

    #[test]
    fn a_list_keeps_what_it_had_and_lets_one_more_in() {
        let list = List::plain(0o640).with(7, READ | WRITE).with(5, READ);
        let expected = [
            (OWNER, 6, NOBODY),
            (USER, 4, 5),
            (USER, 6, 7),
            (GROUP, 4, NOBODY),
            (MASK, 6, NOBODY),
            (OTHER, 0, NOBODY),
        ];
        assert_eq!(list.0, expected);
        assert!(list.admits(7, READ) && list.admits(7, WRITE) && !list.admits(5, WRITE));
    }
}
