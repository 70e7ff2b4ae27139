//! Control groups: how much of the machine a program and all that it starts may use together.
//! Beside the limits of each process, and only where we may make such groups.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::Limits;
use crate::clock;

/// Where groups can be made.
#[derive(Debug)]
pub struct Groups {
    version: Version,
    /// One directory in each hierarchy.
    places: Vec<PathBuf>,
    made: AtomicU64,
    /// Groups whose processes had not ended yet when we wanted to remove them.
    left: Mutex<Vec<PathBuf>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// A hierarchy each for memory and for the number of processes.
    One,
    Two,
}

/// A program's own. It is removed with this value, and what is left in it ends.
#[derive(Debug)]
pub struct Group {
    groups: Arc<Groups>,
    directories: Vec<PathBuf>,
}

const ROOT: &str = "/sys/fs/cgroup";
/// A service manager that hands us a group puts the server itself here, for a group has either
/// processes or groups (systemd's `DelegateSubgroup=`).
const SERVERS_OWN: &str = "server";

/// What the name of a place begins with, before the process that made it.
const OURS: &str = "chancery-";

impl Groups {
    pub fn find() -> Option<Groups> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        Groups::under(Path::new(ROOT), &own)
    }

    fn under(root: &Path, own: &str) -> Option<Groups> {
        let (version, parents) = two(root, own).or_else(|| one(root, own))?;
        let process = getpid().as_raw_nonzero();
        let name = format!("{OURS}{process}-{}", clock::new_worker_id());
        let places: Vec<PathBuf> = parents.iter().map(|it| it.join(&name)).collect();
        for parent in &parents {
            tidy(parent);
        }
        for place in &places {
            std::fs::create_dir(place).ok()?;
            if version == Version::Two {
                enable(place).ok()?;
            }
        }
        let left = Mutex::default();
        Some(Groups { version, places, made: AtomicU64::new(0), left })
    }

    pub fn make(self: &Arc<Groups>) -> io::Result<Group> {
        self.sweep();
        let number = self.made.fetch_add(1, Ordering::Relaxed).to_string();
        let directories: Vec<_> = self.places.iter().map(|it| it.join(&number)).collect();
        // Made first, so that what was made goes if the rest fails.
        let group = Group { groups: self.clone(), directories };
        for directory in &group.directories {
            std::fs::create_dir(directory)?;
        }
        Ok(group)
    }

    fn sweep(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|it| !gone(it));
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.sweep();
        for place in &self.places {
            let _ = std::fs::remove_dir(place);
        }
    }
}

impl Group {
    /// Puts a process into it. What it starts is in it too.
    pub fn admit(&self, process: Pid, limits: &Limits) -> io::Result<()> {
        let memory = match self.groups.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        for directory in &self.directories {
            for (name, value) in [(memory, limits.memory_bytes), ("pids.max", limits.processes)] {
                let file = directory.join(name);
                if file.exists() {
                    std::fs::write(file, value.to_string())?;
                }
            }
            let number = process.as_raw_nonzero().to_string();
            std::fs::write(directory.join("cgroup.procs"), number)?;
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(first) = self.directories.first() else { return };
        if self.groups.version == Version::Two {
            let _ = std::fs::write(first.join("cgroup.kill"), "1");
        } else {
            let inside = std::fs::read_to_string(first.join("cgroup.procs")).unwrap_or_default();
            for process in inside.lines().filter_map(|it| Pid::from_raw(it.parse().ok()?)) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let busy = self.directories.iter().filter(|it| !gone(it)).cloned();
        self.groups.left.lock().unwrap_or_else(PoisonError::into_inner).extend(busy);
    }
}

/// Removed, or never there.
fn gone(directory: &Path) -> bool {
    match std::fs::remove_dir(directory) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// What servers left behind that were killed.
fn tidy(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|it| it.strip_prefix(OURS)?.split('-').next());
        let dead = process.is_some_and(|it| !Path::new("/proc").join(it).exists());
        if dead {
            let inside = std::fs::read_dir(entry.path()).into_iter().flatten().flatten();
            for group in inside.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
                let _ = std::fs::remove_dir(group.path());
            }
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn path_of<'a>(own: &'a str, hierarchy: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let named = fields.next()?.split(',').any(|it| it == hierarchy);
        fields.next().filter(|_| named)
    })
}

fn one(root: &Path, own: &str) -> Option<(Version, Vec<PathBuf>)> {
    let place = |hierarchy: &str| {
        let path = path_of(own, hierarchy)?;
        let place = root.join(hierarchy).join(path.trim_start_matches('/'));
        place.join("cgroup.procs").exists().then_some(place)
    };
    Some((Version::One, vec![place("memory")?, place("pids")?]))
}

fn two(root: &Path, own: &str) -> Option<(Version, Vec<PathBuf>)> {
    let place = root.join(path_of(own, "")?.trim_start_matches('/'));
    let place = match place.file_name() {
        Some(name) if name == SERVERS_OWN => place.parent()?.to_owned(),
        _ => place,
    };
    let has = std::fs::read_to_string(place.join("cgroup.controllers")).ok()?;
    let has = |name: &str| has.split_whitespace().any(|it| it == name);
    (has("memory") && has("pids") && enable(&place).is_ok()).then(|| (Version::Two, vec![place]))
}

/// Refused where processes are in the group itself: it was not handed to us to divide.
fn enable(place: &Path) -> io::Result<()> {
    std::fs::write(place.join("cgroup.subtree_control"), "+memory +pids")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "cpu memory pids").unwrap();
        }
        dir
    }

    #[test]
    fn each_hierarchy_of_the_first_version_has_its_own_place() {
        let dir = tree(&["memory/a/b/cgroup.procs", "pids/cgroup.procs"]);
        let own = "4:memory:/a/b\n8:pids:/\n1:cpu,cpuacct:/x\n0::/\n";
        let (version, places) = one(dir.path(), own).unwrap();
        assert_eq!(version, Version::One);
        assert_eq!(places, [dir.path().join("memory/a/b"), dir.path().join("pids/")]);
        assert_eq!(one(dir.path(), "4:memory:/elsewhere\n8:pids:/\n"), None);
        assert_eq!(one(dir.path(), "4:memory:/a/b\n"), None);
    }

    #[test]
    fn of_the_second_version_a_group_that_was_handed_to_us_is_divided() {
        let files = ["unit/cgroup.controllers", "unit/server/cgroup.controllers"];
        let dir = tree(&files);
        let expected = (Version::Two, vec![dir.path().join("unit")]);
        assert_eq!(two(dir.path(), "0::/unit/server\n"), Some(expected));
        let enabled = std::fs::read_to_string(dir.path().join("unit/cgroup.subtree_control"));
        assert_eq!(enabled.unwrap(), "+memory +pids");
        std::fs::write(dir.path().join("unit/cgroup.controllers"), "cpu memory").unwrap();
        assert_eq!(two(dir.path(), "0::/unit/server\n"), None);
    }

    #[test]
    fn what_a_killed_server_left_behind_goes() {
        let dir = tree(&["cgroup.procs"]);
        let alive = format!("chancery-{}-b", std::process::id());
        for name in ["chancery-4194999-a/3", "chancery-4194999-a/4", &alive, "other"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        tidy(dir.path());
        let left: Vec<_> =
            ["chancery-4194999-a", &alive, "other"].map(|it| dir.path().join(it).exists()).to_vec();
        assert_eq!(left, [false, true, true]);
    }
}
