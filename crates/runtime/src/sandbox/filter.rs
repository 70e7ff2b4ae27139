//! Which system calls a program has: those of a list, some of them with certain arguments alone.

use std::collections::BTreeMap;

use libc::{
    AF_INET, AF_INET6, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS,
    CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, EPERM, SOCK_DGRAM, SOCK_STREAM,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

use super::Namespaces;
use super::calls::{ALLOWED, ALLOWED_OLD, IN_OWN_NAMESPACES, REFUSED, REFUSED_OLD};
use super::ranges::{self, Verdict};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const CLONE_NEWTIME: i32 = 0x80;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
/// What asks for the personality and does not set it.
const PERSONALITY_QUERY: u64 = 0xffff_ffff;

/// For this process and all that it starts, for good.
pub fn apply(network: bool, namespaces: Namespaces) -> Result<(), String> {
    let arguments = arguments(network, namespaces).map_err(|it| it.to_string())?;
    apply_filter(&arguments).map_err(|it| it.to_string())?;
    // It ends the list of calls, so the other must be in place by then.
    let calls = ranges::program(&verdicts(network, namespaces))?;
    apply_filter(&calls).map_err(|it| it.to_string())
}

/// What is said of each call by its number. Those that are in no list do not exist: whoever asks
/// for one falls back on an older one, as on an older kernel.
fn verdicts(network: bool, namespaces: Namespaces) -> BTreeMap<u32, Verdict> {
    let own = match namespaces {
        Namespaces::None => &[][..],
        Namespaces::Own | Namespaces::Users => IN_OWN_NAMESPACES,
    };
    let allowed = [ALLOWED, ALLOWED_OLD, own].into_iter().flatten();
    let refused = [REFUSED, REFUSED_OLD].into_iter().flatten();
    let sockets = [libc::SYS_socket].into_iter().filter(|_| !network);
    // A call that is in two lists is refused: the later word stands.
    let all = allowed.map(|it| (*it, Verdict::Allow));
    let all = all.chain(refused.copied().chain(sockets).map(|it| (it, Verdict::Refuse)));
    all.filter_map(|(call, verdict)| Some((u32::try_from(call).ok()?, verdict))).collect()
}

/// What is refused for its arguments.
fn arguments(
    network: bool,
    namespaces: Namespaces,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let not_permitted = SeccompAction::Errno(EPERM.unsigned_abs());
    let rules = refused(network, namespaces)?;
    SeccompFilter::new(rules, SeccompAction::Allow, not_permitted, arch)?.try_into()
}

fn refused(network: bool, namespaces: Namespaces) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    let rule = |conditions: &[(u8, Width, Is, u64)]| {
        let conditions = conditions.iter().cloned();
        let all =
            conditions.map(|(at, width, is, value)| SeccompCondition::new(at, width, is, value));
        SeccompRule::new(all.collect::<Result<_, _>>()?)
    };
    let word = |it: i32| u64::from(it.unsigned_abs());

    let spaces = [
        CLONE_NEWNS,
        CLONE_NEWUTS,
        CLONE_NEWIPC,
        CLONE_NEWUSER,
        CLONE_NEWPID,
        CLONE_NEWNET,
        CLONE_NEWCGROUP,
        CLONE_NEWTIME,
    ];
    let clones = spaces.map(|it| rule(&[(0, Width::Qword, Is::MaskedEq(word(it)), word(it))]));
    rules.insert(libc::SYS_clone, clones.into_iter().collect::<Result<_, _>>()?);

    let other = |at, families: &[i32]| -> Vec<_> {
        families.iter().map(|it| (at, Width::Dword, Is::Ne, word(*it))).collect()
    };
    // A socket of a file's name reaches past the network's walls, and past those around files:
    // a database, a container engine. A pair of sockets reaches nobody.
    if network {
        let kind = |it: i32| (1, Width::Dword, Is::MaskedEq(0xf), word(it));
        let plain = [SOCK_STREAM, SOCK_DGRAM];
        let raw = (0..16).filter(|it| !plain.contains(it)).map(|it| rule(&[kind(it)]));
        let mut sockets = raw.collect::<Result<Vec<_>, _>>()?;
        sockets.push(rule(&other(0, &[AF_INET, AF_INET6]))?);
        rules.insert(libc::SYS_socket, sockets);
    }
    rules.insert(libc::SYS_socketpair, vec![rule(&other(0, &[AF_UNIX]))?]);

    let terminal = [TIOCSTI, TIOCLINUX].map(|it| rule(&[(1, Width::Dword, Is::Eq, it)]));
    rules.insert(libc::SYS_ioctl, terminal.into_iter().collect::<Result<_, _>>()?);
    let personality = [(0, Width::Dword, Is::Ne, 0), (0, Width::Dword, Is::Ne, PERSONALITY_QUERY)];
    rules.insert(libc::SYS_personality, vec![rule(&personality)?]);
    if namespaces == Namespaces::None {
        // Others of the same user could be slowed down or starved, the server among them.
        for (call, whom) in [
            (libc::SYS_prlimit64, 0),
            (libc::SYS_sched_setaffinity, 0),
            (libc::SYS_sched_setscheduler, 0),
            (libc::SYS_sched_setparam, 0),
            (libc::SYS_sched_setattr, 0),
            (libc::SYS_setpriority, 1),
            (libc::SYS_ioprio_set, 1),
        ] {
            rules.insert(call, vec![rule(&[(whom, Width::Dword, Is::Ne, 0)])?]);
        }
    }
    Ok(rules)
}
