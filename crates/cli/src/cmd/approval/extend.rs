//! `extend`: more time for a question, before it expires.

use chancery_api::client::Client;
use chancery_api::permission::Extend;
use chancery_runtime::clock;
use serde_json::json;

use super::card;
use super::find::meant;
use crate::Global;
use crate::elapsed::span;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Requests, or runs: everything that they ask
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// How much longer: `30m`, `8h`, `7d` [default: as long as it had at first]
    #[arg(long, value_name = "TIME")]
    by: Option<String>,
}

pub async fn extend(global: &Global, client: &Client, args: Args) -> anyhow::Result<Outcome> {
    let extend = Extend { by: args.by };
    let mut done = Vec::new();
    for asked in meant(client, &args.ids).await? {
        let extended = client.extend(&asked.id, &extend).await?;
        if !global.json {
            let left = extended.expires_at.map(|at| span(clock::now(), at)).unwrap_or_default();
            output::line(format_args!("{} has {left} left", card::name(&extended)))?;
        }
        done.push(extended);
    }
    if global.json {
        output::json(&json!({ "items": done }))?;
    }
    Ok(Outcome::Done)
}
