//! How much of the machine one process may use. Per process, for that is what the kernel counts
//! without a control group; the number of processes is per user.

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::Namespaces;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Of its user's, all commands of an agent together.
    pub processes: u64,
    /// Of private memory. Not of address space: many a runtime reserves more of that than there
    /// is memory.
    pub memory_bytes: u64,
    /// The largest file that it can write.
    pub file_bytes: u64,
    pub open_files: u64,
    /// What its own `/tmp` takes.
    pub scratch_bytes: u64,
    /// Of processor time. The wall clock stands beside it.
    pub cpu_seconds: Option<u64>,
}

/// Where processes are not counted apart from those of the whole user, this many are for a fork
/// bomb to be ended by, and not for a command to run out of.
const SHARED_PROCESSES: u64 = 4096;

impl Default for Limits {
    fn default() -> Limits {
        const MIB: u64 = 1 << 20;
        Limits {
            processes: 256,
            memory_bytes: 4096 * MIB,
            file_bytes: 1024 * MIB,
            open_files: 1024,
            scratch_bytes: 256 * MIB,
            cpu_seconds: None,
        }
    }
}

impl Limits {
    /// The narrower of each.
    pub fn and(&self, other: &Limits) -> Limits {
        let cpu = [self.cpu_seconds, other.cpu_seconds].into_iter().flatten().min();
        Limits {
            processes: self.processes.min(other.processes),
            memory_bytes: self.memory_bytes.min(other.memory_bytes),
            file_bytes: self.file_bytes.min(other.file_bytes),
            open_files: self.open_files.min(other.open_files),
            scratch_bytes: self.scratch_bytes.min(other.scratch_bytes),
            cpu_seconds: cpu,
        }
    }

    /// For this process and all that it starts.
    pub(super) fn apply(&self, namespaces: Namespaces) -> rustix::io::Result<()> {
        let processes = match namespaces {
            Namespaces::None => self.processes.max(SHARED_PROCESSES),
            Namespaces::Own | Namespaces::Users => self.processes,
        };
        let mut all = vec![
            (Resource::Core, 0),
            (Resource::Nproc, processes),
            (Resource::Data, self.memory_bytes),
            (Resource::Fsize, self.file_bytes),
            (Resource::Nofile, self.open_files),
            (Resource::Memlock, 64 * 1024),
            (Resource::Msgqueue, 0),
            (Resource::Rtprio, 0),
        ];
        all.extend(self.cpu_seconds.map(|it| (Resource::Cpu, it)));
        for (resource, value) in all {
            // What is lower already stays so.
            let now = rustix::process::getrlimit(resource).maximum;
            let value = now.map_or(value, |it| it.min(value));
            setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
        }
        Ok(())
    }
}
