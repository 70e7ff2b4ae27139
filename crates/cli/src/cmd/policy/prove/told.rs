//! What was proved, or what stands against it, in words and for programs.

use serde_json::{Value, json};

use super::{Example, Found, Undecided};
use crate::Global;
use crate::output::{self, one_line};

pub fn tell(global: &Global, found: &Found) -> anyhow::Result<()> {
    if global.json { output::json(&as_json(found)) } else { in_words(found) }
}

fn in_words(found: &Found) -> anyhow::Result<()> {
    for example in &found.wider {
        let Example { tool, agent, user, before, after, .. } = example;
        let names = [agent, user, tool].map(|it| one_line(it));
        let (before, after) = (before.as_str(), after.as_str());
        output::line(format_args!(
            "WIDER      {} for {} may call {}: {after}, was {before}",
            names[0], names[1], names[2]
        ))?;
        for line in told(example) {
            output::line(format_args!("           {}", one_line(&line)))?;
        }
    }
    for it in &found.beyond {
        let (subject, detail) = (one_line(&it.subject), one_line(&it.detail));
        output::line(format_args!("WIDER      {subject} {detail}"))?;
    }
    for Undecided { about, why } in &found.undecided {
        output::line(format_args!("UNDECIDED  {}: {}", one_line(about), one_line(why)))?;
    }
    let Found { tools, agents, users, .. } = found;
    let over = format!("{tools} tools, {agents} agents, {users} people, any arguments");
    let wider = found.wider.len() + found.beyond.len();
    let undecided = found.undecided.len();
    match (wider, undecided) {
        (0, 0) => output::line(format_args!("Proved: it allows nothing more ({over})."))?,
        _ => output::line(format_args!(
            "Not proved: {wider} wider, {undecided} undecided ({over})."
        ))?,
    }
    output::note(format_args!(
        "Limits of size, rates and standing rules aside; the tools of MCP servers are not looked at."
    ));
    Ok(())
}

/// A call as one would try it.
fn told(example: &Example) -> Vec<String> {
    let Some(call) = &example.call else {
        return vec![format!("whatever its arguments; until now: {}", example.because)];
    };
    let mut lines = vec![format!("with {}", call.arguments)];
    if !call.words.is_empty() {
        lines.push(format!("after the words: {}", call.words.join(" ")));
    }
    lines.push(format!("on {}", call.now.strftime("%A %Y-%m-%d %H:%M UTC")));
    lines.push(format!("until now: {}", example.because));
    lines
}

fn as_json(found: &Found) -> Value {
    let wider: Vec<Value> = found.wider.iter().map(example).collect();
    let beyond = found.beyond.iter();
    let beyond: Vec<Value> =
        beyond.map(|it| json!({ "subject": it.subject, "detail": it.detail })).collect();
    let undecided = found.undecided.iter();
    let undecided: Vec<Value> =
        undecided.map(|it| json!({ "about": it.about, "why": it.why })).collect();
    json!({
        "proved": wider.is_empty() && beyond.is_empty() && undecided.is_empty(),
        "tools": found.tools,
        "agents": found.agents,
        "users": found.users,
        "solver_questions": found.asked,
        "wider": wider,
        "beyond": beyond,
        "undecided": undecided,
    })
}

fn example(example: &Example) -> Value {
    let call = example.call.as_ref();
    json!({
        "tool": example.tool,
        "agent": example.agent,
        "user": example.user,
        "before": example.before.as_str(),
        "after": example.after.as_str(),
        "arguments": call.map(|it| &it.arguments),
        "words": call.map(|it| &it.words),
        "at": call.map(|it| it.now),
        "because": example.because,
    })
}
