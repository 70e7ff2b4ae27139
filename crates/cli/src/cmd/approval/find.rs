//! What an id on the command line stands for: one request, or those of a run.

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::Permission;

use crate::outcome::{Misused, Outcome, Stopped};

const PREFIX: &str = "perm_";
const DIGITS: usize = 32;
/// Shorter beginnings say only in which hours it was asked.
const DIGITS_MIN: usize = 6;

/// What was named.
#[derive(Debug)]
pub enum Found {
    One(Box<Permission>),
    /// A run, by its whole id.
    Run(String),
}

pub async fn named(client: &Client, given: &str) -> anyhow::Result<Found> {
    if given.starts_with("run_") {
        return Ok(Found::Run(run(client, given).await?));
    }
    let Some(digits) = given.strip_prefix(PREFIX) else {
        let said = format!("`{given}` is neither a request (`perm_…`) nor a run (`run_…`)");
        return Err(Misused(said).into());
    };
    if digits.len() >= DIGITS || digits.len() < DIGITS_MIN || !is_hex(digits) {
        // Whatever it is, the server says what is wrong with it.
        return Ok(Found::One(Box::new(client.permission(given).await?)));
    }
    // They are listed in the order of their ids.
    let cursor = format!("{PREFIX}{digits:0<DIGITS$}");
    let query = [("cursor", cursor), ("limit", "2".to_owned())];
    let mut begin = client.permissions(&query).await?.items;
    begin.retain(|it| it.id.starts_with(given));
    match begin.len() {
        0 => {
            let said = format!("there is no request that begins with `{given}`");
            Err(Stopped::new(Outcome::Failed, "not_found", said).into())
        }
        1 => Ok(Found::One(Box::new(begin.remove(0)))),
        _ => Err(Misused(format!("more than one request begins with `{given}`")).into()),
    }
}

/// The whole id of a run. Those who approve may know of a run's requests and not of the run.
pub async fn run(client: &Client, given: &str) -> anyhow::Result<String> {
    let whole = given.strip_prefix("run_").is_some_and(|it| it.len() == DIGITS && is_hex(it));
    match client.run(given).await {
        Ok(run) => Ok(run.id),
        Err(ClientError::Problem(problem)) if problem.status == 404 && whole => {
            if of_run(client, given, None).await?.is_empty() {
                return Err(ClientError::Problem(problem).into());
            }
            Ok(given.to_owned())
        }
        Err(error) => Err(error.into()),
    }
}

/// What a run has asked, by its whole id.
pub async fn of_run(
    client: &Client,
    run: &str,
    status: Option<&str>,
) -> anyhow::Result<Vec<Permission>> {
    let mut query = vec![("run", run.to_owned())];
    query.extend(status.map(|it| ("status", it.to_owned())));
    every(client, query).await
}

/// Every page of a list.
pub async fn every(
    client: &Client,
    mut query: Vec<(&str, String)>,
) -> anyhow::Result<Vec<Permission>> {
    let mut all = Vec::new();
    query.push(("limit", "200".to_owned()));
    let plain = query.len();
    loop {
        let page = client.permissions(&query).await?;
        all.extend(page.items);
        let Some(cursor) = page.next_cursor else { return Ok(all) };
        query.truncate(plain);
        query.push(("cursor", cursor));
    }
}

/// The open requests that a command is about, each once, in the order in which they were named.
/// One that is named itself is there whatever its state: the server says what that means.
pub async fn meant(client: &Client, given: &[String]) -> anyhow::Result<Vec<Permission>> {
    let mut meant: Vec<Permission> = Vec::new();
    for id in given {
        let found = match named(client, id).await? {
            Found::One(permission) => vec![*permission],
            Found::Run(run) => {
                let open = of_run(client, &run, Some("pending")).await?;
                if open.is_empty() {
                    let said = format!("{run} asks nothing just now");
                    let stopped = Stopped::new(Outcome::Conflict, "nothing_open", said);
                    return Err(stopped.next(format!("chancery run show {run}")).into());
                }
                open
            }
        };
        for permission in found {
            if meant.iter().all(|it| it.id != permission.id) {
                meant.push(permission);
            }
        }
    }
    Ok(meant)
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}
