//! What becomes of a process that the resident launcher has made: it puts up walls around itself,
//! starts the program behind them, waits for its end and says how it was.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior};

use super::grant::{self, Access};
use super::ground::Ground;
use super::namespaces::{self, Namespaces};
use super::resident::{self, Word};
use super::{MODE, Order, fence, filter, probe, tree, user};

const NOT_STARTED: i32 = 127;
/// How often, and after how long, a process is tried to be made once more.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// What the reason on the error output begins with.
const REFUSED: &str = "chancery: not started, for it cannot be isolated: ";

/// Does what the hidden mode does, where the command line asks for it. Call it before anything
/// else: no second thread may have begun.
pub fn if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(MODE.as_ref()) {
        return None;
    }
    let what = arguments.next().unwrap_or_default();
    if what == resident::RESIDENT {
        let named = arguments.next().and_then(|it| Namespaces::named(it.to_str()?));
        return Some(named.map_or(ExitCode::FAILURE, resident::stay));
    }
    Some(if what == probe::ATTEMPTS { probe::answer(arguments) } else { ExitCode::FAILURE })
}

/// In the process that was made for it, until the program's end.
pub fn launch(
    ground: Result<Ground, String>,
    order: OwnedFd,
    streams: [OwnedFd; 3],
    word: OwnedFd,
) -> ! {
    let said = match begin(ground, order, streams) {
        Ok(program) => {
            // The server has been about its own part meanwhile. If it is gone, so are we.
            let mut go = [0];
            if !matches!(rustix::io::read(&word, &mut go), Ok(1)) {
                std::process::exit(0);
            }
            outcome(program)
        }
        Err(why) => {
            eprintln!("{REFUSED}{why}");
            Word::Refused(why)
        }
    };
    // If nobody listens any more, nobody wants to know.
    let _ = rustix::io::write(&word, &said.written());
    std::process::exit(0)
}

fn begin(
    ground: Result<Ground, String>,
    order: OwnedFd,
    streams: [OwnedFd; 3],
) -> Result<(String, Option<Command>), String> {
    let told = |it: io::Error| it.to_string();
    rustix::process::setpgid(None, None).map_err(|it| told(it.into()))?;
    dress(&streams).map_err(told)?;
    drop(streams);
    let order = read(order).map_err(|it| format!("no order is to be had: {it}"))?;
    confine(&order, ground?)?;
    let name = order.argv.first().cloned().unwrap_or_default();
    Ok((name, program(&order)))
}

/// A file from its beginning.
fn read(order: OwnedFd) -> io::Result<Order> {
    let order = std::fs::File::from(order);
    Ok(serde_json::from_reader(io::BufReader::new(order))?)
}

fn dress([stdin, stdout, stderr]: &[OwnedFd; 3]) -> io::Result<()> {
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}

/// Puts up the walls.
fn confine(order: &Order, ground: Ground) -> Result<(), String> {
    let at = |layer: &'static str| move |it: io::Error| format!("{layer}: {it}");
    let walls = &order.walls;
    namespaces::enter(&ground, walls.network).map_err(at("namespaces"))?;
    let named = order.argv.first().filter(|it| it.contains('/')).map(PathBuf::from);
    let mut grants = grant::open(walls, named.as_deref()).map_err(at("files"))?;
    if let Some(user) = order.user {
        user::admit(walls, &grants, user).map_err(at("the agent's user"))?;
    }
    match ground.namespaces {
        Namespaces::None => {
            grants.extend(grant::common(walls).map_err(at("files"))?);
            for path in order.scratch.iter() {
                grants.extend(grant::outside(path, Access::Write).map_err(at("files"))?);
            }
        }
        Namespaces::Own | Namespaces::Users => {
            tree::build(order, &ground, &mut grants).map_err(at("mounts"))?;
            namespaces::mount_proc().map_err(at("`/proc`"))?;
            tree::enter().map_err(at("mounts"))?;
            grants.extend(tree::inside(&ground).map_err(at("mounts"))?);
        }
    }
    rustix::process::chdir(&order.directory).map_err(|it| at("directory")(it.into()))?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    walls.limits.apply(ground.namespaces).map_err(|it| at("limits")(it.into()))?;
    user::become_user(order.user).map_err(at("the agent's user"))?;
    // What it starts may not look into this process, though it is of the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|it| at("privileges")(it.into()))?;
    rustix::thread::set_no_new_privs(true).map_err(|it| at("privileges")(it.into()))?;
    fence::apply(&grants, walls.network)?;
    filter::apply(walls.network, ground.namespaces).map_err(|it| format!("seccomp: {it}"))
}

fn program(order: &Order) -> Option<Command> {
    let name = order.argv.first().map_or("", |it| it);
    let search = order.environment.get("PATH").map_or("", |it| it);
    #[expect(clippy::disallowed_methods, reason = "what is started here was let through there")]
    let mut command = Command::new(find(name, search)?);
    let own = match &order.scratch {
        Some(path) => path.as_os_str().to_owned(),
        None => OsString::from("/tmp"),
    };
    command.arg0(name).args(order.argv.iter().skip(1)).env_clear().envs(&order.environment);
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

/// Starts it and waits for its end.
fn outcome((name, program): (String, Option<Command>)) -> Word {
    let Some(mut program) = program else {
        eprintln!("chancery: there is no program `{name}` here");
        return Word::Ended(NOT_STARTED << 8);
    };
    let mut spawned = program.spawn();
    for _ in 0..TRIES {
        // Those of the same agent that are on their way out still count.
        if !spawned.as_ref().is_err_and(|it| it.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
        std::thread::sleep(PAUSE);
        spawned = program.spawn();
    }
    let started = match spawned {
        Ok(started) => started,
        Err(error) => {
            eprintln!("chancery: `{name}` cannot be started: {error}");
            return Word::Ended(NOT_STARTED << 8);
        }
    };
    // This process holds no end of the program's pipes, or they would not end with the program.
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    let program = i32::try_from(started.id()).ok().and_then(Pid::from_raw);
    loop {
        // Those whose parents are gone are ours too, where we are the first of a world.
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((gone, status))) if Some(gone) == program => {
                return Word::Ended(status.as_raw());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Word::Ended(Signal::KILL.as_raw()),
        }
    }
}
