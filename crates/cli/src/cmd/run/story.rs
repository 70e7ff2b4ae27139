//! A run as a story: what was remembered, who spoke, what was called, what was refused, and the
//! runs beneath in their place.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use chancery_api::client::Client;
use chancery_api::run::{Event, Run};
use serde_json::Value;

use crate::output::{self, one_line, short, visible};

/// Deeper than this nobody hands a goal on.
const DEPTH_MAX: usize = 32;

pub async fn print(client: &Client, run: &Run) -> anyhow::Result<()> {
    output::line(format_args!("{}", title(run)))?;
    for line in told(client, run, 0).await? {
        output::line(format_args!("{line}"))?;
    }
    Ok(())
}

fn title(run: &Run) -> String {
    let who = run.group.as_deref().unwrap_or(&run.agent);
    let waits = run.waiting_for.as_ref().map(|it| format!(" for {it}")).unwrap_or_default();
    let input = visible(&short(&run.input, 48));
    format!("{} {} \"{input}\"  {}{waits}", run.id, visible(who), run.status)
}

type Told<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Vec<String>>> + Send + 'a>>;

/// The lines of a run, with those of the runs beneath it, indented.
fn told<'a>(client: &'a Client, run: &'a Run, depth: usize) -> Told<'a> {
    Box::pin(async move {
        let indent = "  ".repeat(depth + 1);
        let mut lines = Vec::new();
        let mut scene = Scene::default();
        for event in all(client, &run.id).await? {
            lines.extend(scene.line(&event).map(|line| format!("{indent}{line}")));
            let child = event.data["child"].as_str().filter(|_| event.kind == "child.spawned");
            if let Some(child) = child.filter(|_| depth < DEPTH_MAX) {
                let child = client.run(child).await?;
                lines.push(format!("{indent}  {}", title(&child)));
                lines.extend(told(client, &child, depth + 2).await?);
            }
        }
        Ok(lines)
    })
}

async fn all(client: &Client, run: &str) -> anyhow::Result<Vec<Event>> {
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = client.events(run, after).await?;
        after = page.items.last().map_or(after, |it| it.seq);
        let more = page.next_cursor.is_some();
        events.extend(page.items);
        if !more {
            return Ok(events);
        }
    }
}

/// Who speaks, and what they called.
#[derive(Default)]
struct Scene {
    speaker: Option<String>,
    tools: BTreeMap<String, String>,
}

impl Scene {
    fn line(&mut self, event: &Event) -> Option<String> {
        let data = &event.data;
        let text = |field: &str| visible(&short(&said(&data[field]), 60));
        let line = match &*event.kind {
            "run.created" if data["forked"].is_object() => {
                let (run, at) = (&data["forked"]["run"], &data["forked"]["at"]);
                format!("forked from {} at {at}", one_line(&said(run)))
            }
            "memory.recalled" => recalled(&data["memories"]),
            "turn.began" => {
                self.speaker = Some(one_line(&said(&data["member"]["agent"])));
                return None;
            }
            "batch.proposed" => self.batch(&data["calls"]),
            "tool.refused" => format!("{}  REFUSED  {}", self.tool(data), why(data)),
            "tool.finished" if data["result"]["is_error"] == true => {
                format!("{}  failed  {}", self.tool(data), why(data))
            }
            "permission.updated" => format!("{}  {}", self.tool(data), text("decision")),
            "permission.extended" => {
                let by = one_line(&said(&data["by"]["id"]));
                format!("{}  more time until {}, by {by}", self.tool(data), text("expires_at"))
            }
            "child.spawned" => match data["chosen"].as_str() {
                Some(why) => format!("{} ← chosen: {}", text("group"), visible(&short(why, 60))),
                None => text("group"),
            },
            "child.ended" => format!("{} is back", text("child")),
            "turn.ended" => format!("\"{}\"", text("text")),
            "permission.inquired" => {
                format!("{} asks: \"{}\"", one_line(&said(&data["by"]["id"])), text("text"))
            }
            "permission.explained" => format!("says: \"{}\"", text("text")),
            "message.user" => format!("{}: \"{}\"", said(&data["by"]["id"]), text("text")),
            "run.completed" => format!("→ \"{}\"", text("output")),
            "run.failed" => format!("failed: {}", text("error")),
            "run.cancelled" | "run.paused" | "run.unpaused" | "wrapup.requested" => {
                event.kind.clone()
            }
            "wait.began" => format!("waits for the signal `{}`", text("correlation_key")),
            _ => return None,
        };
        Some(match &self.speaker {
            Some(speaker) => format!("{speaker:<16} {line}"),
            None => line,
        })
    }

    /// Names the calls, and which of them wait for somebody.
    fn batch(&mut self, calls: &Value) -> String {
        let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut named = Vec::with_capacity(calls.len());
        for it in calls {
            let tool = one_line(&said(&it["call"]["tool"]));
            self.tools.insert(said(&it["call"]["id"]), tool.clone());
            let asks = it["answer"]["request"].is_object();
            named.push(if asks { format!("{tool} (asks)") } else { tool });
        }
        named.join(", ")
    }

    fn tool(&self, data: &Value) -> String {
        self.tools.get(&said(&data["call"])).cloned().unwrap_or_default()
    }
}

fn recalled(memories: &Value) -> String {
    let memories = memories.as_array().map(Vec::as_slice).unwrap_or_default();
    let wished = memories.iter().filter(|it| it["tier"] == "preferences").count();
    format!("memory recall: preferences {wished}, others {}", memories.len() - wished)
}

fn why(data: &Value) -> String {
    visible(&short(&said(&data["result"]["text"]), 90))
}

fn said(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
