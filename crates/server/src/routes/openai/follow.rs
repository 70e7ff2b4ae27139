//! A run, followed by its log until it ends or waits for longer than is waited here. Whoever
//! stops following takes nothing from the run.

use std::collections::VecDeque;
use std::time::Duration;

use chancery_domain::event::{Event, Recorded, Usage};
use chancery_domain::id::{AgentId, RunId};
use chancery_store::Changed;
use chancery_store::read::RunRow;
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::pause::{self, Pause};
use crate::router::App;
use crate::stream::{self, Hold};

/// Waking is a hint; this often a follower looks without one.
const LOOK: Duration = Duration::from_secs(1);
const PAGE: u32 = 256;

/// What is heard of a run.
#[derive(Debug)]
pub enum Piece {
    Words(String),
    /// Nothing comes after it.
    End(End),
}

#[derive(Debug)]
pub enum End {
    Completed,
    Failed(String),
    Cancelled,
    /// It waits for somebody; the words before have said so.
    Waiting(Box<Pause>),
    /// Words of our own, and no run behind them.
    Said,
}

#[derive(Debug)]
pub struct Follow {
    app: App,
    run: RunId,
    by: Hold,
    after: u64,
    changes: broadcast::Receiver<Changed>,
    /// Since when it waits for somebody.
    waits_since: Option<Instant>,
    /// Who speaks, in a group.
    floor: Option<AgentId>,
    heard: VecDeque<Piece>,
    has_spoken: bool,
    pub usage: Usage,
}

impl Follow {
    /// Follows a run from a place in its log, for as long as the caller is one.
    pub fn new(app: &App, caller: &Caller, run: RunId, after: u64) -> Follow {
        Follow {
            app: app.clone(),
            run,
            by: Hold::new(app, caller.token()),
            after,
            changes: app.store.bell().changes(),
            waits_since: None,
            floor: None,
            heard: VecDeque::new(),
            has_spoken: false,
            usage: Usage::default(),
        }
    }

    pub async fn next(&mut self) -> Result<Piece> {
        loop {
            if let Some(piece) = self.heard.pop_front() {
                return Ok(piece);
            }
            if self.app.stop.is_cancelled() {
                return Err(ApiError::NoAnswer {
                    code: "interrupted",
                    detail: format!("the server stops; `{}` goes on when it is back", self.run),
                });
            }
            if self.by.is_over().await {
                return Err(ApiError::Unauthenticated);
            }
            match self.look().await {
                Ok(None) => {}
                Ok(Some(patience)) => self.wait(patience).await,
                // The store is away: it may be back when we look again.
                Err(ApiError::Unavailable(_)) => tokio::time::sleep(LOOK).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads on. Answers how long to wait where there is nothing to be heard.
    async fn look(&mut self) -> Result<Option<Duration>> {
        let found = self.app.store.events(self.run, self.after, PAGE).await?;
        if !found.is_empty() {
            let is_all = found.len() < PAGE as usize;
            // What ended may have been resumed in what follows.
            let end = found.into_iter().map(|it| self.hear(it)).last().flatten();
            if let Some(end) = end.filter(|_| is_all) {
                self.heard.push_back(Piece::End(end));
            }
            return Ok(None);
        }
        let row = self.app.store.run(self.run).await?;
        let row = row.ok_or_else(|| ApiError::Internal(format!("`{}` is gone", self.run)))?;
        if row.seq > self.after {
            return Ok(None);
        }
        if let Some(end) = ended(&row) {
            if let Some(output) = row.output.filter(|_| !self.has_spoken) {
                self.say(output);
            }
            self.heard.push_back(Piece::End(end));
            return Ok(None);
        }
        self.look_at_wait(&row).await
    }

    async fn look_at_wait(&mut self, row: &RunRow) -> Result<Option<Duration>> {
        let Some(pause) = pause::of(&self.app, row).await? else {
            self.waits_since = None;
            return Ok(Some(LOOK));
        };
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let left = self.app.pause_hold.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Ok(Some(left.min(LOOK)));
        }
        self.say(pause.text(&self.app.public_url));
        self.heard.push_back(Piece::End(End::Waiting(Box::new(pause))));
        Ok(None)
    }

    /// Takes one event in, and answers whether it ends the run.
    fn hear(&mut self, recorded: Recorded) -> Option<End> {
        self.after = recorded.seq;
        self.usage += recorded.event.usage();
        match recorded.event {
            Event::TurnBegan(it) => self.floor = Some(it.member.agent),
            Event::BatchProposed(it) => self.say(it.text),
            Event::TurnEnded(it) if it.text.is_empty() => {}
            Event::TurnEnded(it) => match &self.floor {
                Some(member) => self.say(format!("{member}: {}", it.text)),
                None => self.say(it.text),
            },
            Event::Completed(it) => {
                self.say(it.output);
                return Some(End::Completed);
            }
            Event::Failed(it) => return Some(End::Failed(it.error)),
            Event::Cancelled(_) => return Some(End::Cancelled),
            _ => {}
        }
        None
    }

    fn say(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let text = if self.has_spoken { format!("\n\n{text}") } else { text };
        self.has_spoken = true;
        self.heard.push_back(Piece::Words(text));
    }

    async fn wait(&mut self, patience: Duration) {
        tokio::select! {
            () = stream::changed(&mut self.changes, self.run, &self.app.stop) => {}
            () = tokio::time::sleep(patience) => {}
        }
    }
}

/// How a run has ended, as its row says.
pub fn ended(row: &RunRow) -> Option<End> {
    match &*row.status {
        "completed" => Some(End::Completed),
        "failed" => Some(End::Failed(row.error.clone().unwrap_or_default())),
        "cancelled" => Some(End::Cancelled),
        _ => None,
    }
}
