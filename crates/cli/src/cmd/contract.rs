//! `contract`: work that was handed down, from the board's sentence to the verdict.

use chancery_api::mail::{Contract, ContractStory, NewContract, Transition};
use clap::Subcommand;
use serde_json::json;

use crate::Global;
use crate::elapsed;
use crate::fields::Fields;
use crate::outcome::Outcome;
use crate::output::{self, one_line, short};
use crate::server::client;
use crate::terminal::Terminal;

/// As much of a title as a line has room for.
const SHOWN: usize = 60;
/// How far down a story is told.
const DEPTH_MAX: usize = 8;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The newest first
    Ls {
        /// pending, accepted, in_progress, review, passed, failed, escalated or cancelled
        #[arg(long)]
        state: Option<String>,
        /// Given by it or to it
        #[arg(long)]
        agent: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Only what was issued since: `30m`, `8h`, `7d` or a time
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
    },
    /// One with its steps, its mail, and the contracts beneath it
    Show { id: String },
    /// Issues one for the board
    New {
        #[arg(long)]
        to: String,
        #[arg(long)]
        title: String,
        #[arg(long, default_value = "")]
        body: String,
        #[arg(long)]
        priority: Option<String>,
        /// A time (RFC 3339) or a date
        #[arg(long)]
        deadline: Option<String>,
        /// Once for each
        #[arg(long = "deliverable")]
        deliverables: Vec<String>,
        /// Once for each
        #[arg(long = "accept-if")]
        acceptance_criteria: Vec<String>,
    },
    /// Moves one on
    Step {
        id: String,
        to: String,
        #[arg(long)]
        note: Option<String>,
    },
    /// Cancels one
    Close {
        id: String,
        #[arg(long)]
        note: Option<String>,
    },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    match command {
        Command::Ls { state, agent, limit, since } => {
            let since = since.as_deref().map(elapsed::since).transpose()?;
            let mut query = vec![("limit", limit.to_string())];
            query.extend(state.map(|it| ("state", it)));
            query.extend(agent.map(|it| ("agent", it)));
            let mut page = client.contracts(&query).await?;
            page.items.retain(|it| since.is_none_or(|since| it.created_at >= since));
            if global.json {
                output::json(&page)?;
            } else {
                let head = ["STATE", "FROM", "TO", "TITLE", "ID"];
                output::table_of_ids(&head, page.items.iter().map(row).collect(), 4)?;
            }
        }
        Command::Show { id } => {
            let story = client.contract(&id).await?;
            if global.json {
                output::json(&story)?;
            } else {
                let mut text = String::new();
                // The contracts beneath, with theirs, in the order that they were issued in.
                let mut next = vec![(story, 0)];
                while let Some((story, depth)) = next.pop() {
                    text.push_str(&told(&story, depth));
                    if depth < DEPTH_MAX {
                        for child in &story.children {
                            next.push((client.contract(&child.id).await?, depth + 1));
                        }
                    }
                }
                output::line(format_args!("{}", text.trim_end()))?;
            }
        }
        Command::New { to, title, body, priority, deadline, deliverables, acceptance_criteria } => {
            let contract = NewContract {
                to,
                title,
                body,
                priority,
                deadline,
                deliverables: json!(deliverables),
                acceptance_criteria: json!(acceptance_criteria),
                ..NewContract::default()
            };
            let issued = client.issue_contract(&contract).await?;
            print(global, &issued, "is issued")?;
        }
        Command::Step { id, to, note } => {
            let stepped = client.step_contract(&id, &Transition { to, note }).await?;
            print(global, &stepped, &format!("is {}", stepped.state))?;
        }
        Command::Close { id, note } => {
            let step = Transition { to: "cancelled".to_owned(), note };
            let closed = client.step_contract(&id, &step).await?;
            print(global, &closed, "is cancelled")?;
        }
    }
    Ok(Outcome::Done)
}

fn row(it: &Contract) -> Vec<String> {
    vec![
        it.state.clone(),
        one_line(&it.from),
        one_line(&it.to),
        one_line(&short(&it.title, SHOWN)),
        it.id.clone(),
    ]
}

fn print(global: &Global, contract: &Contract, word: &str) -> anyhow::Result<()> {
    if global.json {
        return output::json(contract);
    }
    let title = one_line(&short(&contract.title, SHOWN));
    output::line(format_args!("{} {word}: {title}", contract.id))
}

fn told(story: &ContractStory, depth: usize) -> String {
    let it = &story.contract;
    let mut fields = Fields::new(Terminal::of_stdout(), depth * 4);
    fields.field("contract", &it.id);
    fields.field("title", &it.title);
    let (from, to) = (one_line(&it.from), one_line(&it.to));
    fields.line(&format!("{from} to {to}, {}, failed {} times", it.state, it.failures));
    if let Some(branch) = &it.assigned_branch {
        fields.field("branch", branch);
    }
    if !it.workspace_scope.is_null() {
        fields.field("scope", &it.workspace_scope.to_string());
    }
    for step in &story.history {
        let at = step.at.strftime("%Y-%m-%d %H:%M:%S");
        fields.line(&format!("{at}  {} by {}", step.to, one_line(&step.by)));
    }
    for mail in &story.mails {
        let (from, to) = (one_line(&mail.from), one_line(&mail.to));
        let subject = one_line(&short(&mail.subject, SHOWN));
        let at = mail.created_at.strftime("%Y-%m-%d %H:%M:%S");
        fields.line(&format!("{at}  {} {from} > {to}: {subject}", mail.kind));
    }
    fields.line("");
    fields.into_text()
}
