//! Who vouches for people: an OpenID provider, asked by the authorization code flow with PKCE.
//! What it says is believed once its signature and every claim about the exchange hold. Who
//! somebody is here, and what they may, is not decided in this place.

mod claims;
mod discovery;
mod fetch;
mod handshake;
mod keys;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_domain::bucket::{Bucket, Rate};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::model::Secret;

pub use claims::Claims;
pub use discovery::{Document, is_safe};
pub use handshake::Handshake;

use claims::Expected;
use fetch::Http;
use keys::{Keys, Unverified};

/// How long what it says of itself is believed without asking again.
const KNOWN_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How often keys are asked for anew because one is unknown: a few at once, for those who change
/// them twice in a row, and then slowly, whatever tokens are shown to us.
const ANEW: Rate = Rate { burst: 4, a_minute: 2 };

/// Why somebody is not vouched for. The words are shown to them and kept in the audit: no secret
/// is in them, and what the far side said only where it is one of a few plain words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    #[error("the identity provider cannot be used just now: {0}")]
    Unusable(String),
    #[error("the identity provider refused: {0}")]
    Refused(String),
    #[error("what the identity provider said is not to be believed: {0}")]
    Untrue(String),
}

#[derive(Debug, Clone)]
pub struct Terms {
    /// As the provider spells it, to the letter.
    pub issuer: String,
    pub client_id: String,
    /// Absent: a public client, which PKCE alone protects.
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    /// Where people are sent back to.
    pub redirect_uri: String,
    /// Claims that are asked for again where the token itself does not have them.
    pub wanted: Vec<String>,
    /// How long one answer of it may take: somebody sits before their browser meanwhile.
    pub patience: Duration,
}

#[derive(Debug, Clone)]
pub struct Issuer {
    terms: Arc<Terms>,
    http: Http,
    known: Arc<Mutex<Known>>,
}

/// What was learnt of it, and when.
#[derive(Debug, Default)]
struct Known {
    document: Option<(Arc<Document>, Timestamp)>,
    keys: Option<(Arc<Keys>, Timestamp)>,
    anew: Bucket,
}

impl Issuer {
    pub fn new(terms: Terms) -> Result<Issuer, IssuerError> {
        let http = Http::new(terms.patience)?;
        Ok(Issuer { terms: Arc::new(terms), http, known: Arc::default() })
    }

    pub fn name(&self) -> &str {
        &self.terms.issuer
    }

    /// Where to send somebody, with what ties their coming back to their going.
    pub async fn send(&self, handshake: &Handshake, now: Timestamp) -> Result<String, IssuerError> {
        let document = self.document(now).await?;
        let Terms { client_id, redirect_uri, scopes, .. } = &*self.terms;
        document.authorization_url(&[
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &scopes.join(" ")),
            ("state", handshake.state()),
            ("nonce", handshake.nonce()),
            ("code_challenge", &handshake.challenge()),
            ("code_challenge_method", "S256"),
        ])
    }

    /// Whether it is this issuer that somebody comes back from (RFC 9207).
    pub async fn check_sender(
        &self,
        named: Option<&str>,
        now: Timestamp,
    ) -> Result<(), IssuerError> {
        let untrue = |detail: &str| Err(IssuerError::Untrue(detail.to_owned()));
        match named {
            Some(named) if named == self.terms.issuer => Ok(()),
            Some(_) => untrue("the answer comes from another issuer"),
            None if self.document(now).await?.names_itself => {
                untrue("the answer does not say which issuer it comes from")
            }
            None => Ok(()),
        }
    }

    /// Redeems a code for what the issuer says of whoever brought it.
    pub async fn redeem(
        &self,
        code: &str,
        handshake: &Handshake,
        now: Timestamp,
    ) -> Result<Claims, IssuerError> {
        let document = self.document(now).await?;
        let answer = self.http.token(&document, &self.terms, code, handshake).await?;
        let token = Unverified::of(&answer.id_token)?;
        let claims = self.verified(&document, &token, now).await?;
        let expected = Expected {
            issuer: &self.terms.issuer,
            client_id: &self.terms.client_id,
            nonce: handshake.nonce(),
            now,
        };
        let mut claims = Claims::checked(claims, &expected)?;
        if self.terms.wanted.iter().any(|it| claims.get(it).is_none())
            && let (Some(url), Some(access)) = (&document.userinfo_endpoint, &answer.access_token)
        {
            claims.add(self.http.claims(url, access).await?)?;
        }
        Ok(claims)
    }

    /// The claims of a token that one of its keys has signed. A key that is not known may be a
    /// new one: they are asked for once more.
    async fn verified(
        &self,
        document: &Document,
        token: &Unverified<'_>,
        now: Timestamp,
    ) -> Result<Map<String, Value>, IssuerError> {
        let kept = self.kept_keys(now);
        if let Some(keys) = &kept
            && keys.has(token)
        {
            return keys.verify(token);
        }
        if kept.is_some() && self.locked().anew.take(ANEW, now).is_err() {
            return Err(IssuerError::Untrue("its key is not known".to_owned()));
        }
        let keys = Arc::new(self.http.keys(&document.jwks_uri).await?);
        self.locked().keys = Some((Arc::clone(&keys), now));
        keys.verify(token)
    }

    fn kept_keys(&self, now: Timestamp) -> Option<Arc<Keys>> {
        let known = self.locked();
        known.keys.as_ref().filter(|it| is_fresh(it.1, now)).map(|it| Arc::clone(&it.0))
    }

    /// What it says of itself, asked for once an hour.
    async fn document(&self, now: Timestamp) -> Result<Arc<Document>, IssuerError> {
        let kept = self.locked().document.clone();
        if let Some((document, at)) = kept
            && is_fresh(at, now)
        {
            return Ok(document);
        }
        let document = Arc::new(self.http.document(&self.terms.issuer).await?);
        self.locked().document = Some((Arc::clone(&document), now));
        Ok(document)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time that lies ahead was read from a clock that has been set back since.
fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..KNOWN_FOR).contains(&now.duration_since(at))
}
