//! The workspace as one agent may use it: every path is ruled on by the agent's file scope, as it
//! was named and as what it really leads to. A link is no way past a role.
//!
//! Blocking: call it where blocking is allowed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use chancery_domain::contract::Warrant;
use chancery_domain::id::AgentId;
use chancery_domain::org::{Org, Role};
use chancery_domain::policy::Access;
use jiff::Timestamp;
use rustix::fs::{Dir, FileType, OFlags};

use super::super::CallContext;
use super::protected::is_protected;
use super::workspace::{FileError, Over, Workspace, check};

/// More names in one folder than anybody looks through.
const ENTRIES_MAX: usize = 100_000;

/// One agent's part of the workspace, for one call.
#[derive(Debug, Clone)]
pub struct Reach {
    workspace: Arc<Workspace>,
    org: Arc<Org>,
    agent: AgentId,
    warrant: Arc<Warrant>,
}

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub folder: bool,
    pub bytes: u64,
    pub modified: Timestamp,
}

impl Reach {
    pub fn of(workspace: &Arc<Workspace>, context: &CallContext) -> Reach {
        Reach {
            workspace: workspace.clone(),
            org: context.org.clone(),
            agent: context.speaker.agent.clone(),
            warrant: context.warrant.clone(),
        }
    }

    pub fn agent(&self) -> &str {
        self.agent.as_str()
    }

    pub fn role(&self) -> Option<&Role> {
        self.org.role_of(&self.agent)
    }

    pub fn rule(&self, access: Access, path: &str) -> Result<(), FileError> {
        let Some(role) = self.role() else {
            return Err(FileError::Scope(format!("there is no agent `{}`", self.agent)));
        };
        match role.rule_on_path(access, path, &self.warrant) {
            None => Ok(()),
            Some(reason) => Err(FileError::Scope(reason.detail)),
        }
    }

    pub fn may_read(&self, path: &str) -> bool {
        self.rule(Access::Read, path).is_ok()
    }

    pub fn read(&self, path: &str, limit: usize) -> Result<String, FileError> {
        self.rule(Access::Read, path)?;
        self.workspace.read_within(path, limit, &|real| self.rule(Access::Read, real))
    }

    /// The last bytes of a file, whatever they are, and how many there are in all.
    pub fn tail(&self, path: &str, limit: usize) -> Result<(Vec<u8>, u64), FileError> {
        self.rule(Access::Read, path)?;
        let (mut file, size) =
            self.workspace.open_file(path, &|real| self.rule(Access::Read, real))?;
        let from = size.saturating_sub(limit as u64);
        let read = |file: &mut File| -> io::Result<Vec<u8>> {
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(limit as u64).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read(&mut file).map_err(|it| failed(path, it))?;
        Ok((bytes, size))
    }

    /// A file of any bytes that the agent may write, and whether it is a program.
    pub fn written(&self, path: &str, limit: usize) -> Result<(Vec<u8>, bool), FileError> {
        self.rule(Access::Write, path)?;
        let (mut file, size) =
            self.workspace.open_file(path, &|real| self.rule(Access::Write, real))?;
        if size > limit as u64 {
            return Err(FileError::TooLarge { path: path.to_owned(), size, limit });
        }
        let read = |file: &mut File| -> io::Result<(Vec<u8>, bool)> {
            let program = file.metadata()?.permissions().mode() & 0o100 != 0;
            let mut bytes = Vec::new();
            file.take(limit as u64).read_to_end(&mut bytes)?;
            Ok((bytes, program))
        };
        read(&mut file).map_err(|it| failed(path, it))
    }

    pub fn write(&self, path: &str, content: &str, limit: usize) -> Result<(), FileError> {
        self.put(path, content, limit, Over::Any)
    }

    /// Writes a file that is not there yet.
    pub fn create(&self, path: &str, content: &str, limit: usize) -> Result<(), FileError> {
        self.put(path, content, limit, Over::Nothing)
    }

    fn put(&self, path: &str, content: &str, limit: usize, over: Over) -> Result<(), FileError> {
        self.rule(Access::Write, path)?;
        let within = |real: &str| self.rule(Access::Write, real);
        self.workspace.write_within(path, content.as_bytes(), limit, over, &within)
    }

    /// What is in a folder, by name, as far as the agent may read it. Links and special files are
    /// left out. A folder that is not there is empty.
    pub fn list(&self, folder: &str) -> Result<Vec<Listed>, FileError> {
        let secret = |it: &Listed| is_protected(&format!("{folder}/{}", it.name));
        Ok(self.entries(folder)?.into_iter().filter(|it| !secret(it)).collect())
    }

    /// With those that nobody may read.
    fn entries(&self, folder: &str) -> Result<Vec<Listed>, FileError> {
        check(folder)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = match self.workspace.beneath(folder, Path::new(folder), flags) {
            Err(FileError::Missing(_)) => return Ok(Vec::new()),
            opened => opened?,
        };
        let real = self.workspace.real_name(folder, &open)?;
        let failed = |it: rustix::io::Errno| failed(folder, it.into());
        let mut found = Vec::new();
        let at = open.try_clone().map_err(|it| self::failed(folder, it))?;
        for (number, entry) in Dir::new(open).map_err(failed)?.enumerate() {
            // Half of a folder could pass for all of it.
            if number > ENTRIES_MAX {
                return Err(FileError::TooMany { path: folder.to_owned(), most: ENTRIES_MAX });
            }
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let beneath = real.join(name);
            if [".", ".."].contains(&name) || !self.may_see(&beneath.to_string_lossy()) {
                continue;
            }
            let no_follow = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            let Ok(stat) = rustix::fs::statat(&at, entry.file_name(), no_follow) else { continue };
            let folder = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => true,
                FileType::RegularFile => false,
                _ => continue,
            };
            found.push(Listed {
                name: name.to_owned(),
                folder,
                bytes: u64::try_from(stat.st_size).unwrap_or_default(),
                modified: Timestamp::from_second(stat.st_mtime).unwrap_or_default(),
            });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Whether a name may be shown: what may be read, and what leads there.
    fn may_see(&self, path: &str) -> bool {
        if self.may_read(path) {
            return true;
        }
        let scope = self.role().and_then(|it| it.file_scope.as_ref());
        let entries = scope.iter().flat_map(|it| &it.read);
        entries.flat_map(|it| self.warrant.fill(&it.value)).any(|it| {
            let inner = it.trim_start_matches("./");
            inner.strip_prefix(path).is_some_and(|it| it.starts_with('/'))
        })
    }

    /// The files beneath a folder, with their paths, at most so many. Folders of git are left out.
    pub fn walk(&self, folder: &str, most: usize) -> Result<Vec<String>, FileError> {
        let names = self.all_names(folder, most)?;
        Ok(names.into_iter().filter(|it| !is_protected(it)).collect())
    }

    /// With those that nobody may read.
    pub fn all_names(&self, folder: &str, most: usize) -> Result<Vec<String>, FileError> {
        let mut files = Vec::new();
        let mut folders = vec![folder.trim_end_matches('/').to_owned()];
        while let Some(folder) = folders.pop() {
            for it in self.entries(&folder)? {
                let path =
                    if folder == "." { it.name.clone() } else { format!("{folder}/{}", it.name) };
                if it.folder && it.name != ".git" && !is_protected(&path) {
                    folders.push(path);
                } else if it.name != ".git" {
                    files.push(path);
                }
                if files.len() > most || folders.len() > most {
                    return Err(FileError::TooMany { path: folder, most });
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

fn failed(path: &str, source: io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use chancery_domain::org::{Agent, FileScope};

    use super::super::super::testing::context;
    use super::*;

    fn reach(dir: &Path, read: &[&str], write: &[&str]) -> Reach {
        let entries = |it: &[&str]| it.iter().map(|it| (*it).to_owned().into()).collect();
        let file_scope = Some(FileScope { read: entries(read), write: entries(write) });
        let role = Role { file_scope, ..Role::unlimited("worker") };
        let org = Org::new([role], [("pa".into(), Agent::of("worker"))]).unwrap();
        let context = CallContext { org: Arc::new(org), ..context() };
        Reach::of(&Arc::new(Workspace::open(dir).unwrap()), &context)
    }

    #[test]
    fn a_link_within_the_workspace_is_no_way_past_a_scope() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for folder in ["mine", "theirs"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        std::fs::write(at("theirs/plan"), "theirs").unwrap();
        std::fs::write(at("mine/note"), "mine").unwrap();
        symlink("../theirs", at("mine/over")).unwrap();
        symlink("note", at("mine/again")).unwrap();
        let reach = reach(dir.path(), &["mine/"], &["mine/"]);
        let code = |it: Result<(), FileError>| it.map_or_else(|it| it.code(), |()| "OK");

        assert_eq!(reach.read("mine/again", 100).unwrap(), "mine");
        assert_eq!(reach.read("mine/over/plan", 100).unwrap_err().code(), "PERMISSION_DENIED");
        assert_eq!(code(reach.write("mine/over/plan", "x", 100)), "PERMISSION_DENIED");
        assert_eq!(code(reach.write("mine/over/deep/new", "x", 100)), "PERMISSION_DENIED");
        assert!(!at("theirs/deep").exists());
        assert_eq!(code(reach.create("mine/note", "x", 100)), "EXISTS");
        assert_eq!(code(reach.write("mine/.git/config.x", "x", 100)), "PROTECTED_FILE");
        let names = |it: Vec<Listed>| it.into_iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(names(reach.list("mine").unwrap()), ["note"]);
        assert_eq!(names(reach.list("mine/over").unwrap()), Vec::<String>::new());
        assert_eq!(names(reach.list(".").unwrap()), ["mine"]);
        assert_eq!(reach.walk(".", 10).unwrap(), ["mine/note"]);
        assert_eq!(reach.list("../").unwrap_err().code(), "OUTSIDE_WORKSPACE");
    }
}
