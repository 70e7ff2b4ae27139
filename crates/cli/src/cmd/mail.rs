//! `mail`: what agents and the board write to one another, and what was not delivered.

use chancery_api::mail::{Mail, MailRejection, NewMail};
use clap::Subcommand;

use crate::Global;
use crate::elapsed;
use crate::fields::Fields;
use crate::outcome::Outcome;
use crate::output::{self, one_line, short};
use crate::server::client;
use crate::terminal::Terminal;

/// As much of a subject or a reason as a line has room for.
const SHOWN: usize = 60;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// An inbox: what is critical first, then the oldest first
    Ls {
        /// Whose [default: the board's]
        #[arg(long, default_value = "board")]
        agent: String,
        /// What it has sent, the newest first
        #[arg(long)]
        sent: bool,
        /// Only what was not read
        #[arg(long, conflicts_with = "sent")]
        unread: bool,
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Only what was sent since: `30m`, `8h`, `7d` or a time
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
    },
    /// One, by its id
    Show { id: String },
    /// Writes to an agent that reports to the board
    Send {
        /// In whose name: people write as the board
        #[arg(long = "as", value_name = "NAME", default_value = "board",
            value_parser = ["board"])]
        of: String,
        #[arg(long)]
        to: String,
        #[arg(long = "type", default_value = "info")]
        kind: String,
        #[arg(long)]
        subject: String,
        #[arg(long, default_value = "")]
        body: String,
        /// low, medium, high or critical
        #[arg(long)]
        priority: Option<String>,
        #[arg(long)]
        reply_to: Option<String>,
    },
    /// What was not delivered, the newest first, with the step and the reason
    Rejections {
        #[arg(long)]
        agent: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Only what was tried since: `30m`, `8h`, `7d` or a time
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
    },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    match command {
        Command::Ls { agent, sent, unread, limit, since } => {
            let since = since.as_deref().map(elapsed::since).transpose()?;
            let mut query = vec![("limit", limit.to_string())];
            if unread {
                query.push(("unread", "true".to_owned()));
            }
            let which = if sent { "sent" } else { "inbox" };
            let mut page = client.mailbox(&agent, which, &query).await?;
            page.items.retain(|it| since.is_none_or(|since| it.created_at >= since));
            if global.json {
                output::json(&page)?;
            } else {
                let head = ["PRIORITY", "FROM", "TO", "TYPE", "STATUS", "SUBJECT", "ID"];
                output::table_of_ids(&head, page.items.iter().map(row).collect(), 6)?;
            }
        }
        Command::Show { id } => print(global, &client.mail(&id).await?)?,
        Command::Send { of: _, to, kind, subject, body, priority, reply_to } => {
            let mail =
                NewMail { to, kind, subject, body, priority, reply_to, ..NewMail::default() };
            let sent = client.send_mail(&mail).await?;
            if global.json {
                output::json(&sent)?;
            } else {
                output::line(format_args!("{} is delivered to {}", sent.id, one_line(&sent.to)))?;
            }
        }
        Command::Rejections { agent, limit, since } => {
            let since = since.as_deref().map(elapsed::since).transpose()?;
            let mut query = vec![("limit", limit.to_string())];
            query.extend(agent.map(|it| ("agent", it)));
            let mut page = client.mail_rejections(&query).await?;
            page.items.retain(|it| since.is_none_or(|since| it.attempted_at >= since));
            if global.json {
                output::json(&page)?;
            } else {
                let head = ["WHEN", "FROM", "TO", "TYPE", "STEP", "REASON", "WHY"];
                output::table_of_ids(&head, page.items.iter().map(rejection).collect(), 6)?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn row(it: &Mail) -> Vec<String> {
    vec![
        it.priority.clone(),
        one_line(&it.from),
        one_line(&it.to),
        one_line(&it.kind),
        it.status.clone(),
        one_line(&short(&it.subject, SHOWN)),
        it.id.clone(),
    ]
}

fn rejection(it: &MailRejection) -> Vec<String> {
    vec![
        it.attempted_at.strftime("%Y-%m-%d %H:%M").to_string(),
        one_line(&it.from_agent),
        one_line(&it.to_agent),
        one_line(&it.mail_type),
        it.step.clone(),
        one_line(&short(&it.reason, SHOWN)),
        // What `chancery why` is asked for.
        it.audit_id.clone().unwrap_or_else(|| it.id.clone()),
    ]
}

fn print(global: &Global, mail: &Mail) -> anyhow::Result<()> {
    if global.json {
        return output::json(mail);
    }
    let mut fields = Fields::new(Terminal::of_stdout(), 0);
    fields.field("id", &mail.id);
    for (label, text) in [
        ("from", &mail.from),
        ("to", &mail.to),
        ("type", &mail.kind),
        ("priority", &mail.priority),
        ("status", &mail.status),
        ("subject", &mail.subject),
    ] {
        fields.field(label, text);
    }
    fields.field("sent", &mail.created_at.to_string());
    if let Some(contract) = &mail.contract_ref {
        fields.field("contract", contract);
    }
    if let Some(run) = &mail.answered_by_run_id {
        fields.field("answered by", run);
    }
    for it in &mail.attachments {
        fields.field("attached", &it.path);
    }
    fields.field("body", &mail.body);
    output::line(format_args!("{}", fields.into_text().trim_end()))
}
