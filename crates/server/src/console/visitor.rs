//! Somebody who is signed in: a proof, as [`Caller`] is one. A visit stands on a token and is
//! known by a cookie that no script can read.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chancery_runtime::clock;
use sha2::{Digest, Sha256};

use super::cookie;
use super::learned::Learned;
use super::look::Look;
use super::words::Words;
use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::router::App;
use crate::tokens;

pub const COOKIE: &str = "chancery_visit";

#[derive(Debug, Clone)]
pub struct Visitor {
    pub caller: Caller,
    pub look: Look,
    /// What every form of this visit carries.
    pub csrf: String,
    /// What the visit itself is known by in the store.
    pub digest: [u8; 32],
    /// How many questions wait for them.
    pub waiting: u64,
    /// Where they are, to come back to.
    pub path: String,
}

impl Visitor {
    pub fn words(&self) -> &'static Words {
        self.look.words()
    }

    pub fn name(&self) -> &str {
        self.caller.name()
    }
}

impl FromRequestParts<App> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Visitor> {
        let secret = cookie::get(app, &parts.headers, COOKIE).ok_or(ApiError::Unauthenticated)?;
        let digest = tokens::digest(secret);
        let visit = app.turnstile.pass(parts, digest, app.store.visit(digest, clock::now()));
        let caller = Caller::visiting(visit.await?);
        let asked_for = caller.asked_for(app)?;
        let waiting = app.store.pending(asked_for.as_ref()).await?.count;
        let path = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        let look = Look::of(&parts.headers);
        let visitor = Visitor { look, csrf: csrf(secret), digest, caller, waiting, path };
        if let Some(learned) = parts.extensions.get::<Learned>() {
            learned.came(&visitor);
        }
        Ok(visitor)
    }
}

/// What a page of the visit knows and no other page does. It tells nothing of the secret.
pub fn csrf(secret: &str) -> String {
    let digest = Sha256::new().chain_update(b"csrf:").chain_update(secret).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
