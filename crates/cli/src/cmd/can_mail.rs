//! `can-mail`: whether a mail would be delivered. Nothing is sent.

use crate::Global;
use crate::outcome::Outcome;
use crate::output::{self, one_line};
use crate::server::client;

#[derive(Debug, clap::Args)]
pub struct Args {
    from: String,
    to: String,
    /// The type of the mail
    #[arg(long = "type", value_name = "TYPE", default_value = "info")]
    kind: String,
    /// The contract that it would be about
    #[arg(long, value_name = "ID")]
    contract: Option<String>,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let mut query = vec![("from", args.from), ("to", args.to), ("type", args.kind)];
    query.extend(args.contract.map(|it| ("contract", it)));
    let said = client(global)?.can_mail(&query).await?;
    if global.json {
        output::json(&said)?;
    } else if said.allowed {
        let bound = if said.needs_contract { ", under the contract that is active" } else { "" };
        output::line(format_args!("yes   it would be delivered{bound}"))?;
    } else {
        let (step, reason) = (said.step.unwrap_or_default(), said.reason.unwrap_or_default());
        output::line(format_args!("no    {} (step `{step}`)", one_line(&reason)))?;
    }
    Ok(if said.allowed { Outcome::Done } else { Outcome::Denied })
}
