//! What is attempted, what stops it, and what must come of it.

/// An attempt. Its words are those of `attacker.c`; `OUT` is a directory outside the walls,
/// `VICTIM` a process outside them of the same user.
#[derive(Debug)]
pub struct Row {
    pub attempt: &'static str,
    pub words: &'static [&'static str],
    /// What stops it where there is nothing but what is required; then what does beside it.
    pub layers: &'static str,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Stopped,
    /// Only a file system of its own stops it: without namespaces it gets through, and the
    /// documents say so.
    NeedsNamespaces,
    /// Nothing stops it, and the documents say so.
    GetsThrough,
}

use Outcome::{GetsThrough, NeedsNamespaces, Stopped};

const fn row(
    attempt: &'static str,
    words: &'static [&'static str],
    layers: &'static str,
    outcome: Outcome,
) -> Row {
    Row { attempt, words, layers, outcome }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    // Files.
    row("read a file by its absolute path", &["read", "OUT/secret"], "landlock, mounts", Stopped),
    row("read a file through `..`", &["read", "../outside/secret"], "landlock, mounts", Stopped),
    row("read through a link that lies there", &["read", "src/link/secret"], "landlock, mounts", Stopped),
    row("read through a link of one's own", &["symlink", "OUT/secret", "src/made"], "landlock, mounts", Stopped),
    row("read through a hard link of one's own", &["link", "OUT/open/mine", "src/hard2"], "landlock, mounts", Stopped),
    row("read through a hard link that lies there", &["read", "src/planted"], "nothing", GetsThrough),
    row("read what the role may not", &["read", "private/note"], "landlock, mounts", Stopped),
    row("read another agent's file", &["read", "agents/other/diary"], "landlock, mounts, users", Stopped),
    row("read a `.env` in the scope", &["read", "src/.env"], "mounts", NeedsNamespaces),
    row("read a key in the scope", &["read", "src/deep/er/server.key"], "mounts", NeedsNamespaces),
    row("replace a `.env` in the scope", &["rename", "src/main", "src/.env"], "mounts", NeedsNamespaces),
    row("write a hook that git runs", &["create", "src/.git/hooks/post-commit"], "mounts", NeedsNamespaces),
    row("write what may be read", &["write", "docs/readme"], "landlock, mounts", Stopped),
    row("make a file beside what may be read", &["create", "docs/new"], "landlock, mounts", Stopped),
    row("make a file in the workspace's root", &["create", "new"], "landlock, mounts", Stopped),
    row("make a file outside", &["create", "OUT/open/new"], "landlock, mounts", Stopped),
    row("truncate a file outside", &["truncate", "OUT/open/file"], "landlock, mounts", Stopped),
    row("remove a file outside", &["unlink", "OUT/open/gone"], "landlock, mounts", Stopped),
    row("make a directory outside", &["mkdir", "OUT/open/dir"], "landlock, mounts", Stopped),
    row("move a file in from outside", &["rename", "OUT/open/moved", "src/taken"], "landlock, mounts", Stopped),
    row("move a file out", &["rename", "src/spare", "OUT/open/spare"], "landlock, mounts", Stopped),
    row("run a program outside", &["execute", "OUT/tool"], "landlock, mounts", Stopped),
    row("look at a file outside (stat)", &["stat", "OUT/secret"], "mounts", NeedsNamespaces),
    row("change the mode of one's own file outside", &["chmod", "OUT/open/mine"], "mounts", NeedsNamespaces),
    row("change an attribute of one's own file outside", &["setxattr", "OUT/open/mine"], "mounts", NeedsNamespaces),
    row("touch one's own file outside", &["utimes", "OUT/open/mine"], "mounts", NeedsNamespaces),
    row("watch a directory outside", &["watch", "OUT/open"], "mounts", NeedsNamespaces),
    row("write to the system's programs", &["create", "/usr/bin/chancery-new"], "landlock, mounts, users", Stopped),
    row("write to /etc/passwd", &["write", "/etc/passwd"], "landlock, mounts, users", Stopped),
    row("read the passwords", &["read", "/etc/shadow"], "landlock, mounts, users", Stopped),
    row("open a file by its handle", &["handle", "docs/readme"], "seccomp", Stopped),
    row("use an inherited descriptor", &["descriptor", "7"], "closed descriptors", Stopped),
    row("run a program in memory that reads outside", &["memfd", "OUT/secret"], "landlock, mounts", Stopped),
    row("make a file that others can read", &["umask", "agents/pa/new"], "umask", Stopped),
    // Through /proc.
    row("read through the first process's root", &["read", "/proc/1/root/OUT/secret"], "landlock, processes", Stopped),
    row("read through another process's root", &["read", "/proc/VICTIM/root/OUT/secret"], "landlock, processes", Stopped),
    row("read through another process's directory", &["read", "/proc/VICTIM/cwd/secret"], "landlock, processes", Stopped),
    row("read another process's environment", &["read", "/proc/VICTIM/environ"], "landlock, processes", Stopped),
    row("open another process's memory", &["update", "/proc/VICTIM/mem"], "landlock, processes", Stopped),
    row("write to one's own memory as a file", &["update", "/proc/self/mem"], "landlock", Stopped),
    row("reboot by /proc/sysrq-trigger", &["write", "/proc/sysrq-trigger"], "landlock, users", Stopped),
    row("change the core pattern", &["write", "/proc/sys/kernel/core_pattern"], "landlock, users", Stopped),
    // Other processes.
    row("trace another process", &["ptrace", "VICTIM"], "seccomp, landlock, processes", Stopped),
    row("read another process's memory", &["memory", "VICTIM"], "seccomp, landlock, processes", Stopped),
    row("signal another process", &["kill", "VICTIM"], "landlock, processes", Stopped),
    row("signal another thread", &["tgkill", "VICTIM"], "landlock, processes", Stopped),
    row("signal through a descriptor", &["pidfd", "VICTIM"], "landlock, processes", Stopped),
    row("take another process's limits away", &["prlimit", "VICTIM"], "seccomp, processes", Stopped),
    row("slow another process down", &["setpriority", "VICTIM"], "seccomp, processes", Stopped),
    row("bind another process to a processor", &["affinity", "VICTIM"], "seccomp, processes", Stopped),
    row("leave a process behind", &["daemon"], "seccomp, processes", Stopped),
    row("reach another's shared memory", &["shared", "SHARED"], "seccomp, ipc", Stopped),
    // Privileges.
    row("run a setuid program", &["execute", "src/setuid"], "no new privileges, mounts", Stopped),
    row("become root", &["setuid"], "capabilities", Stopped),
    row("raise a capability", &["capset"], "capabilities", Stopped),
    row("mount", &["mount"], "seccomp, landlock, capabilities", Stopped),
    row("take a mount away", &["umount", "src/.env"], "seccomp, landlock, capabilities", Stopped),
    row("open a tree of mounts", &["open_tree"], "seccomp, landlock, capabilities", Stopped),
    row("change the root directory", &["chroot"], "seccomp, landlock, capabilities", Stopped),
    row("change the root mount", &["pivot_root"], "seccomp, landlock, capabilities", Stopped),
    row("unshare users", &["unshare", "268435456"], "seccomp", Stopped),
    row("unshare mounts", &["unshare", "131072"], "seccomp, capabilities", Stopped),
    row("clone with a user namespace", &["clone"], "seccomp", Stopped),
    row("clone3 with a user namespace", &["clone3"], "seccomp", Stopped),
    row("enter another's namespace", &["setns", "/proc/VICTIM/ns/net"], "seccomp, landlock, processes", Stopped),
    // The network.
    row("connect to loopback over TCP", &["tcp", "TCP"], "seccomp, landlock, network", Stopped),
    row("send to loopback over UDP", &["udp", "UDP"], "seccomp, network", Stopped),
    row("ask a name server", &["dns"], "seccomp, network", Stopped),
    row("connect to a unix socket by its path", &["unix", "OUT/socket"], "seccomp, mounts", Stopped),
    row("connect to an abstract unix socket", &["abstract", "ABSTRACT"], "seccomp, landlock, network", Stopped),
    row("make a raw socket", &["socket", "2", "3"], "seccomp, capabilities", Stopped),
    row("make a packet socket", &["socket", "17", "3"], "seccomp, capabilities", Stopped),
    row("make a netlink socket", &["socket", "16", "3"], "seccomp", Stopped),
    row("make a vsock socket", &["socket", "40", "1"], "seccomp", Stopped),
    row("make a socket for the kernel's ciphers", &["socket", "38", "5"], "seccomp", Stopped),
    row("make a pair of other sockets", &["socketpair", "2"], "seccomp", Stopped),
    row("make a socket by the x32 numbers", &["x32"], "seccomp", Stopped),
    row("call the kernel as a 32-bit program", &["int80"], "seccomp", Stopped),
    // The kernel.
    row("io_uring", &["io_uring"], "seccomp", Stopped),
    row("look for keys", &["keyctl"], "seccomp", Stopped),
    row("add a key", &["add_key"], "seccomp", Stopped),
    row("bpf", &["bpf"], "seccomp, capabilities", Stopped),
    row("perf_event_open", &["perf"], "seccomp", Stopped),
    row("userfaultfd", &["userfaultfd"], "seccomp", Stopped),
    row("load a module", &["module"], "seccomp, capabilities", Stopped),
    row("load another kernel", &["kexec"], "seccomp, capabilities", Stopped),
    row("reboot", &["reboot"], "seccomp, capabilities", Stopped),
    row("swap", &["swapon"], "seccomp, capabilities", Stopped),
    row("set the clock", &["clock"], "seccomp, capabilities", Stopped),
    row("set the host's name", &["hostname"], "seccomp, capabilities", Stopped),
    row("read the kernel's log", &["syslog"], "seccomp, capabilities", Stopped),
    row("switch address randomisation off", &["personality"], "seccomp", Stopped),
    row("fanotify", &["fanotify"], "seccomp", Stopped),
    row("type into a terminal", &["terminal"], "seccomp", Stopped),
    row("open /dev/mem", &["update", "/dev/mem"], "landlock, mounts, users", Stopped),
    row("open a terminal", &["update", "/dev/tty"], "landlock, mounts", Stopped),
    row("make a device", &["mknod", "src/device"], "landlock, capabilities", Stopped),
    row("make a control group", &["mkdir", "/sys/fs/cgroup/chancery"], "landlock, mounts, users", Stopped),
    // The machine's means.
    row("fork without end", &["forks", "6000"], "limits", Stopped),
    row("fill the disk with a file", &["fill", "src/full"], "limits", Stopped),
    row("take a gibibyte of memory", &["allocate"], "limits", Stopped),
    row("leave a core behind", &["core"], "limits", Stopped),
    row("burn the processor", &["burn"], "limits", Stopped),
    row("open files without end", &["descriptors"], "limits", Stopped),
    // What a program is started with.
    row("find a variable of the server's", &["environment"], "clean environment", Stopped),
];
