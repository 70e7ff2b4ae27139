//! Which models there are: those whom the caller may address.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::openai::{Model, ModelList};
use chancery_api::run::CreateRun;
use chancery_domain::id::{AgentId, UserId};

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::check_name;
use crate::router::App;
use crate::routes::runs;

/// Whom a model id means, and on whose behalf they are talked with.
#[derive(Debug)]
pub struct Addressee {
    pub model: String,
    /// A run of theirs that has nothing to do yet.
    pub run: CreateRun,
    pub user: UserId,
    /// Of a group, its first member.
    pub agent: AgentId,
}

pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<ModelList>> {
    caller.sees()?;
    let authority = app.authority.get();
    let org = authority.org();
    let people = std::iter::once(caller.own()).chain(org.users.keys().cloned());
    let mut ids: Vec<String> = people.map(|it| format!("pa/{it}")).collect();
    ids.sort();
    ids.dedup();
    ids.extend(org.agents().map(|(id, _)| format!("agent/{id}")));
    ids.extend(org.groups.keys().map(|id| format!("group/{id}")));
    let data = ids.into_iter().filter(|it| addressee(&app, &caller, it).is_ok()).map(model);
    Ok(Json(ModelList { object: "list".to_owned(), data: data.collect() }))
}

pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Model>> {
    let found = addressee(&app, &caller, &id)?;
    Ok(Json(model(found.model)))
}

fn model(id: String) -> Model {
    Model { id, object: "model".to_owned(), created: 0, owned_by: "chancery".to_owned() }
}

/// Whom a model id means. Whether they may be addressed is for the code to say that makes runs;
/// whoever may not be is not there.
pub fn addressee(app: &App, caller: &Caller, model: &str) -> Result<Addressee> {
    caller.sees()?;
    let missing = || ApiError::NoModel(model.chars().take(300).collect());
    // A bare name is an agent's.
    let (kind, name) = model.split_once('/').unwrap_or(("agent", model));
    check_name("model", name).map_err(|_| missing())?;
    let name = Some(name.to_owned());
    let run = match kind {
        "pa" => {
            let authority = app.authority.get();
            let agent = authority.org().personal_agent().ok_or_else(missing)?.to_string();
            CreateRun { agent: Some(agent), user: name, ..CreateRun::default() }
        }
        "agent" => CreateRun { agent: name, ..CreateRun::default() },
        "group" => CreateRun { group: name, ..CreateRun::default() },
        _ => return Err(missing()),
    };
    let (user, agent) = runs::addressed(app, caller, &run).map_err(|_| missing())?;
    Ok(Addressee { model: model.to_owned(), run, user, agent })
}
