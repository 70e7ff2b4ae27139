//! What a page watches, and how it stands: read as the page itself reads it, of what whoever looks
//! may see. What is not theirs to see is not there to be watched, and makes nothing stale.

use std::time::Duration;

use chancery_domain::id::{ContractId, MailId, RunId, SessionKey, UserId};
use chancery_domain::memory::Plan;
use chancery_runtime::clock;
use chancery_store::Mark;

use crate::console::visitor::Visitor;
use crate::console::visits;
use crate::error::Result;
use crate::router::App;
use crate::routes::{contracts, mail, memories};

/// A tree of more runs is not watched as a whole.
const TREE_MAX: u32 = 500;
/// What happens within this time is told at once: a page that is asked for more often than this
/// is not read any better.
const GATHER: Duration = Duration::from_millis(60);
/// The same for lists that grow with every call of every run, and that nobody waits at.
const GATHER_LISTS: Duration = Duration::from_secs(1);

/// What a page shows, as far as one can tell whether it has changed. `of` is whose; absent:
/// everybody's.
#[derive(Debug, Clone)]
pub enum Watch {
    Nothing,
    Runs { of: Option<UserId> },
    Run(RunId),
    Thread { user: UserId, key: SessionKey },
    Mail { of: Option<UserId> },
    Letter(MailId),
    Contract { id: ContractId, of: Option<UserId> },
    Organisation,
    Memories(Box<Plan>),
    Audit { of: Option<UserId> },
    Rules { of: Option<UserId> },
    Settings { name: Option<String>, operator: bool },
}

/// How it stood.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    Nothing,
    /// How many runs, and how far they have come together.
    Runs(usize, u64),
    List(Mark),
    Organisation(String),
    Settings(String, Vec<Mark>),
}

impl Watch {
    /// What a page asks for by name. A name that says nothing watches nothing.
    pub async fn of(app: &App, visitor: &Visitor, name: &str) -> Result<Watch> {
        let caller = &visitor.caller;
        if let Some(key) = name.strip_prefix("thread:") {
            let key = SessionKey::from(key);
            return Ok(Watch::Thread { user: caller.acts_for(None)?, key });
        }
        Ok(match name {
            "runs" => Watch::Runs { of: caller.sees()? },
            "mail" => Watch::Mail { of: caller.sees()? },
            "organisation" => Watch::Organisation,
            "memory" => Watch::Memories(Box::new(memories::readable(caller)?)),
            "audit" => Watch::Audit { of: caller.audited(None)? },
            "rules" => Watch::Rules { of: caller.asked_for(app)? },
            "settings" => {
                let name = visits::whose(visitor).map(str::to_owned);
                Watch::Settings { name, operator: caller.is_operator() }
            }
            id if id.starts_with(RunId::PREFIX) => Watch::Run(caller.run(app, id).await?.id),
            id if id.starts_with("MAIL-") => {
                Watch::Letter(mail::visible(app, caller, id).await?.id)
            }
            id if id.starts_with("CTR-") => {
                let id = contracts::visible(app, caller, id).await?.contract.id;
                Watch::Contract { id, of: caller.sees()? }
            }
            _ => Watch::Nothing,
        })
    }

    pub async fn look(&self, app: &App) -> Result<Seen> {
        let (store, now) = (&app.store, clock::now());
        let runs = |(many, far)| Seen::Runs(many, far);
        Ok(match self {
            Watch::Nothing => Seen::Nothing,
            Watch::Runs { of } => runs(store.progress_of_newest(of.as_ref(), TREE_MAX).await?),
            Watch::Run(run) => runs(store.progress_of_tree(*run, TREE_MAX).await?),
            Watch::Thread { user, key } => {
                runs(store.progress_of_session(user, key, TREE_MAX).await?)
            }
            Watch::Mail { of } => Seen::List(store.mark_of_mail(of.as_ref()).await?),
            Watch::Letter(id) => Seen::List(store.mark_of_letter(id).await?),
            Watch::Contract { id, of } => {
                Seen::List(store.mark_of_contract(id, of.as_ref()).await?)
            }
            Watch::Organisation => Seen::Organisation(organisation(app)),
            Watch::Memories(plan) => Seen::List(store.mark_of_memories(plan).await?),
            Watch::Audit { of } => Seen::List(store.mark_of_audit(of.as_ref()).await?),
            Watch::Rules { of } => Seen::List(store.mark_of_rules(of.as_ref(), now).await?),
            Watch::Settings { name, operator } => {
                let mut marks = vec![store.mark_of_visits(name.as_deref(), now).await?];
                if *operator {
                    marks.push(store.mark_of_tokens_and_deliveries().await?);
                }
                Seen::Settings(organisation(app), marks)
            }
        })
    }

    /// How long a change waits for others, to be told with them.
    pub fn gather(&self) -> Duration {
        match self {
            Watch::Nothing | Watch::Runs { .. } | Watch::Run(_) | Watch::Thread { .. } => GATHER,
            _ => GATHER_LISTS,
        }
    }
}

/// Which version is in force here, what keeps the files from being so, and which tools have come.
fn organisation(app: &App) -> String {
    let (state, authority) = (app.organisation.state(), app.authority.get());
    let mut tools: Vec<&str> = authority.tools().specs().map(|it| &*it.name).collect();
    tools.sort_unstable();
    let away = authority.tools().awaited();
    format!("{} {:?} {tools:?} {away:?}", state.version.number, state.pending)
}
