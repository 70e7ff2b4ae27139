//! `can-i`: what would happen. Nothing runs.

use chancery_api::client::Client;
use chancery_api::permission::{Authorize, Authorized};
use serde_json::{Map, Value};

use crate::Global;
use crate::cmd::approval::whole_run_id;
use crate::layers;
use crate::outcome::{Misused, Outcome};
use crate::output::{self, one_line};
use crate::server::client;

#[derive(Debug, clap::Args)]
pub struct Args {
    agent: String,
    tool: String,
    /// Arguments: KEY=TEXT, or KEY:=JSON for what is no text [default: they are left aside]
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pairs: Vec<String>,
    /// The arguments as JSON
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// On whose behalf
    #[arg(long = "as", value_name = "PERSON")]
    user: Option<String>,
    /// Under what this run was given
    #[arg(long)]
    run: Option<String>,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let arguments = match &args.args {
        Some(json) => Some(object(json)?),
        None if args.pairs.is_empty() => None,
        None => Some(pairs(&args.pairs)?),
    };
    let client = client(global)?;
    let Args { agent, tool, user, run, .. } = args;
    let question = Authorize { agent, tool, arguments, run, user };
    let ruled = asked(&client, question).await?;
    if global.json {
        output::json(&ruled)?;
    } else {
        output::line(format_args!("{:<5} {}", layers::word(&ruled.ruling), because(&ruled)))?;
    }
    Ok(outcome(&ruled.ruling))
}

/// Asks the server, with the whole id of the run.
pub async fn asked(client: &Client, mut question: Authorize) -> anyhow::Result<Authorized> {
    if let Some(run) = &question.run {
        question.run = Some(whole_run_id(client, run).await?);
    }
    Ok(client.authorize(&question).await?)
}

pub fn outcome(ruling: &str) -> Outcome {
    match layers::word(ruling) {
        "yes" => Outcome::Done,
        "ask" => Outcome::Waits,
        _ => Outcome::Denied,
    }
}

/// One sentence.
fn because(ruled: &Authorized) -> String {
    match ruled.reasons.first() {
        None => one_line(&ruled.ruling),
        Some(it) if ruled.ruling == "allow" => one_line(&it.detail),
        Some(it) => one_line(&layers::sentence(it)),
    }
}

/// Arguments are an object.
pub fn object(json: &str) -> Result<Value, Misused> {
    let value: Value =
        serde_json::from_str(json).map_err(|it| Misused(format!("`--args` is not JSON: {it}")))?;
    if value.is_object() {
        return Ok(value);
    }
    Err(Misused("`--args` is a JSON object, as in `{\"env\": \"staging\"}`".to_owned()))
}

fn pairs(pairs: &[String]) -> Result<Value, Misused> {
    let mut arguments = Map::new();
    for pair in pairs {
        let wrong = |why: &str| Misused(format!("`{pair}` is not KEY=TEXT or KEY:=JSON{why}"));
        let (key, text) = pair.split_once('=').ok_or_else(|| wrong(""))?;
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let value = serde_json::from_str(text).map_err(|it| wrong(&format!(": {it}")))?;
                (key, value)
            }
            None => (key, Value::from(text)),
        };
        if key.is_empty() {
            return Err(wrong(""));
        }
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(Misused(format!("`{key}` is said twice")));
        }
    }
    Ok(Value::Object(arguments))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        pairs(&words).map_err(|it| it.to_string())
    }

    #[test]
    fn pairs_are_texts_unless_they_say_otherwise() {
        let said = given(&["env=production", "percent:=10", "note=a=b", "empty="]).unwrap();
        let meant = json!({"env": "production", "percent": 10, "note": "a=b", "empty": ""});
        assert_eq!(said, meant);
        for wrong in [&["env"][..], &["=x"], &[":=1"], &["a:=x"], &["a=1", "a=2"]] {
            given(wrong).unwrap_err();
        }
    }
}
