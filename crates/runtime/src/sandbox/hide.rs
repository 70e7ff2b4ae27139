//! Files of the workspace that are denied to everyone, whatever a scope says. They are known by
//! their names, and looked for before a program starts.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Walls;
use super::grant::{self, Grant, Kind, Origin};
use super::tree::{copy, over, seal};
use crate::tool::files::protected;

/// More than this is not looked through for one command: it is refused, for one that was not
/// looked for might be there.
const ENTRIES_MAX: usize = 500_000;

/// Puts something empty over each that holds secrets. What runs by itself (`.git/hooks`) can be
/// read, for git must, and is sealed.
pub fn hide(root: &OwnedFd, walls: &Walls, grants: &[Grant]) -> io::Result<()> {
    let scopes: Vec<&Path> = grants
        .iter()
        .filter(|it| it.origin == Origin::Workspace)
        .map(|it| it.path.as_path())
        .collect();
    let outermost = |it: &&Path| !scopes.iter().any(|other| *it != *other && it.starts_with(other));
    let mut cover = Cover { root, workspace: &walls.workspace, empty: None, left: ENTRIES_MAX };
    let mut seen: Vec<&Path> = Vec::new();
    for scope in scopes.iter().copied().filter(outermost) {
        if !seen.contains(&scope) {
            seen.push(scope);
            cover.look(scope)?;
        }
    }
    Ok(())
}

struct Cover<'a> {
    root: &'a OwnedFd,
    workspace: &'a Path,
    /// Made with the first that is found.
    empty: Option<[OwnedFd; 2]>,
    left: usize,
}

impl Cover<'_> {
    fn look(&mut self, scope: &Path) -> io::Result<()> {
        let mut todo: Vec<PathBuf> = Vec::new();
        let top = grant::find(self.root, below(scope))?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&top)?.st_mode);
        self.meet(scope.to_owned(), kind, &mut todo)?;
        while let Some(path) = todo.pop() {
            // It may be gone by now.
            let Ok(at) = grant::find(self.root, below(&path)) else { continue };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = match rustix::fs::openat(&at, ".", flags, Mode::empty()) {
                Ok(opened) => opened,
                // What we may not look into, the program may not either: we are still more than it.
                Err(Errno::ACCESS) => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in Dir::read_from(opened)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                self.left = self.left.checked_sub(1).ok_or_else(|| {
                    io::Error::other(format!("the workspace has more than {ENTRIES_MAX} files"))
                })?;
                let path = path.join(OsStr::from_bytes(name));
                self.meet(path, entry.file_type(), &mut todo)?;
            }
        }
        Ok(())
    }

    fn meet(&mut self, path: PathBuf, kind: FileType, todo: &mut Vec<PathBuf>) -> io::Result<()> {
        let relative = path.strip_prefix(self.workspace).unwrap_or(&path);
        match protected(relative) {
            None if kind == FileType::Directory => todo.push(path),
            None => {}
            Some(entry) if kind != FileType::Symlink => {
                let place = match grant::find(self.root, below(&path)) {
                    Ok(place) => place,
                    // It went away while we looked.
                    Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
                if entry.starts_with(".git/") {
                    let itself = copy(&place)?;
                    over(&place, &itself)?;
                    seal(&itself)?;
                } else {
                    let cover = copy(self.empty(kind == FileType::Directory)?)?;
                    over(&place, &cover)?;
                }
            }
            // A link holds nothing itself, and what it leads to has a name of its own.
            Some(_) => {}
        }
        Ok(())
    }

    /// A file and a directory that nobody can open.
    fn empty(&mut self, directory: bool) -> io::Result<&OwnedFd> {
        let empty = match self.empty.take() {
            Some(empty) => empty,
            None => {
                let file = grant::make(self.root, Path::new("run/.denied"), Kind::File)?;
                let folder = grant::make(self.root, Path::new("run/.closed"), Kind::Directory)?;
                for name in ["run/.denied", "run/.closed"] {
                    rustix::fs::chmodat(CWD, name, Mode::empty(), AtFlags::empty())?;
                }
                [file, folder]
            }
        };
        let [file, folder] = self.empty.insert(empty);
        Ok(if directory { folder } else { file })
    }
}

fn below(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
