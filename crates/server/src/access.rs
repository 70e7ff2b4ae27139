//! Who is calling: extractors that are proofs. A handler that takes a [`Caller`] cannot be
//! reached without a valid token, one that takes an [`Operator`] not without an operator's.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use chancery_domain::event::{Actor, Event};
use chancery_domain::id::{AgentId, RunId, TokenId, UserId};
use chancery_domain::mail::BOARD;
use chancery_domain::memory::Party;
use chancery_domain::policy::Ruling;
use chancery_store::permission::PermissionRow;
use chancery_store::read::RunRow;
use chancery_store::token::{Token, TokenKind};
use chancery_store::visit::Visit;

use crate::error::{ApiError, Result};
use crate::extract::check_asked;
use crate::router::App;
use crate::routes::runs::ORG;
use crate::tokens;

/// Someone with a valid token.
#[derive(Debug, Clone)]
pub struct Caller {
    token: Token,
    /// Whether an issuer has said that they answer what others' agents ask.
    approver: bool,
}

/// Someone who may act for any user.
#[derive(Debug, Clone)]
pub struct Operator(pub Caller);

/// An agent that calls from outside, with a token of its own.
#[derive(Debug, Clone)]
pub struct Outsider {
    pub agent: AgentId,
    pub caller: Caller,
}

/// Whose mail somebody sends, and for whom.
#[derive(Debug, Clone)]
pub struct Writer {
    /// An agent, or the board.
    pub name: String,
    pub user: UserId,
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Caller> {
        let secret = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|it| it.to_str().ok())
            .and_then(|it| it.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, secret)| secret.trim())
            .filter(|secret| !secret.is_empty() && secret.len() <= tokens::SECRET_MAX)
            .ok_or(ApiError::Unauthenticated)?;
        let digest = tokens::digest(secret);
        let token = app.turnstile.pass(parts, digest, app.store.token_by_digest(digest)).await?;
        Ok(Caller { token, approver: false })
    }
}

impl FromRequestParts<App> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Operator> {
        let caller = Caller::from_request_parts(parts, app).await?;
        if caller.token.operator {
            Ok(Operator(caller))
        } else {
            Err(ApiError::Forbidden("this is for operators".to_owned()))
        }
    }
}

impl FromRequestParts<App> for Outsider {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Outsider> {
        let caller = Caller::from_request_parts(parts, app).await?;
        match caller.actor() {
            Actor::Agent(agent) => Ok(Outsider { agent, caller }),
            Actor::User(_) | Actor::Service(_) | Actor::System => Err(ApiError::Forbidden(
                "this is for agents: it takes a token of kind `agent`, which acts as one"
                    .to_owned(),
            )),
        }
    }
}

impl Outsider {
    /// Whose its runs are. No person is behind them, whatever the agent is called.
    pub fn user(&self) -> UserId {
        self.caller.own()
    }
}

impl Caller {
    /// Somebody who is visiting the console. That a person approves is the organisation's word,
    /// or the word of the issuer that vouches for them; a token of theirs does not say it.
    pub(crate) fn visiting(visit: Visit) -> Caller {
        Caller { approver: visit.vouched && visit.token.approve, token: visit.token }
    }

    /// What the caller has shown.
    pub fn token(&self) -> TokenId {
        self.token.id
    }

    pub fn name(&self) -> &str {
        &self.token.name
    }

    pub fn actor(&self) -> Actor {
        let name = self.token.name.clone();
        match self.token.kind {
            TokenKind::Human => Actor::User(UserId(name)),
            TokenKind::Service => Actor::Service(name),
            TokenKind::Agent => Actor::Agent(AgentId(name)),
        }
    }

    /// What tells one caller's idempotency keys from another's.
    pub fn scope(&self) -> String {
        format!("{}:{}", self.token.kind.as_str(), self.token.name)
    }

    /// Whether the caller may answer what was asked about a call. That only a person answers
    /// where a person must be asked is not decided here, but by the batch itself.
    pub async fn check_decides(&self, app: &App, row: &PermissionRow) -> Result<()> {
        let refused = |detail: &str| Err(ApiError::Forbidden(detail.to_owned()));
        self.check_decides_at_all()?;
        if !app.permissions.own_requests && self.is_behind(app, row).await? {
            return refused("somebody else must answer what you had a hand in asking");
        }
        match self.token.kind {
            _ if self.own() != row.user || row.ruling != Ruling::RequireHuman => Ok(()),
            // That it is no person is for the batch to say.
            TokenKind::Service => Ok(()),
            _ if self.token.operator || self.is_approver(app) => Ok(()),
            // Where nobody is named for it, whoever asks is the only one who can.
            _ if !app.has_approver() => Ok(()),
            _ => refused("an approver must answer this"),
        }
    }

    /// Whether there is anything that the caller may answer. What is asked does not matter to
    /// that, so it is said before it is looked for.
    pub fn check_decides_at_all(&self) -> Result<()> {
        let refused = |detail: &str| Err(ApiError::Forbidden(detail.to_owned()));
        match self.token.kind {
            TokenKind::Agent => refused("an agent decides nothing"),
            TokenKind::Service if !self.token.approve => {
                refused("this token does not hold the permission `approve`")
            }
            TokenKind::Human | TokenKind::Service => Ok(()),
        }
    }

    /// Whether the caller's word is behind what a run asks: it acts for them, or they started it,
    /// spoke into it or signalled it, or one above it, or what it goes on from.
    async fn is_behind(&self, app: &App, row: &PermissionRow) -> Result<bool> {
        let (own, me) = (self.own(), self.actor());
        if own == row.user {
            return Ok(true);
        }
        let mut next = vec![(row.run, u64::MAX)];
        while let Some((run, until)) = next.pop() {
            let log = app.store.events(run, 0, u32::MAX).await?;
            for it in log.into_iter().take_while(|it| it.seq <= until) {
                let by = match &it.event {
                    Event::Created(created) => {
                        next.extend(created.parent.map(|it| (it, u64::MAX)));
                        next.extend(created.forked.as_ref().map(|it| (it.run, it.at)));
                        &created.by
                    }
                    Event::UserSpoke(it) => &it.by,
                    Event::Signalled(it) => &it.by,
                    // To ask about this very question is to look at it, and no more.
                    Event::PermissionInquired(asked) if it.at < row.request.asked_at => &asked.by,
                    _ => continue,
                };
                if *by == me {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whose requests the caller knows of; `None`: everyone's, for operators, for people who
    /// approve, and for services that do.
    pub fn asked_for(&self, app: &App) -> Result<Option<UserId>> {
        if self.token.kind == TokenKind::Agent {
            return Err(ApiError::Forbidden("an agent decides nothing".to_owned()));
        }
        if self.is_approver(app) || self.answers_for_runs() { Ok(None) } else { self.sees() }
    }

    /// A service that may answer what runs ask.
    fn answers_for_runs(&self) -> bool {
        self.token.kind == TokenKind::Service && self.token.approve
    }

    fn is_approver(&self, app: &App) -> bool {
        let named = || app.authority.get().org().is_approver(&self.own());
        self.token.kind == TokenKind::Human && (self.approver || named())
    }

    /// Who owns what the caller starts. A service or an agent is no person, whatever it is called.
    pub fn own(&self) -> UserId {
        match self.token.kind {
            TokenKind::Service => UserId(format!("service:{}", self.token.name)),
            TokenKind::Agent => UserId(format!("agent:{}", self.token.name)),
            TokenKind::Human => UserId(self.token.name.clone()),
        }
    }

    /// Whose runs the caller sees; `None`: everyone's, for operators. Agents see none, and who
    /// may answer what a run asks does not see the run for that.
    pub fn sees(&self) -> Result<Option<UserId>> {
        match self.token.kind {
            TokenKind::Agent => {
                Err(ApiError::Forbidden("an agent's token is not for runs".to_owned()))
            }
            TokenKind::Human if self.token.operator => Ok(None),
            TokenKind::Human | TokenKind::Service => Ok(Some(self.own())),
        }
    }

    /// Whose entries of the audit the caller reads, given whom it asked for: people what concerns
    /// them, operators all of it.
    pub fn audited(&self, asked: Option<UserId>) -> Result<Option<UserId>> {
        let forbidden = |detail: &str| Err(ApiError::Forbidden(detail.to_owned()));
        match self.token.kind {
            TokenKind::Human if self.token.operator => Ok(asked),
            TokenKind::Human if asked.as_ref().is_none_or(|it| *it == self.own()) => {
                Ok(Some(self.own()))
            }
            TokenKind::Human => forbidden("only an operator reads what concerns another user"),
            TokenKind::Service | TokenKind::Agent => forbidden("the audit is for people"),
        }
    }

    /// On whose behalf the caller acts, given whom it named.
    pub fn acts_for(&self, named: Option<&str>) -> Result<UserId> {
        self.sees()?;
        let own = self.own();
        match named {
            None => Ok(own),
            Some(user) if self.token.operator || user == own.as_str() => Ok(UserId::from(user)),
            Some(_) => {
                Err(ApiError::Forbidden("only an operator acts for another user".to_owned()))
            }
        }
    }

    /// Whose memories the caller reads and writes, given whom it named.
    pub fn remembers(&self, named: Option<&str>) -> Result<Party> {
        if self.token.kind == TokenKind::Agent {
            return Err(ApiError::Forbidden("an agent remembers through its tools".to_owned()));
        }
        named.map_or(Ok(()), |it| check_asked("user", it))?;
        Ok(Party::of_person(ORG, self.acts_for(named)?))
    }

    /// Whether it is a person, and not a program or an agent.
    pub fn is_person(&self) -> bool {
        self.token.kind == TokenKind::Human
    }

    pub fn is_operator(&self) -> bool {
        self.token.operator
    }

    /// For whom a ruling on an agent's call is asked. An agent asks about itself alone.
    pub fn asks_for(&self, named: Option<&str>, agent: &AgentId) -> Result<UserId> {
        match self.token.kind {
            TokenKind::Agent if self.token.name != agent.as_str() => {
                Err(ApiError::Forbidden("an agent asks about its own calls".to_owned()))
            }
            // An agent's token says for which agent, not for which person.
            TokenKind::Agent => Ok(named.map_or_else(|| self.own(), UserId::from)),
            TokenKind::Service if named.is_some() => Ok(UserId::from(named.unwrap_or_default())),
            _ => self.acts_for(named),
        }
    }

    /// In whose name the caller writes mail: an agent in its own, a person in the board's.
    pub fn writes(&self) -> Result<Writer> {
        let name = match self.token.kind {
            TokenKind::Agent => self.token.name.clone(),
            TokenKind::Human => BOARD.to_owned(),
            TokenKind::Service => {
                return Err(ApiError::Forbidden("a service writes no mail".to_owned()));
            }
        };
        Ok(Writer { name, user: self.own() })
    }

    /// Who would write, for somebody who only asks: people about anyone, agents about themselves.
    pub fn asks_about_mail_of(&self, from: &str) -> Result<Writer> {
        if self.token.kind == TokenKind::Agent && self.token.name != from {
            return Err(ApiError::Forbidden("an agent asks about its own mail".to_owned()));
        }
        Ok(Writer { name: from.to_owned(), user: self.own() })
    }

    /// Whose mail of a box the caller reads; `None`: all of it. An agent reads its own box alone,
    /// a person what was written on their behalf, an operator everything.
    pub fn reads_mail_of(&self, agent: &str) -> Result<Option<UserId>> {
        match self.token.kind {
            TokenKind::Agent if self.token.name == agent => Ok(None),
            TokenKind::Agent => {
                Err(ApiError::Forbidden("an agent reads its own mail alone".to_owned()))
            }
            TokenKind::Human if self.token.operator => Ok(None),
            TokenKind::Human => Ok(Some(self.own())),
            TokenKind::Service => Err(ApiError::Forbidden("a service has no mail".to_owned())),
        }
    }

    /// Whether something that two have between them, on a person's behalf, is the caller's to see.
    pub fn is_party(&self, from: &str, to: &str, user: &UserId) -> bool {
        match self.token.kind {
            TokenKind::Agent => [from, to].contains(&&*self.token.name),
            TokenKind::Human => self.token.operator || *user == self.own(),
            TokenKind::Service => false,
        }
    }

    /// Whether the caller's looking at a mail is its recipient's.
    pub fn is_recipient(&self, to: &str) -> bool {
        match self.token.kind {
            TokenKind::Agent => self.token.name == to,
            TokenKind::Human => to == BOARD,
            TokenKind::Service => false,
        }
    }

    /// Whose contracts and rejections the caller sees, given whom it asked for: an agent its own.
    pub fn sees_dealings_of(
        &self,
        asked: Option<String>,
    ) -> Result<(Option<String>, Option<UserId>)> {
        match self.token.kind {
            TokenKind::Agent => {
                let own = self.token.name.clone();
                if asked.is_some_and(|it| it != own) {
                    return Err(ApiError::Forbidden("an agent sees its own alone".to_owned()));
                }
                Ok((Some(own), None))
            }
            _ => Ok((asked, self.sees()?)),
        }
    }

    /// A run that the caller may see, by its id or by a beginning of it that only it has.
    /// What belongs to someone else is not there.
    pub async fn run(&self, app: &App, given: &str) -> Result<RunRow> {
        run_of(app, given, self.sees()?).await
    }

    /// A run that the caller may signal. It need not be one that it may see.
    pub async fn run_to_signal(&self, app: &App, given: &str) -> Result<RunRow> {
        let of = if self.answers_for_runs() { None } else { self.sees()? };
        run_of(app, given, of).await
    }
}

/// A run of a user, or of anyone.
async fn run_of(app: &App, given: &str, sees: Option<UserId>) -> Result<RunRow> {
    let missing = || ApiError::NotFound { what: "run", id: given.chars().take(64).collect() };
    let id = match given.parse::<RunId>() {
        Ok(id) => id,
        Err(_) => {
            let (from, to) = prefix_range(given).ok_or_else(missing)?;
            match app.store.runs_between(from, to, sees.as_ref()).await?.as_slice() {
                [only] => *only,
                _ => return Err(missing()),
            }
        }
    };
    let row = app.store.run(id).await?.ok_or_else(missing)?;
    if sees.is_some_and(|user| user != row.user) { Err(missing()) } else { Ok(row) }
}

/// The first and the last id that begin as given.
fn prefix_range(given: &str) -> Option<(RunId, RunId)> {
    let digits = given.strip_prefix(RunId::PREFIX)?;
    let usable = (6..32).contains(&digits.len())
        && digits.chars().all(|it| matches!(it, '0'..='9' | 'a'..='f'));
    if !usable {
        return None;
    }
    let padded = |fill: char| {
        let rest: String = std::iter::repeat_n(fill, 32 - digits.len()).collect();
        format!("{}{digits}{rest}", RunId::PREFIX).parse().ok()
    };
    Some((padded('0')?, padded('f')?))
}
