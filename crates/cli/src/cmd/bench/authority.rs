//! `bench authority`: what a ruling costs, alone and through the door.

mod arguments;

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use chancery_domain::id::AgentId;
use chancery_domain::org::{Agent, Org, Role};
use chancery_domain::policy::{Bounds, Delegation, Fitness, Policy, Question, Risk, ToolFacts};
use chancery_server::config::Config;
use serde::Serialize;
use serde_json::json;

use crate::Global;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
pub struct AuthorityArgs {
    /// How long each measurement takes
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How many ask at once through the door
    #[arg(long, default_value_t = 64)]
    clients: usize,
}

#[derive(Debug, Serialize)]
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    /// Against the figure that it is to be compared with, of the same run.
    ratio: Option<f64>,
}

/// Questions are asked in an order that caches do not know beforehand.
const QUESTIONS: usize = 4096;

pub async fn run(global: &Global, args: &AuthorityArgs) -> anyhow::Result<Outcome> {
    let time = Duration::from_secs_f64(args.seconds);
    let mut figures = Vec::new();
    let mut note = |what: String, value: f64, unit, ratio: Option<f64>| -> anyhow::Result<()> {
        if !global.json {
            let beside = ratio.map(|it| format!("  {it:.2} x")).unwrap_or_default();
            output::line(format_args!("{what:<58} {value:>10.1} {unit}{beside}"))?;
        }
        figures.push(Figure { what, value, unit, ratio });
        Ok(())
    };
    for (roles, tools) in [(9, 40), (10_000, 1_000)] {
        let world = World::new(roles, tools);
        let raw = world.lookups(time);
        note(format!("{roles} x {tools}: two look-ups by name"), raw, "ns", None)?;
        let plain = world.rulings(None, time);
        note(format!("{roles} x {tools}: a ruling"), plain, "ns", Some(plain / raw))?;
        for depth in [8, 64] {
            let through = world.rulings(Some(&world.chain(depth)), time);
            let what = format!("{roles} x {tools}: through a delegation {depth} deep");
            note(what, through, "ns", Some(through / plain))?;
        }
        let words = world.explanations(time);
        note(format!("{roles} x {tools}: with its reasons in words"), words, "ns", None)?;
    }
    let rules = arguments::RULES.len();
    let spoken = arguments::spoken(time)?;
    note(format!("{rules} rules over a call's arguments"), spoken, "ns", None)?;
    let dir = std::env::temp_dir().join(format!("chancery-bench-{}", std::process::id()));
    let door = door(&dir, args.clients, time).await;
    std::fs::remove_dir_all(&dir)?;
    let (rate, p50) = door?;
    note(format!("authorize, {} clients, audited on SQLite", args.clients), rate, "/s", None)?;
    note("authorize, one client, until the answer is durable".to_owned(), p50, "us", None)?;
    if global.json {
        output::json(&figures)?;
    }
    Ok(Outcome::Done)
}

/// An organisation in which every role lists a third of the tools, some by globs.
struct World {
    policy: Policy,
    questions: Vec<(String, String)>,
    agents: HashMap<String, usize>,
    tools: HashMap<String, usize>,
}

impl World {
    fn new(roles: usize, tools: usize) -> World {
        let tool = |n: usize| format!("kind{}_tool_{n}", n % 10);
        let role = |n: usize| {
            let mut role = Role::unlimited(&format!("role_{n}"));
            let named =
                (0..tools).filter(|it| (it + n).is_multiple_of(4)).map(|it| tool(it).into());
            role.tools = Some(named.chain([format!("kind{}_*", n % 10).into()]).collect());
            role.deny_tools = vec![tool(n % tools).into()];
            role
        };
        let agents = (0..roles).map(|n| (AgentId(format!("agent_{n}")), format!("role_{n}")));
        let agents = agents.map(|(id, role)| (id, Agent::of(&role)));
        let org = Org::new((0..roles).map(role), agents).unwrap_or_default();
        let facts = (0..tools).map(|n| ToolFacts {
            name: tool(n),
            risk: [Risk::Low, Risk::Medium, Risk::High][n % 3],
            capabilities: vec![format!("capability_{}", n % 7)],
            place: None,
        });
        let policy = Policy::new(Arc::new(org), facts);
        // A small generator of our own: the order only has to look like none.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let questions =
            (0..QUESTIONS).map(|_| (format!("agent_{}", next(roles)), tool(next(tools)))).collect();
        World {
            policy,
            questions,
            agents: (0..roles).map(|n| (format!("agent_{n}"), n)).collect(),
            tools: (0..tools).map(|n| (tool(n), n)).collect(),
        }
    }

    /// What a run is left with after so many hands, each of which kept a little back.
    fn chain(&self, depth: usize) -> Delegation {
        let known: Vec<&str> = self.policy.tools().map(|it| &*it.name).collect();
        let mut bounds = Bounds::default();
        for hand in 0..depth {
            let kept = known[hand % known.len()].to_owned();
            let given = Bounds { allowed_tools: None, denied_tools: vec![kept] };
            bounds = bounds.meet(&given, known.iter().copied());
        }
        self.policy.delegation(&bounds)
    }

    fn lookups(&self, time: Duration) -> f64 {
        self.measure(time, |agent, tool| {
            black_box((self.agents.get(agent), self.tools.get(tool)));
        })
    }

    fn rulings(&self, delegated: Option<&Delegation>, time: Duration) -> f64 {
        self.measure(time, |agent, tool| {
            black_box(self.policy.rule(question(agent, tool, delegated)));
        })
    }

    fn explanations(&self, time: Duration) -> f64 {
        self.measure(time, |agent, tool| {
            black_box(self.policy.rule(question(agent, tool, None)).reasons());
        })
    }

    /// Nanoseconds for one.
    fn measure(&self, time: Duration, ask: impl Fn(&str, &str)) -> f64 {
        let (began, mut asked) = (Instant::now(), 0u64);
        while began.elapsed() < time {
            for (agent, tool) in &self.questions {
                ask(black_box(agent), black_box(tool));
            }
            asked += self.questions.len() as u64;
        }
        began.elapsed().as_secs_f64() * 1e9 / asked as f64
    }
}

fn question<'q>(agent: &'q str, tool: &'q str, delegated: Option<&'q Delegation>) -> Question<'q> {
    let (arguments, limits): (&[_], &[_]) = (&[], &[]);
    Question { agent, user: "lin", tool, delegated, fitness: &Fitness::Fits, arguments, limits }
}

/// Rulings a second through HTTP, each durable in the audit before it is answered, and the time
/// that one takes alone, in microseconds.
async fn door(dir: &Path, clients: usize, time: Duration) -> anyhow::Result<(f64, f64)> {
    let listen = "127.0.0.1:0".parse().context("an address")?;
    let mut config = Config { listen, data: dir.to_owned(), ..Config::default() };
    // All of them come with one token, and oftener than anybody should.
    config.limits.requests_per_minute = 60_000_000;
    let server = chancery_server::start(&config, []).await?;
    let (url, token) = (format!("{}/api/authorize", server.url()), server.local_token.clone());
    let client = reqwest::Client::new();
    ask(&client, &url, &token).await?;
    let mut alone = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        ask(&client, &url, &token).await?;
        alone.push(began.elapsed());
    }
    alone.sort_unstable();
    let until = Instant::now() + time;
    let began = Instant::now();
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..clients {
        let (client, url, token) = (reqwest::Client::new(), url.clone(), token.clone());
        asking.spawn(async move {
            let mut answered = 0u64;
            while Instant::now() < until {
                ask(&client, &url, &token).await?;
                answered += 1;
            }
            Ok::<u64, anyhow::Error>(answered)
        });
    }
    let mut answered = 0;
    while let Some(done) = asking.join_next().await {
        answered += done??;
    }
    let rate = answered as f64 / began.elapsed().as_secs_f64();
    server.stop().await;
    Ok((rate, alone[alone.len() / 2].as_secs_f64() * 1e6))
}

async fn ask(client: &reqwest::Client, url: &str, token: &str) -> anyhow::Result<()> {
    let arguments = json!({"path": "a.txt", "content": "x"});
    let body = json!({"agent": "pa", "tool": "write_file", "arguments": arguments});
    let asked = client.post(url).bearer_auth(token).json(&body).send().await?;
    asked.error_for_status()?.bytes().await?;
    Ok(())
}
