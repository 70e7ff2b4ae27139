//! `policy diff`: past calls and past mail once more, under files that are not in force yet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use chancery_api::client::{Client, ClientError};
use chancery_api::org::{MailChange, MailImpact, NewOrg};
use chancery_api::run::Run;
use chancery_domain::policy::{Bounds, Fitness, Policy, Question, Ruling};
use chancery_server::organisation::Loaded;
use chancery_server::organisation::reload::texts;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::Global;
use crate::cmd::approval::proposed;
use crate::cmd::org::side::{self, Side};
use crate::elapsed;
use crate::outcome::Outcome;
use crate::output::{self, one_line};
use crate::server::client;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory with the changed organisation
    dir: PathBuf,
    /// Calls of runs that were asked for since, and mail that was sent: `8h`, `7d` or a time
    #[arg(long, value_name = "WHEN", default_value = "30d")]
    since: String,
}

/// Calls that are ruled on alike, and how many there were.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Change {
    agent: String,
    user: String,
    tool: String,
    before: &'static str,
    after: &'static str,
    /// What decides under the changed files.
    because: String,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let since = elapsed::since(&args.since)?;
    let before = compiled(side::of(global, Some(Side::Running)).await?);
    let draft = side::of(global, Some(Side::Dir(args.dir))).await?;
    let files = NewOrg { files: texts(&draft.files) };
    let after = compiled(draft);
    let client = client(global)?;
    let mut changes: BTreeMap<Change, u64> = BTreeMap::new();
    let mut calls = 0;
    for run in runs(&client, since).await? {
        for batch in proposed(&client, &run.id).await? {
            for call in &batch.calls {
                calls += 1;
                if let Some(change) = changed(&before, &after, &run, &call.call.tool) {
                    *changes.entry(change).or_default() += 1;
                }
            }
        }
    }
    let mail = impact_on_mail(&client, &files, since).await?;
    if global.json {
        let items = changes.iter().map(|(change, times)| {
            let mut item = json!(change);
            item["times"] = json!(times);
            item
        });
        let items: Vec<_> = items.collect();
        output::json(&json!({ "calls": calls, "changes": items, "mail": mail }))?;
        return Ok(Outcome::Done);
    }
    let rows = changes.iter().map(|(it, times)| {
        let ruled = format!("{} -> {}", it.before, it.after);
        let names = [&it.agent, &it.user, &it.tool].map(|it| one_line(it));
        let more = [ruled, times.to_string(), one_line(&it.because)];
        names.into_iter().chain(more).collect()
    });
    if !changes.is_empty() {
        let head = ["AGENT", "USER", "TOOL", "RULED", "TIMES", "BECAUSE"];
        output::table(&head, rows.collect())?;
    }
    let times: u64 = changes.values().sum();
    output::line(format_args!("{times} of {calls} calls would be ruled on otherwise"))?;
    print_mail(mail.as_ref())?;
    output::note(format_args!(
        "Calls are looked at without their arguments: rules over those are left aside."
    ));
    Ok(Outcome::Done)
}

/// Asked of the server, which has the mail; an older one has it, but not this way in.
async fn impact_on_mail(
    client: &Client,
    files: &NewOrg,
    since: Timestamp,
) -> anyhow::Result<Option<MailImpact>> {
    match client.org_impact(files, &since.to_string()).await {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::Problem(it)) if it.detail == "there is nothing here" => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn print_mail(found: Option<&MailImpact>) -> anyhow::Result<()> {
    let Some(found) = found else {
        output::note(format_args!("This server cannot try the files on past mail."));
        return Ok(());
    };
    let row = |it: &MailChange| {
        let names = [&it.from, &it.to, &it.kind].map(|it| one_line(it));
        let ruled = format!("{} -> {}", it.before, it.after);
        let more = [ruled, it.times.to_string(), one_line(&it.because)];
        names.into_iter().chain(more).collect()
    };
    if !found.changes.is_empty() {
        let head = ["FROM", "TO", "TYPE", "RULED", "TIMES", "BECAUSE"];
        output::table(&head, found.changes.iter().map(row).collect())?;
    }
    let MailImpact { mails, passed, blocked, .. } = found;
    output::line(format_args!(
        "{} of {mails} mails would go otherwise: {passed} blocked ones delivered, {blocked} \
         delivered ones blocked",
        passed + blocked
    ))?;
    if found.cut_off {
        output::note(format_args!("There were more mails: the newest were looked through."));
    }
    Ok(())
}

fn compiled(loaded: Loaded) -> Policy {
    let facts: Vec<_> = loaded.facts.iter().cloned().collect();
    Policy::new(Arc::new(loaded.org), facts)
}

fn changed(before: &Policy, after: &Policy, run: &Run, tool: &str) -> Option<Change> {
    // A tool that neither knows was an MCP server's or never there: nothing can be said of it.
    before.facts(tool).or(after.facts(tool))?;
    let (old, _) = ruled(before, run, tool);
    let (new, because) = ruled(after, run, tool);
    (old != new).then(|| Change {
        agent: run.agent.clone(),
        user: run.user.clone(),
        tool: tool.to_owned(),
        before: old.as_str(),
        after: new.as_str(),
        because,
    })
}

fn ruled(policy: &Policy, run: &Run, tool: &str) -> (Ruling, String) {
    let given = run.delegated_permissions.as_ref().map(|it| {
        policy.delegation(&Bounds {
            allowed_tools: it.allowed_tools.clone(),
            denied_tools: it.denied_tools.clone().unwrap_or_default(),
        })
    });
    let (fitness, nothing): (_, &[_]) = (&Fitness::Fits, &[]);
    let verdict = policy.rule(Question {
        agent: &run.agent,
        user: &run.user,
        tool,
        delegated: given.as_ref(),
        fitness,
        arguments: nothing,
        limits: nothing,
    });
    let because = verdict.reasons().into_iter().next().map(|it| it.detail).unwrap_or_default();
    (verdict.outcome(), because)
}

/// The newest come first.
async fn runs(client: &Client, since: Timestamp) -> Result<Vec<Run>, ClientError> {
    let (mut runs, mut query) = (Vec::new(), vec![("limit", "200".to_owned())]);
    loop {
        let page = client.runs(&query).await?;
        let recent = page.items.into_iter().take_while(|it| it.created_at >= since);
        let before = runs.len();
        runs.extend(recent);
        let (Some(cursor), true) = (page.next_cursor, runs.len() - before == 200) else {
            return Ok(runs);
        };
        query.truncate(1);
        query.push(("cursor", cursor));
    }
}
