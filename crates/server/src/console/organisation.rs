//! The organisation: who there is, who may call what, who may write to whom, and why. Every cell
//! is answered by the function that rules on calls.

mod chart;
pub mod draft;
pub mod history;

use std::collections::BTreeMap;

use askama::Template;
use axum::Json;
use axum::extract::{Query, State};
use axum::response::Response;
use chancery_api::org::{Group, Org};
use chancery_domain::event::Call;
use chancery_domain::id::{AgentId, CallId};
use chancery_domain::mail::{BOARD, Draft, Known, route, triples};
use chancery_domain::org;
use chancery_domain::policy::{Fitness, Manner, Question, Ruling, looked_at};
use chancery_domain::ways::{self, Asker, Way};
use chancery_runtime::authority::{Authority, Case, Given};
use chancery_runtime::clock;
use serde::Deserialize;
use serde_json::json;

use super::finding::{Finding, findings};
use super::html::line;
use super::page::{Frame, Room, draw, escaped};
use super::visitor::Visitor;
use super::why::{Line, Through, lines, through};
use super::words::fill;
use crate::error::Result;
use crate::organisation::impact::BACK;
use crate::router::App;
use crate::{routes, view};

use chart::Chart;

/// Wider matrices are for the command line.
const AGENTS_MAX: usize = 40;

#[derive(Template)]
#[template(path = "org.html")]
struct OrgPage {
    frame: Frame,
    org: Org,
    /// What keeps the files on disk from being in force, then what there is to warn of.
    findings: Vec<Finding>,
    chart: Chart,
    agents: Vec<String>,
    tools: Vec<ToolRow>,
    mail: Vec<MailRow>,
    parties: Vec<String>,
    groups: Vec<Group>,
    cell: Option<Cell>,
    cut_off: bool,
    people: Vec<String>,
}

#[derive(Debug)]
struct ToolRow {
    name: String,
    plain: String,
    risk: String,
    cells: Vec<(&'static str, String)>,
}

#[derive(Debug)]
struct MailRow {
    from: String,
    cells: Vec<(&'static str, String)>,
}

/// What was asked about one cell.
#[derive(Debug)]
struct Cell {
    title: String,
    ruling: String,
    layers: Vec<Line>,
    through: Vec<Through>,
    /// Of mail: each type, and whether it needs an active contract.
    types: Vec<(String, bool)>,
    is_mail: bool,
    /// How many were sent, and how many blocked.
    counts: String,
}

#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    #[serde(default)]
    agent: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(asked): Query<Asked>,
) -> Result<Response> {
    let w = visitor.words();
    let caller = visitor.caller.clone();
    let Json(org) = routes::org::show(State(app.clone()), caller.clone()).await?;
    let Json(groups) = routes::org::groups(State(app.clone()), caller).await?;
    let authority = app.authority.get();
    let every = authority.org();
    let active: Vec<String> =
        every.agents().filter(|(_, it)| it.active).map(|(id, _)| id.to_string()).collect();
    let cut_off = active.len() > AGENTS_MAX;
    let agents: Vec<String> = active.into_iter().take(AGENTS_MAX).collect();
    let open = triples(every);
    let mut parties = vec![BOARD.to_owned()];
    parties.extend(agents.iter().cloned());
    let cell = cell(&app, &authority, &visitor, &asked, &open).await?;
    draw(&OrgPage {
        frame: Frame::of(&visitor, Room::Organisation, w.organisation).watching("organisation"),
        chart: Chart::of(every),
        tools: tools(&authority, &agents),
        mail: mail(&open, &parties),
        people: every.users.keys().map(ToString::to_string).collect(),
        groups: groups.items,
        agents,
        findings: findings(org.pending_mistakes.iter().chain(&org.mistakes), w),
        parties,
        cell,
        cut_off,
        org,
    })
}

fn tools(authority: &Authority, agents: &[String]) -> Vec<ToolRow> {
    let mut names: Vec<(&str, &str)> =
        authority.tools().specs().map(|it| (&*it.name, it.risk.as_str())).collect();
    names.sort_unstable();
    let row = |(name, risk): (&str, &str)| ToolRow {
        name: line(name),
        plain: name.to_owned(),
        risk: risk.to_owned(),
        cells: agents
            .iter()
            .map(|agent| {
                let href = format!("/org?agent={}&tool={}#cell", escaped(agent), escaped(name));
                (sign(ruling(authority, agent, name)), href)
            })
            .collect(),
    };
    names.into_iter().map(row).collect()
}

fn ruling(authority: &Authority, agent: &str, tool: &str) -> Ruling {
    let question = Question {
        agent,
        user: "",
        tool,
        delegated: None,
        fitness: &Fitness::Fits,
        arguments: &[],
        limits: &[],
    };
    authority.policy().rule(question).outcome()
}

fn sign(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Allow => "yes",
        Ruling::RequireApproval => "ask",
        Ruling::RequireHuman => "human",
        Ruling::Deny => "no",
    }
}

type Open = BTreeMap<(String, String, String), bool>;

fn mail(open: &Open, parties: &[String]) -> Vec<MailRow> {
    let types = |from: &String, to: &String| -> Vec<bool> {
        let between = open.iter().filter(|((a, b, _), _)| a == from && b == to);
        between.map(|(_, needs)| *needs).collect()
    };
    let cell = |from: &String, to: &String| {
        let sign = match types(from, to).as_slice() {
            _ if from == to => "self",
            [] => "no",
            some if some.iter().all(|needs| *needs) => "ask",
            _ => "yes",
        };
        (sign, format!("/org?from={}&to={}#cell", escaped(from), escaped(to)))
    };
    let row = |from: &String| MailRow {
        from: from.clone(),
        cells: parties.iter().map(|to| cell(from, to)).collect(),
    };
    parties.iter().map(row).collect()
}

async fn cell(
    app: &App,
    authority: &Authority,
    visitor: &Visitor,
    asked: &Asked,
    open: &Open,
) -> Result<Option<Cell>> {
    if !asked.from.is_empty() && !asked.to.is_empty() {
        let between = open.iter().filter(|((a, b, _), _)| *a == asked.from && *b == asked.to);
        let types: Vec<(String, bool)> =
            between.map(|((_, _, kind), needs)| (kind.clone(), *needs)).collect();
        let ruling = if types.is_empty() { "deny" } else { "allow" }.to_owned();
        let title = format!("{} → {}", line(&asked.from), line(&asked.to));
        let layers = Vec::new();
        let ways = match types.is_empty() {
            true => blocked(authority, visitor.name(), &asked.from, &asked.to),
            false => Vec::new(),
        };
        let through = shown_ways(ways, visitor);
        let counts = counts(app, visitor, &asked.from, &asked.to).await?;
        return Ok(Some(Cell { title, ruling, layers, through, types, is_mail: true, counts }));
    }
    if asked.agent.is_empty() || asked.tool.is_empty() {
        return Ok(None);
    }
    let agent = AgentId::from(&*asked.agent);
    let call = Call { id: CallId::from("call"), tool: asked.tool.clone(), arguments: json!({}) };
    let warrant = app.store.warrant(&agent, None).await?;
    let (judgment, layers) = authority.explain(Case {
        agent: &asked.agent,
        user: visitor.name(),
        delegated: None,
        call: &call,
        given: Given::Aside,
        task: None,
        now: clock::now(),
        warrant: &warrant,
        record: None,
        limits: &[],
    });
    let who = Asker {
        policy: authority.policy(),
        agent: &asked.agent,
        user: visitor.name(),
        delegated: None,
        givers: &[],
    };
    let ways = ways::of_call(&who, &asked.tool, &call.arguments, &judgment.reasons);
    let silent = layers.into_iter().filter(|it| it.rule.is_empty());
    let said: Vec<_> = judgment.reasons.into_iter().chain(silent).collect();
    let looked = looked_at(&said, Manner { arguments_aside: true, rates_aside: false });
    Ok(Some(Cell {
        title: format!("{} · {}", line(&asked.agent), line(&asked.tool)),
        ruling: judgment.ruling.as_str().to_owned(),
        layers: lines(&view::looked(looked), visitor.words()),
        through: shown_ways(ways, visitor),
        types: Vec::new(),
        is_mail: false,
        counts: String::new(),
    }))
}

/// What the two have written, as far as the visitor knows of it.
async fn counts(app: &App, visitor: &Visitor, from: &str, to: &str) -> Result<String> {
    let user = visitor.caller.sees()?;
    let since = clock::now() - BACK;
    let found = app.store.mail_counts(from, to, user.as_ref(), since).await?;
    let (sent, blocked) = ((found.delivered + found.rejected).to_string(), found.rejected);
    Ok(fill(visitor.words().mail_counts, &[("n", &sent), ("b", &blocked.to_string())]))
}

/// What stands between two who write nothing to one another: of the type that comes furthest.
fn blocked(authority: &Authority, user: &str, from: &str, to: &str) -> Vec<Way> {
    let org = authority.org();
    let rejected = |kind: &String| {
        let rejection = route(org, from, &Draft::bare(to, kind), &Known::default()).err()?;
        Some((rejection.step, kind.clone()))
    };
    let Some((step, kind)) = org.mail.keys().filter_map(rejected).max_by_key(|it| it.0) else {
        return Vec::new();
    };
    let who = Asker { policy: authority.policy(), agent: from, user, delegated: None, givers: &[] };
    ways::of_mail(&who, to, &kind, step)
}

fn shown_ways(ways: Vec<Way>, visitor: &Visitor) -> Vec<Through> {
    through(&view::ways(ways), visitor.words(), visitor.caller.is_operator())
}

/// A role's agents, for the chart.
fn agents_of(every: &org::Org, role: &org::Role) -> Vec<String> {
    let of = every.agents().filter(|(_, it)| it.active && it.role == role.id);
    of.map(|(id, _)| id.to_string()).collect()
}
