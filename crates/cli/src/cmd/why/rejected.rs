//! Why a mail was not delivered, from what is kept of it where the audit has no entry.

use chancery_api::client::Client;
use chancery_api::mail::RejectionStory;

use crate::Global;
use crate::layers;
use crate::outcome::Outcome;
use crate::output::{self, one_line};
use crate::terminal::Terminal;

pub async fn print(
    global: &Global,
    client: &Client,
    id: &str,
    terminal: Terminal,
) -> anyhow::Result<Outcome> {
    let story = client.mail_rejection(id).await?;
    if global.json {
        output::json(&story)?;
    } else {
        output::raw(text(&story, terminal).as_bytes())?;
    }
    Ok(Outcome::Done)
}

fn text(story: &RejectionStory, terminal: Terminal) -> String {
    let it = &story.rejection;
    let [from, to, kind] = [&it.from_agent, &it.to_agent, &it.mail_type].map(|it| one_line(it));
    let run = it.run_id.as_deref().map(|it| format!("  {it}")).unwrap_or_default();
    let head = format!("{kind}  {from} to {to}  {}{run}", it.attempted_at);
    let mut text = format!("{}  {head}\n", terminal.bold("REJECTED"));
    text.push_str(&format!("at step `{}`: {}\n", it.step, one_line(&it.reason)));
    text.push_str(&layers::looked(&story.layers, terminal));
    text.push_str(&layers::now(story.now.as_ref(), Some("deny"), terminal));
    text.push_str(&layers::ways(&story.ways, None));
    text
}
