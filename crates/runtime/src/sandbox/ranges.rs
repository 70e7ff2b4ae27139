//! A filter of system calls by their numbers, as short as it can be: neighbours with the same
//! verdict are one range, and the range is found by halving. The kernel runs it once for every
//! call there is when it is put up, and that is what starting a process would otherwise take
//! longest for.

use std::collections::BTreeMap;

use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, ENOSYS, EPERM};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS};
use seccompiler::{BpfProgram, sock_filter};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// "Not permitted."
    Refuse,
    /// "No such call."
    Unknown,
}

/// Where the kernel has the number, and what kind of machine it is for.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

/// Calls that are not in the list are unknown.
pub fn program(verdicts: &BTreeMap<u32, Verdict>) -> Result<BpfProgram, String> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => 0xc000_003e,
        "aarch64" => 0xc000_00b7,
        "riscv64" => 0xc000_00f3,
        other => return Err(format!("no list of calls is known for {other}")),
    };
    let mut all = vec![
        step(BPF_LD | BPF_W | BPF_ABS, ARCH),
        sock_filter { jt: 1, ..step(BPF_JMP | BPF_JEQ | BPF_K, arch) },
        step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        step(BPF_LD | BPF_W | BPF_ABS, NUMBER),
    ];
    all.extend(halved(&ranges(verdicts))?);
    Ok(all)
}

/// Each with the number that it begins at; it ends where the next begins.
fn ranges(verdicts: &BTreeMap<u32, Verdict>) -> Vec<(u32, Verdict)> {
    let mut ranges = vec![(0, Verdict::Unknown)];
    let mut put = |from: u32, verdict| match ranges.last_mut() {
        Some((_, last)) if *last == verdict => {}
        Some((begins, last)) if *begins == from => *last = verdict,
        _ => ranges.push((from, verdict)),
    };
    for (number, verdict) in verdicts {
        put(*number, *verdict);
        if !verdicts.contains_key(&(number + 1)) {
            put(number + 1, Verdict::Unknown);
        }
    }
    ranges
}

fn halved(ranges: &[(u32, Verdict)]) -> Result<BpfProgram, String> {
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    match (lower, upper) {
        ([], [(_, verdict)]) => Ok(vec![step(BPF_RET | BPF_K, answer(*verdict))]),
        (_, [(begins, _), ..]) => {
            let (below, above) = (halved(lower)?, halved(upper)?);
            let over = u8::try_from(below.len()).map_err(|_| "too many ranges of calls")?;
            let mut all =
                vec![sock_filter { jt: over, ..step(BPF_JMP | BPF_JGE | BPF_K, *begins) }];
            all.extend(below);
            all.extend(above);
            Ok(all)
        }
        _ => Err("no calls at all".to_owned()),
    }
}

fn answer(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Allow => SECCOMP_RET_ALLOW,
        Verdict::Refuse => SECCOMP_RET_ERRNO | EPERM.unsigned_abs(),
        Verdict::Unknown => SECCOMP_RET_ERRNO | ENOSYS.unsigned_abs(),
    }
}

fn step(code: u32, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::calls::{ALLOWED, REFUSED};

    /// As the kernel runs it, for a call of this machine's kind.
    fn run(program: &[sock_filter], number: u32) -> u32 {
        let mut at = 0;
        let mut held = 0;
        loop {
            let it = &program[at];
            at += 1;
            match u32::from(it.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    held = if it.k == NUMBER { number } else { program[1].k };
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if held == it.k { it.jt } else { it.jf });
                }
                code if code == BPF_JMP | BPF_JGE | BPF_K => {
                    at += usize::from(if held >= it.k { it.jt } else { it.jf });
                }
                _ => return it.k,
            }
        }
    }

    #[test]
    fn every_number_has_the_verdict_of_its_list() {
        let allowed = ALLOWED.iter().map(|it| (u32::try_from(*it).unwrap(), Verdict::Allow));
        let refused = REFUSED.iter().map(|it| (u32::try_from(*it).unwrap(), Verdict::Refuse));
        let verdicts: BTreeMap<_, _> = allowed.chain(refused).collect();
        let program = program(&verdicts).unwrap();
        assert!(program.len() < 400, "{}", program.len());
        let beyond = [0x4000_0000, 0x4000_003b, u32::MAX];
        for number in (0..2000).chain(beyond) {
            let expected = verdicts.get(&number).copied().unwrap_or(Verdict::Unknown);
            assert_eq!(run(&program, number), answer(expected), "{number}");
        }
    }

    #[test]
    fn a_call_of_another_kind_of_machine_ends_the_process() {
        let program = program(&BTreeMap::from([(1, Verdict::Allow)])).unwrap();
        assert_eq!(program[2].k, SECCOMP_RET_KILL_PROCESS);
        assert_eq!((program[1].jt, program[1].jf), (1, 0));
    }
}
