//! `watch`: one request at a time, as they come. Nothing moves under the reader's hands: what is
//! shown stays until it is decided, and keys that were meant for something else are not taken.

mod dialogue;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::{Decide, Inquire, Permission};
use chancery_runtime::clock;
use serde_json::json;

use super::decide::{answer, said, send};
use super::editor::{self, Edited};
use super::prompt::{Look, Prompt};
use super::{batch, card, edit, find, list};
use crate::Global;
use crate::outcome::{self, Outcome, Stopped};
use crate::output;
use crate::terminal::Terminal;
use dialogue::{Asking, Step};

/// How often the server is asked.
const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How long keys are dead after a request has appeared
    #[arg(long, hide = true, default_value_t = 500, value_name = "MS")]
    settle_ms: u64,
}

pub async fn watch(global: &Global, client: &Client, args: Args) -> anyhow::Result<Outcome> {
    let watched = async {
        if global.json {
            return stream(client).await;
        }
        let terminal = Terminal::of_stdout();
        let settle = Duration::from_millis(args.settle_ms);
        let (prompt, skipped) = (Prompt::new(), HashSet::new());
        Watch { client, terminal, prompt, settle, skipped, away: false }.run().await
    };
    tokio::select! {
        done = watched => done,
        _ = tokio::signal::ctrl_c() => {
            output::note(format_args!(""));
            Ok(Outcome::Interrupted)
        }
    }
}

struct Watch<'c> {
    client: &'c Client,
    terminal: Terminal,
    prompt: Prompt,
    settle: Duration,
    /// Not shown again.
    skipped: HashSet<String>,
    /// Whether the server did not answer when it was asked last.
    away: bool,
}

/// What comes after a request.
enum Then {
    Next,
    Leave,
}

impl Watch<'_> {
    async fn run(mut self) -> anyhow::Result<Outcome> {
        let mut idle = false;
        loop {
            let open = self.open().await?;
            let Some(next) = open.first() else {
                if !std::mem::replace(&mut idle, true) {
                    self.say_idle();
                }
                if self.leaves_idle().await? {
                    return Ok(Outcome::Done);
                }
                continue;
            };
            idle = false;
            self.show(next, open.len()).await?;
            if let Then::Leave = self.attend(next).await? {
                return Ok(Outcome::Done);
            }
        }
    }

    /// What is to be shown, the most urgent first.
    async fn open(&mut self) -> anyhow::Result<Vec<Permission>> {
        let listed = find::every(self.client, vec![("status", "pending".to_owned())]).await;
        let Some(mut open) = self.reached(listed)? else { return Ok(Vec::new()) };
        open.retain(|it| !self.skipped.contains(&it.id));
        open.sort_by_key(|it| std::cmp::Reverse(list::urgency(it)));
        Ok(open)
    }

    /// A server that is away for a moment is waited for.
    fn reached<T>(&mut self, answer: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
        let error = match answer {
            Ok(answer) => {
                if std::mem::take(&mut self.away) {
                    output::note(format_args!("The server answers again."));
                }
                return Ok(Some(answer));
            }
            Err(error) => error,
        };
        match error.downcast_ref::<ClientError>() {
            Some(ClientError::Unreachable { .. }) => {
                if !std::mem::replace(&mut self.away, true) {
                    output::note(format_args!("\n{error}; trying again"));
                }
                Ok(None)
            }
            _ => Err(error),
        }
    }

    fn say_idle(&self) {
        let skipped = match self.skipped.len() {
            0 => String::new(),
            many => format!(" ({many} skipped: chancery approval ls)"),
        };
        let text = format!("Nothing waits for you{skipped}. Watching; q and Enter leaves.");
        output::note(format_args!("{}", self.terminal.dim(&text)));
    }

    /// Waits until it is time to ask the server again, or for somebody to have had enough.
    async fn leaves_idle(&mut self) -> anyhow::Result<bool> {
        let began = Instant::now();
        while began.elapsed() < EVERY {
            match self.prompt.look().await? {
                Look::End => return Ok(true),
                Look::Line(line) if matches!(&*line, "q" | "quit") => return Ok(true),
                Look::Line(_) => output::note(format_args!("Nothing is asked just now.")),
                Look::Nothing => {}
            }
        }
        Ok(false)
    }

    async fn show(&self, permission: &Permission, open: usize) -> anyhow::Result<()> {
        let head = if open == 1 { "1 waits".to_owned() } else { format!("{open} wait") };
        let rule = "─".repeat(self.terminal.width.unwrap_or(72).min(100).saturating_sub(12));
        let head = self.terminal.dim(&format!("── {head} {rule}"));
        let card = card::card(permission, clock::now(), self.terminal);
        // Those who approve may not see the run that asks.
        let calls = match batch::of(self.client, &permission.run_id).await {
            Ok(Some(batch)) => batch.calls.len(),
            _ => 1,
        };
        let until = match calls {
            1 => String::new(),
            many => format!("  One call of {many}. {}\n", batch::until_decided(many)),
        };
        output::raw(format!("\n{head}\n{card}{until}").as_bytes())
    }

    /// Stays with one request until it is decided, here or elsewhere, or left.
    async fn attend(&mut self, permission: &Permission) -> anyhow::Result<Then> {
        self.settle().await?;
        let mut asking = Asking::Key;
        let mut asked_at = Instant::now();
        self.ask(asking, permission);
        loop {
            match self.prompt.look().await? {
                Look::End => {
                    self.prompt.say("\n");
                    return Ok(Then::Leave);
                }
                Look::Nothing if asked_at.elapsed() < EVERY => continue,
                Look::Nothing => {
                    asked_at = Instant::now();
                    if self.decided_elsewhere(permission).await? {
                        return Ok(Then::Next);
                    }
                    continue;
                }
                Look::Line(line) => {
                    match dialogue::step(asking, &line, list::is_high(permission)) {
                        Step::Ask(next) => asking = next,
                        Step::Again(why) => {
                            self.prompt.say(&format!("{why}\n"));
                            asking = Asking::Key;
                        }
                        Step::Quit => return Ok(Then::Leave),
                        Step::Skip => {
                            self.skipped.insert(permission.id.clone());
                            return Ok(Then::Next);
                        }
                        Step::Inquire(text) => {
                            self.inquire(permission, text).await?;
                            asking = Asking::Key;
                        }
                        Step::Why => self.explain(permission).await?,
                        Step::Edit => {
                            if let Some(decide) = self.edit(permission).await?
                                && self.decide(permission, &decide).await?
                            {
                                return Ok(Then::Next);
                            }
                        }
                        Step::Decide { decision, comment } => {
                            let decide = Decide { comment, ..answer(decision) };
                            if self.decide(permission, &decide).await? {
                                return Ok(Then::Next);
                            }
                            asking = Asking::Key;
                        }
                    }
                }
            }
            self.ask(asking, permission);
        }
    }

    /// Keys that were struck before the request could be read were meant for something else.
    async fn settle(&mut self) -> anyhow::Result<()> {
        if !self.prompt.is_terminal {
            return Ok(());
        }
        tokio::time::sleep(self.settle).await;
        if self.prompt.forget()? {
            output::note(format_args!("(ignored: typed before this could be read)"));
        }
        Ok(())
    }

    fn ask(&self, asking: Asking, permission: &Permission) {
        let question = dialogue::question(asking, permission.kind == "recover");
        self.prompt.say(&self.terminal.bold(&question));
        self.prompt.say(" ");
    }

    async fn decided_elsewhere(&mut self, permission: &Permission) -> anyhow::Result<bool> {
        let now = self.client.permission(&permission.id).await;
        let Some(now) = self.reached(now.map_err(Into::into))? else { return Ok(false) };
        if now.status == "pending" {
            return Ok(false);
        }
        let said = card::decided(&now, clock::now());
        output::line(format_args!("\n{} was {said}", card::name(&now)))?;
        Ok(true)
    }

    /// Whether the request is done with.
    async fn decide(&mut self, permission: &Permission, decide: &Decide) -> anyhow::Result<bool> {
        match send(self.client, permission, decide).await {
            Ok(after) => {
                let said = said(self.client, permission, &after).await?;
                output::line(format_args!("{said}"))?;
                Ok(true)
            }
            Err(error) => {
                let conflict = error.downcast_ref::<Stopped>().map(|it| it.outcome);
                outcome::of_error(&error, false);
                Ok(conflict == Some(Outcome::Conflict))
            }
        }
    }

    async fn inquire(&self, permission: &Permission, text: String) -> anyhow::Result<()> {
        match self.client.ask(&permission.id, &Inquire { text }).await {
            Ok(told) => output::raw(card::told(&told).as_bytes()),
            Err(error) => {
                outcome::of_error(&error.into(), false);
                Ok(())
            }
        }
    }

    async fn explain(&self, permission: &Permission) -> anyhow::Result<()> {
        match crate::cmd::why::of_permission(self.client, permission, self.terminal).await {
            Ok(text) => output::raw(text.as_bytes()),
            Err(error) => {
                outcome::of_error(&error, false);
                Ok(())
            }
        }
    }

    /// What to answer with, if the person means it and policy does not say no.
    async fn edit(&mut self, permission: &Permission) -> anyhow::Result<Option<Decide>> {
        let edited = async {
            let Edited::To(arguments) =
                editor::edited(&permission.arguments, &mut self.prompt).await?
            else {
                return Ok(None);
            };
            let shown = edit::difference(&permission.arguments, &arguments, self.terminal);
            output::raw(shown.as_bytes())?;
            let ruling = edit::check(self.client, permission, &arguments).await?;
            let meant = edit::confirmed(&mut self.prompt, permission, &ruling, None).await?;
            let arguments = Some(arguments);
            anyhow::Ok(meant.map(|comment| Decide { comment, arguments, ..answer("grant") }))
        };
        match edited.await {
            Ok(None) => {
                output::note(format_args!("Nothing was changed."));
                Ok(None)
            }
            Ok(decide) => Ok(decide),
            Err(error) => {
                outcome::of_error(&error, false);
                Ok(None)
            }
        }
    }
}

/// For programs: a line for every request that comes and for every one that is decided.
async fn stream(client: &Client) -> anyhow::Result<Outcome> {
    let mut known: Vec<String> = Vec::new();
    loop {
        let open = find::every(client, vec![("status", "pending".to_owned())]).await?;
        for gone in known.extract_if(.., |id| open.iter().all(|it| it.id != *id)) {
            let permission = client.permission(&gone).await?;
            let line = json!({ "event": "decided", "permission": permission });
            output::line(format_args!("{line}"))?;
        }
        for permission in open {
            if !known.contains(&permission.id) {
                known.push(permission.id.clone());
                let line = json!({ "event": "asked", "permission": permission });
                output::line(format_args!("{line}"))?;
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}
