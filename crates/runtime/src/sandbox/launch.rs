//! The hidden mode of our binary: puts up walls around itself, and then becomes the program or
//! waits for it. Runs alone in a process that has one thread and nothing to lose.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use rustix::process::{Signal, getpid, kill_process};

use super::grant::{self, Access};
use super::namespaces::{self, Namespaces};
use super::{MODE, ORDER, Order, fence, filter, probe, tree, user};
use crate::tool::process::{Ended, How};

/// What this process ends with where the walls cannot be put up; the reason is on its error
/// output, after [`REFUSED`].
const NOT_CONFINED: i32 = 125;
const NOT_STARTED: u8 = 127;
/// What the reason begins with.
const REFUSED: &str = "chancery: not started, for it cannot be isolated: ";

/// Does what the hidden mode does, where the command line asks for it. Call it before anything
/// else: no second thread may have begun.
pub fn if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(MODE.as_ref()) {
        return None;
    }
    Some(match arguments.next() {
        None => launch(),
        Some(what) if what == probe::ATTEMPTS => probe::answer(arguments),
        Some(_) => ExitCode::FAILURE,
    })
}

/// Why the walls could not be put up, if that is how it ended. A program can say the same of
/// itself, and has then refused itself.
pub(crate) fn refusal(ended: &Ended) -> Option<String> {
    match ended.how {
        How::Exited(status) if status.code() == Some(NOT_CONFINED) => {
            let said = ended.stderr.text();
            said.strip_prefix(REFUSED).map(|it| it.trim().to_owned())
        }
        _ => None,
    }
}

fn launch() -> ExitCode {
    let order = std::env::var(ORDER).map_err(|it| it.to_string());
    let order = order.and_then(|it| serde_json::from_str(&it).map_err(|it| it.to_string()));
    let order: Order = match order {
        Ok(order) => order,
        Err(error) => return refuse(&format!("no order is to be had: {error}")),
    };
    let held = match confine(&order) {
        Ok(held) => held,
        Err(error) => return refuse(&error),
    };
    let Some(mut program) = program(&order) else {
        let name = order.argv.first().map_or("", |it| it);
        eprintln!("chancery: there is no program `{name}` here");
        return ExitCode::from(NOT_STARTED);
    };
    let failed = match held {
        None => program.exec(),
        // The first process of the new world ends with this one, and everything with it.
        Some(_first) => match program.status() {
            Ok(status) => return end_as(status),
            Err(error) => error,
        },
    };
    eprintln!("chancery: `{}` cannot be started: {failed}", order.argv[0]);
    ExitCode::from(NOT_STARTED)
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("{REFUSED}{why}");
    ExitCode::from(u8::try_from(NOT_CONFINED).unwrap_or(1))
}

/// Puts up the walls. Where namespaces are among them, answers with what holds them.
fn confine(order: &Order) -> Result<Option<namespaces::First>, String> {
    let at = |layer: &'static str| move |it: std::io::Error| format!("{layer}: {it}");
    let walls = &order.walls;
    close_inherited().map_err(at("descriptors"))?;
    namespaces::enter(order.namespaces, walls.network).map_err(|it| format!("namespaces: {it}"))?;
    let named = order.argv.first().filter(|it| it.contains('/')).map(PathBuf::from);
    let mut grants = grant::open(walls, named.as_deref()).map_err(at("files"))?;
    if let Some(user) = order.user {
        user::admit(walls, &grants, user).map_err(at("the agent's user"))?;
    }
    let first = match order.namespaces {
        Namespaces::None => {
            let names = grant::NAMES.iter().map(Path::new);
            for path in names.chain([Path::new("/proc")]) {
                grants.extend(grant::outside(path, Access::Read).map_err(at("files"))?);
            }
            for path in order.scratch.iter() {
                grants.extend(grant::outside(path, Access::Write).map_err(at("files"))?);
            }
            None
        }
        Namespaces::Own | Namespaces::Users => {
            tree::build(order, &mut grants).map_err(at("mounts"))?;
            let first = namespaces::first(order.user).map_err(at("namespaces"))?;
            tree::enter().map_err(at("mounts"))?;
            grants.extend(tree::inside().map_err(at("mounts"))?);
            Some(first)
        }
    };
    rustix::process::chdir(&order.directory).map_err(|it| at("directory")(it.into()))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    walls.limits.apply(order.namespaces).map_err(|it| at("limits")(it.into()))?;
    user::become_user(order.user).map_err(at("the agent's user"))?;
    rustix::thread::set_no_new_privs(true).map_err(|it| at("privileges")(it.into()))?;
    fence::apply(&grants, walls.network)?;
    drop(grants);
    filter::apply(walls.network, order.namespaces).map_err(|it| format!("seccomp: {it}"))?;
    Ok(first)
}

/// What the server's own parent left open when it started the server is not for programs.
fn close_inherited() -> std::io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok())
        .filter(|it| *it > 2)
        .collect();
    for descriptor in open {
        // The one that the list was read with is closed already.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

fn program(order: &Order) -> Option<Command> {
    let (name, arguments) = order.argv.split_first()?;
    let search = order.environment.get("PATH").map_or("", |it| it);
    let found = find(name, search)?;
    #[expect(clippy::disallowed_methods, reason = "what is started here was let through there")]
    let mut command = Command::new(found);
    let own = match &order.scratch {
        Some(path) => path.as_os_str().to_owned(),
        None => OsString::from("/tmp"),
    };
    command.arg0(name).args(arguments).env_clear().envs(&order.environment);
    command.env("HOME", &own).env("TMPDIR", &own);
    Some(command)
}

/// As a shell would find it, but within the walls.
fn find(name: &str, search: &str) -> Option<PathBuf> {
    let runs = |it: &PathBuf| {
        std::fs::metadata(it).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let absolute = search.split(':').filter(|it| it.starts_with('/'));
    absolute.map(|it| Path::new(it).join(name)).find(runs)
}

/// Ends this process as the program ended.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        // Some are ignored by us; then the number says it, as it does in a shell.
        let _ = kill_process(getpid(), signal);
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
