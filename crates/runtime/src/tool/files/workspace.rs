//! A directory that paths cannot leave: the kernel resolves them from its handle
//! (`RESOLVE_BENEATH`), so `..`, absolute paths, symbolic links and races do not escape.
//!
//! Blocking: call it where blocking is allowed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;

use super::protected::protected;

#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("`{path}` is not a path: {why}")]
    Path { path: String, why: &'static str },
    #[error("`{0}` leads out of the workspace")]
    Outside(String),
    #[error("`{path}` is denied to everyone: it matches `{entry}`, which may hold credentials")]
    Protected { path: String, entry: &'static str },
    #[error("there is no `{0}`")]
    Missing(String),
    #[error("`{0}` is a directory")]
    Directory(String),
    #[error("`{0}` is neither a file nor a directory, and is left alone")]
    Special(String),
    #[error("`{0}` is a symbolic link: write to what it points to")]
    Link(String),
    #[error("`{0}` has another name, perhaps outside the workspace (it is a hard link)")]
    HardLink(String),
    #[error("`{path}` has {size} bytes, more than the {limit} that are taken at once")]
    TooLarge { path: String, size: u64, limit: usize },
    #[error("`{path}` is not UTF-8 text: the byte at {at} is not")]
    NotText { path: String, at: usize },
    #[error("`{0}` is part of a repository's own files, which git alone writes")]
    Repository(String),
    #[error("{0}")]
    Scope(String),
    #[error("`{path}` has more than the {most} files that are taken at once")]
    TooMany { path: String, most: usize },
    #[error("there is a `{0}` already")]
    Exists(String),
    #[error("`{path}`: {source}")]
    Io { path: String, source: io::Error },
}

/// What is said against touching what a path really leads to, from the workspace on.
pub(super) type Within<'w> = &'w dyn Fn(&str) -> Result<(), FileError>;

/// Everywhere in the workspace.
pub(super) fn anywhere(_: &str) -> Result<(), FileError> {
    Ok(())
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// `openat2` gives up with EAGAIN when something is renamed while it walks; more often than
/// this is someone who tries to win a race.
const RACES_MAX: usize = 16;

impl Workspace {
    pub fn open(path: &Path) -> io::Result<Workspace> {
        let path = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        // Said at the start, and not with the first call: without it there are no file tools.
        rustix::fs::openat2(&root, ".", flags, Mode::empty(), BENEATH).map_err(|error| {
            io::Error::other(format!("the kernel does not resolve paths beneath it: {error}"))
        })?;
        Ok(Workspace { root, path })
    }

    /// Where it is. For showing and for child processes; files are opened through the handle.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self, path: &str, limit: usize) -> Result<String, FileError> {
        self.read_within(path, limit, &anywhere)
    }

    pub(super) fn read_within(
        &self,
        path: &str,
        limit: usize,
        within: Within<'_>,
    ) -> Result<String, FileError> {
        let (mut file, size) = self.open_file(path, within)?;
        let too_large = |size| FileError::TooLarge { path: path.to_owned(), size, limit };
        if size > limit as u64 {
            return Err(too_large(size));
        }
        let mut bytes = Vec::new();
        (&mut file)
            .take(limit as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| FileError::Io { path: path.to_owned(), source })?;
        // It grew while it was read.
        if bytes.len() > limit {
            return Err(too_large(bytes.len() as u64));
        }
        String::from_utf8(bytes).map_err(|error| FileError::NotText {
            path: path.to_owned(),
            at: error.utf8_error().valid_up_to(),
        })
    }

    /// A regular file that has no other name, and how large it is.
    pub(super) fn open_file(
        &self,
        path: &str,
        within: Within<'_>,
    ) -> Result<(File, u64), FileError> {
        check(path)?;
        // Without NONBLOCK, opening a FIFO would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.beneath(path, Path::new(path), flags)?;
        let stat = rustix::fs::fstat(&file).map_err(|it| failed(path, it))?;
        regular(path, &stat)?;
        // A hard link would give a protected file, or one outside, a name that looks harmless.
        if stat.st_nlink > 1 {
            return Err(FileError::HardLink(path.to_owned()));
        }
        self.check_real_name(path, &file, within)?;
        Ok((File::from(file), u64::try_from(stat.st_size).unwrap_or_default()))
    }

    /// Replaces the file as a whole: a reader sees the old content or the new, and after a crash
    /// it is one of the two.
    ///
    /// A hard link is no danger here: the new content goes into a new file that takes over the
    /// name, and the old file, whatever other names it has, is not touched.
    pub fn write(&self, path: &str, content: &[u8], limit: usize) -> Result<(), FileError> {
        self.write_within(path, content, limit, Over::Any, &anywhere)
    }

    pub(super) fn write_within(
        &self,
        path: &str,
        content: &[u8],
        limit: usize,
        over: Over,
        within: Within<'_>,
    ) -> Result<(), FileError> {
        check(path)?;
        check_repository(path, Path::new(path))?;
        if content.len() > limit {
            let size = content.len() as u64;
            return Err(FileError::TooLarge { path: path.to_owned(), size, limit });
        }
        let not_a_name = || FileError::Path {
            path: path.to_owned(),
            why: "it does not end in the name of a file",
        };
        if path.ends_with('/') || path.ends_with("/.") {
            return Err(not_a_name());
        }
        let name = Path::new(path).file_name().ok_or_else(not_a_name)?;
        let parent = self.make_parent(path, within)?;
        // The parent may have been reached through a link: check where it really is.
        let at = self.real_name(path, &parent)?.join(name);
        allowed(path, &at)?;
        check_repository(path, &at)?;
        within(&at.to_string_lossy())?;
        let there = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            Err(error) => return Err(failed(path, error)),
            Ok(stat) => {
                if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                    return Err(FileError::Link(path.to_owned()));
                }
                regular(path, &stat)?;
                if over == Over::Nothing {
                    return Err(FileError::Exists(path.to_owned()));
                }
                Some(stat)
            }
        };
        replace(&parent, name, content, there.as_ref(), over).map_err(|source| {
            match source.kind() {
                io::ErrorKind::AlreadyExists => FileError::Exists(path.to_owned()),
                _ => FileError::Io { path: path.to_owned(), source },
            }
        })
    }

    pub(super) fn beneath(
        &self,
        shown: &str,
        path: &Path,
        flags: OFlags,
    ) -> Result<OwnedFd, FileError> {
        let mut outcome = Err(Errno::AGAIN);
        for _ in 0..RACES_MAX {
            outcome = rustix::fs::openat2(
                &self.root,
                path,
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                BENEATH,
            );
            if !matches!(outcome, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        outcome.map_err(|error| failed(shown, error))
    }

    /// Opens the directory that a path's last part is in, and makes what is missing of it.
    fn make_parent(&self, path: &str, within: Within<'_>) -> Result<OwnedFd, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut so_far = PathBuf::from(".");
        let mut at = self.beneath(path, &so_far, flags)?;
        for part in Path::new(path).parent().unwrap_or(Path::new("")).components() {
            so_far.push(part);
            at = match self.beneath(path, &so_far, flags) {
                Err(FileError::Missing(_)) if matches!(part, Component::Normal(_)) => {
                    let made = self.real_name(path, &at)?.join(part);
                    check_repository(path, &made)?;
                    // On the way that was named; what lies at its end is ruled on there.
                    if made != so_far.strip_prefix(".").unwrap_or(&so_far) {
                        within(&made.to_string_lossy())?;
                    }
                    // One name in a directory that was itself reached from beneath the root:
                    // this cannot land elsewhere, and does not follow a link.
                    match rustix::fs::mkdirat(&at, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(failed(path, error)),
                    }
                    self.beneath(path, &so_far, flags)?
                }
                outcome => outcome?,
            };
        }
        Ok(at)
    }

    /// Refuses what a link gave a harmless name to.
    pub(super) fn check_real_name(
        &self,
        path: &str,
        file: &OwnedFd,
        within: Within<'_>,
    ) -> Result<(), FileError> {
        let real = self.real_name(path, file)?;
        allowed(path, &real)?;
        within(&real.to_string_lossy())
    }

    /// What an open file is called, from the workspace on. Where the kernel does not say what a
    /// handle's name is (no `/proc`), nothing is opened.
    pub(super) fn real_name(&self, path: &str, file: &OwnedFd) -> Result<PathBuf, FileError> {
        let name = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}"));
        let io = |source| FileError::Io { path: path.to_owned(), source };
        let root = name(self.root.as_raw_fd()).map_err(io)?;
        let real = name(file.as_raw_fd()).map_err(io)?;
        let Ok(below) = real.strip_prefix(&root) else {
            return Err(FileError::Outside(path.to_owned()));
        };
        let below = below.to_string_lossy();
        Ok(PathBuf::from(below.strip_suffix(" (deleted)").unwrap_or(&below)))
    }
}

/// What may be there already where a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Any,
    Nothing,
}

/// What git keeps for itself is git's to write: it names programs that git runs.
fn check_repository(shown: &str, path: &Path) -> Result<(), FileError> {
    let git = |it: Component<'_>| it.as_os_str().to_string_lossy().to_lowercase() == ".git";
    if path.components().any(git) {
        return Err(FileError::Repository(shown.to_owned()));
    }
    Ok(())
}

pub(super) fn check(path: &str) -> Result<(), FileError> {
    let wrong = |why| Err(FileError::Path { path: path.chars().take(256).collect(), why });
    if path.is_empty() {
        return wrong("it is empty");
    }
    if path.contains('\0') {
        return wrong("it has a NUL byte in it");
    }
    if path.len() >= 4096 {
        return wrong("it is too long");
    }
    allowed(path, Path::new(path))
}

fn allowed(shown: &str, path: &Path) -> Result<(), FileError> {
    match protected(path) {
        None => Ok(()),
        Some(entry) => Err(FileError::Protected { path: shown.to_owned(), entry }),
    }
}

fn regular(path: &str, stat: &Stat) -> Result<(), FileError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::Directory(path.to_owned())),
        _ => Err(FileError::Special(path.to_owned())),
    }
}

fn failed(path: &str, error: Errno) -> FileError {
    let path = path.to_owned();
    match error {
        Errno::XDEV => FileError::Outside(path),
        Errno::NOENT => FileError::Missing(path),
        Errno::ISDIR => FileError::Directory(path),
        // A socket, or a FIFO that nobody reads.
        Errno::NXIO => FileError::Special(path),
        other => FileError::Io { path, source: other.into() },
    }
}

/// Tells the temporary files of this process apart.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

fn replace(
    parent: &OwnedFd,
    name: &std::ffi::OsStr,
    content: &[u8],
    there: Option<&Stat>,
    over: Over,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A name that is taken was left by a process that had our id and crashed.
    let (temporary, file) = loop {
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".chancery-{}-{number}.tmp", std::process::id());
        match rustix::fs::openat(parent, &temporary, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => break (temporary, file),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut file = File::from(file);
    let written = file
        .write_all(content)
        .and_then(|()| give(&file, parent, there))
        .and_then(|()| match there {
            None => Ok(()),
            // What could be run before still can.
            Some(stat) => Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o777))?),
        })
        .and_then(|()| file.sync_all())
        .and_then(|()| {
            let flags = match over {
                Over::Any => RenameFlags::empty(),
                Over::Nothing => RenameFlags::NOREPLACE,
            };
            Ok(rustix::fs::renameat_with(parent, &temporary, parent, name, flags)?)
        });
    if let Err(error) = written {
        let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::empty());
        return Err(error);
    }
    // The new name is durable when the directory is.
    Ok(rustix::fs::fsync(parent)?)
}

/// As root we write in the name of others: a file belongs to whom it did, and a new one to whom its
/// directory does, so that commands of an agent's own user go on with it.
fn give(file: &File, parent: &OwnedFd, there: Option<&Stat>) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = match there {
        Some(stat) => (stat.st_uid, stat.st_gid),
        None => {
            let stat = rustix::fs::fstat(parent)?;
            (stat.st_uid, stat.st_gid)
        }
    };
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    Ok(rustix::fs::fchown(file, Some(user), Some(group))?)
}

impl FileError {
    /// The word that programs match.
    pub fn code(&self) -> &'static str {
        match self {
            FileError::Path { .. } => "INVALID_PATH",
            FileError::Outside(_) => "OUTSIDE_WORKSPACE",
            FileError::Protected { .. } | FileError::Repository(_) => "PROTECTED_FILE",
            FileError::Scope(_) => "PERMISSION_DENIED",
            FileError::Exists(_) => "EXISTS",
            FileError::Missing(_) => "NOT_FOUND",
            FileError::Directory(_)
            | FileError::Special(_)
            | FileError::Link(_)
            | FileError::HardLink(_) => "NOT_A_FILE",
            FileError::TooLarge { .. } | FileError::TooMany { .. } => "TOO_LARGE",
            FileError::NotText { .. } => "NOT_TEXT",
            FileError::Io { .. } => "IO_ERROR",
        }
    }
}

#[cfg(test)]
mod tests;
