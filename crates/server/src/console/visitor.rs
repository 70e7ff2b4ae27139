//! Somebody who is signed in: a proof, as [`Caller`] is one. A visit stands on a token and is
//! known by a cookie that no script can read.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chancery_runtime::clock;
use chancery_store::visit::Visit;
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
    /// Somebody whose visit is known, or has begun a moment ago.
    pub async fn of(
        app: &App,
        look: Look,
        visit: Visit,
        secret: &str,
        path: &str,
    ) -> Result<Visitor> {
        let caller = Caller::visiting(visit);
        let asked_for = caller.asked_for(app)?;
        let waiting = app.store.pending(asked_for.as_ref()).await?.count;
        let csrf = csrf(secret, caller.name());
        let digest = tokens::digest(secret);
        Ok(Visitor { look, csrf, digest, caller, waiting, path: path.to_owned() })
    }

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
        let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
        let look = Look::of(&parts.headers);
        let visitor = Visitor::of(app, look, visit.await?, secret, path).await?;
        if let Some(learned) = parts.extensions.get::<Learned>() {
            learned.came(&visitor);
        }
        Ok(visitor)
    }
}

/// What a page of the visit knows and no other page does. It tells nothing of the secret, and
/// says whose page it is, also when the visit is over.
fn csrf(secret: &str, person: &str) -> String {
    let digest = Sha256::new().chain_update(b"csrf:").chain_update(secret).finalize();
    format!("{}.{}", hex(&digest), tag_of(person))
}

/// A name as a form carries it: to be compared, and no secret.
pub fn tag_of(person: &str) -> String {
    let digest = Sha256::new().chain_update(b"person:").chain_update(person).finalize();
    hex(&digest[..16])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
