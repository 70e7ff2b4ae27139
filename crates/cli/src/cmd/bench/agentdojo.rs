//! `bench agentdojo`: recorded tasks and attacks on them, played through the gate.

mod score;
mod traces;
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use chancery_server::organisation::reload::{load_texts, summary};
use chancery_server::organisation::{Loaded, load, read_files};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::json;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;

use score::{Batches, Remark, Score, score};
use traces::{Suite, Traces};
use world::{Human, World};

#[derive(Debug, Clone, clap::Args)]
pub struct AgentDojoArgs {
    /// The traces: suites with their tools, the person's tasks and the attacks
    traces: PathBuf,
    /// An organisation with one MCP server and one agent [default: the one in bench/agentdojo]
    #[arg(long, value_name = "DIR")]
    org: Option<PathBuf>,
    /// The day on which it all takes place: AgentDojo's own
    #[arg(long, default_value = "2024-05-15")]
    day: Date,
    /// Each task that nobody can do alone, and each attack that is made
    #[arg(long)]
    explain: bool,
}

/// The organisation that is meant when none is named.
const ORGANISATION: [(&str, &str); 5] = [
    ("roles.yaml", include_str!("../../../../../bench/agentdojo/roles.yaml")),
    ("policy.yaml", include_str!("../../../../../bench/agentdojo/policy.yaml")),
    ("tools.yaml", include_str!("../../../../../bench/agentdojo/tools.yaml")),
    ("rules/calendar.cedar", include_str!("../../../../../bench/agentdojo/rules/calendar.cedar")),
    ("rules/default.cedar", include_str!("../../../../../bench/agentdojo/rules/default.cedar")),
];

#[derive(Debug, Serialize)]
struct Row {
    suite: String,
    human: &'static str,
    batches: &'static str,
    #[serde(flatten)]
    score: Score,
}

pub fn run(global: &Global, args: &AgentDojoArgs) -> anyhow::Result<Outcome> {
    let name = args.traces.display();
    let text = std::fs::read_to_string(&args.traces);
    let text = text.with_context(|| format!("cannot read {name}"))?;
    let traces: Traces =
        serde_json::from_str(&text).map_err(|it| Misused(format!("{name}: {it}")))?;
    let org = organisation(args)?;
    let now = args.day.at(12, 0, 0, 0).to_zoned(TimeZone::UTC)?.timestamp();
    let mut worlds = Vec::new();
    for (name, suite) in &traces.suites {
        let world = World::new(&org, suite, now).with_context(|| format!("suite `{name}`"))?;
        worlds.push((name.as_str(), suite, world));
    }
    let (mut rows, mut remarks) = (Vec::new(), Vec::new());
    for batches in [Batches::Alone, Batches::One] {
        for human in [Human::None, Human::Careful, Human::RubberStamp] {
            let mut total = Score::default();
            for (name, suite, world) in &worlds {
                let mut said = Vec::new();
                let one = score(name, suite, world, (human, batches), &mut said)?;
                total = total.and(one);
                rows.push(row(name, human, batches, one));
                if human == Human::None && batches == Batches::Alone {
                    remarks.extend(said);
                }
            }
            rows.push(row("all", human, batches, total));
        }
    }
    let without_calls = left_out(&traces.suites);
    if global.json {
        let remarks = args.explain.then_some(remarks);
        output::json(&json!({"rows": rows, "left_out": without_calls, "remarks": remarks}))?;
        return Ok(Outcome::Done);
    }
    show(&rows)?;
    if !without_calls.is_empty() {
        output::line(format_args!("left out, without calls: {}", without_calls.join(", ")))?;
    }
    if args.explain {
        explain(&remarks)?;
    }
    Ok(Outcome::Done)
}

fn organisation(args: &AgentDojoArgs) -> anyhow::Result<Loaded> {
    let loaded = match &args.org {
        Some(dir) => {
            let (files, mistakes) = read_files(Some(dir));
            load(files, mistakes)
        }
        None => {
            let texts = ORGANISATION.map(|(name, text)| (name.to_owned(), text.to_owned()));
            load_texts(BTreeMap::from(texts))
        }
    };
    loaded.map_err(|it| anyhow::anyhow!("{}", summary(&it)))
}

/// Attacks that are not calls cannot be played.
fn left_out(suites: &BTreeMap<String, Suite>) -> Vec<String> {
    let of = |(name, suite): (&String, &Suite)| {
        let without = suite.injection_tasks.iter().filter(|it| it.1.calls.is_empty());
        without.map(|it| format!("{name}/{}", it.0)).collect::<Vec<_>>()
    };
    suites.iter().flat_map(of).collect()
}

fn row(suite: &str, human: Human, batches: Batches, score: Score) -> Row {
    let human = match human {
        Human::None => "nobody",
        Human::Careful => "careful",
        Human::RubberStamp => "rubber stamp",
    };
    let batches = match batches {
        Batches::Alone => "each call",
        Batches::One => "one batch",
    };
    Row { suite: suite.to_owned(), human, batches, score }
}

fn show(rows: &[Row]) -> anyhow::Result<()> {
    let share = |part: usize, whole: usize| match whole {
        0 => "–".to_owned(),
        _ => format!("{:.1} % ({part}/{whole})", 100.0 * part as f64 / whole as f64),
    };
    let each = |part: usize, whole: usize| format!("{:.2}", part as f64 / whole.max(1) as f64);
    let rows = rows.iter().map(|Row { suite, human, batches, score }| {
        vec![
            suite.clone(),
            (*human).to_owned(),
            (*batches).to_owned(),
            share(score.attacks_made, score.attacked),
            share(score.useful, score.tasks),
            share(score.useful_under_attack, score.attacked),
            each(score.asks, score.tasks),
            each(score.asks_under_attack, score.attacked),
        ]
    });
    let head = [
        "suite",
        "who answers",
        "batches",
        "attack success",
        "benign utility",
        "utility under attack",
        "asks a task",
        "under attack",
    ];
    output::table(&head, rows.collect())
}

fn explain(remarks: &[Remark]) -> anyhow::Result<()> {
    for Remark { suite, task, attack, reasons } in remarks {
        let what = match attack {
            Some(attack) => format!("{suite}/{task}: {attack} is made"),
            None => format!("{suite}/{task} needs a person"),
        };
        output::line(format_args!("{}", output::one_line(&what)))?;
        for reason in reasons {
            output::line(format_args!("    {}", output::one_line(reason)))?;
        }
    }
    Ok(())
}
