//! `policy prove`: whether a version allows anything that another did not. Not what was called is
//! looked at, but all that could be.

mod search;
mod told;
mod version;

use std::collections::BTreeSet;

use chancery_domain::policy::Ruling;
use chancery_runtime::rules::prove::ProveError;
use chancery_server::organisation::reach;

use crate::Global;
use crate::cmd::org::side::{self, Side};
use crate::outcome::{Outcome, Stopped};
use search::Search;
use version::Version;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// NEW, held against the version in force; or OLD NEW: each a directory, a version's number,
    /// `running` or `builtin`
    #[arg(required = true, num_args = 1..=2, value_name = "OLD> <NEW")]
    sides: Vec<Side>,
}

/// All that was found.
#[derive(Debug, Default)]
struct Found {
    /// Tools that were looked at, and how many agents and people could call them.
    tools: usize,
    agents: usize,
    users: usize,
    /// Calls that are ruled on more weakly, each played on both sides.
    wider: Vec<Example>,
    beyond: Vec<reach::Beyond>,
    undecided: Vec<Undecided>,
    /// How many questions the solver answered.
    asked: u64,
}

/// A call that the later version rules on more weakly.
#[derive(Debug, Clone)]
struct Example {
    tool: String,
    agent: String,
    user: String,
    before: Ruling,
    after: Ruling,
    /// Absent: whatever they are.
    call: Option<chancery_runtime::rules::prove::Sketch>,
    /// What held it back until now.
    because: String,
}

/// What could not be proved, and could not be refuted either.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Undecided {
    about: String,
    why: String,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let mut sides = args.sides.into_iter().rev();
    let (new, old) = (sides.next(), sides.next().unwrap_or(Side::Running));
    let old = Version::of(side::of(global, Some(old)).await?)?;
    let new = Version::of(side::of(global, new).await?)?;
    let found = compare(&old, &new).await.map_err(stopped)?;
    told::tell(global, &found)?;
    let proved = found.wider.is_empty() && found.beyond.is_empty() && found.undecided.is_empty();
    Ok(if proved { Outcome::Done } else { Outcome::Failed })
}

async fn compare(old: &Version, new: &Version) -> Result<Found, ProveError> {
    let tools: BTreeSet<&str> = old.tools().chain(new.tools()).collect();
    let agents: BTreeSet<&str> = new.agents().collect();
    let mut users: BTreeSet<&str> = old.users().chain(new.users()).collect();
    // Whoever is not listed has no limits of their own.
    let mut stranger = "somebody".to_owned();
    while users.contains(&*stranger) {
        stranger.push('_');
    }
    users.insert(&stranger);
    let mut search = Search::new([old, new], &agents, &users, &stranger);
    for tool in &tools {
        search.tool(tool).await?;
    }
    let mut found = search.found;
    (found.tools, found.agents, found.users) = (tools.len(), agents.len(), users.len());
    found.beyond = reach::beyond(&old.loaded, &new.loaded);
    found.undecided.extend(version::incomparable(old, new));
    found.undecided.sort();
    found.undecided.dedup();
    Ok(found)
}

fn stopped(error: ProveError) -> anyhow::Error {
    match error {
        ProveError::NoSolver(why) => {
            let message = format!(
                "{why}: the rules over arguments differ, and to compare them a solver is needed. \
                 Install cvc5 (Debian: the package `cvc5`), or name the program in $CVC5"
            );
            Stopped::new(Outcome::Failed, "no_solver", message).into()
        }
        it => anyhow::Error::new(it),
    }
}
