//! `webhook`: who is told what happens, whether they hear it, and what was told.

use clap::Subcommand;

use crate::Global;
use crate::outcome::{Outcome, Stopped};
use crate::output::{self, one_line};
use crate::server::client;
use crate::window::Window;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Everybody who is told things: webhooks, letters, a collector of traces
    Ls,
    /// Tells one something now; exit code 1 if it is not taken
    Test { name: String },
    /// What was told to whom, the newest first, and what came of it
    Log {
        #[command(flatten)]
        window: Window,
    },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    match command {
        Command::Ls => {
            let page = client.subscribers().await?;
            if global.json {
                output::json(&page)?;
            } else {
                let rows = page.items.into_iter().map(|it| vec![it.name, it.kind]);
                output::table(&["NAME", "KIND"], rows.collect())?;
            }
        }
        Command::Test { name } => {
            let tried = client.try_subscriber(&name).await?;
            if let Some(error) = &tried.error {
                let said = format!("`{}` was not told: {}", tried.subscriber, one_line(error));
                let next = "chancery webhook log".to_owned();
                return Err(Stopped::new(Outcome::Failed, "not_taken", said).next(next).into());
            }
            if global.json {
                output::json(&tried)?;
            } else {
                let name = one_line(&tried.subscriber);
                output::line(format_args!("{name} was told (delivery {})", tried.delivery))?;
            }
        }
        Command::Log { window } => {
            let mut page = client.deliveries(&[("limit", "200".to_owned())]).await?;
            window.cut(&mut page.items, |it| it.at)?;
            if global.json {
                output::json(&page)?;
            } else {
                let rows = page.items.into_iter().map(|it| {
                    let outcome = it.error.map_or_else(|| "taken".to_owned(), |it| one_line(&it));
                    vec![
                        it.at.to_string(),
                        it.subscriber,
                        it.topic,
                        it.attempt.to_string(),
                        outcome,
                    ]
                });
                output::table(&["AT", "TO", "TYPE", "ATTEMPT", "OUTCOME"], rows.collect())?;
            }
        }
    }
    Ok(Outcome::Done)
}
