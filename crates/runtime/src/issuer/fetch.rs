//! Asking an issuer over HTTP: never for long, never for much, and nowhere but where it said.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, Url, redirect};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::discovery::Document;
use super::keys::Keys;
use super::{Handshake, IssuerError, Terms};

/// Far more than any document, set of keys or token is.
const BYTES_MAX: usize = 512 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Http(Client);

#[derive(Deserialize)]
pub(super) struct TokenAnswer {
    pub id_token: String,
    pub access_token: Option<String>,
}

#[derive(Deserialize)]
struct Failure {
    error: String,
}

impl Http {
    pub(super) fn new(patience: Duration) -> Result<Http, IssuerError> {
        let client = Client::builder()
            .user_agent(concat!("chancery/", env!("CARGO_PKG_VERSION")))
            // A redirect would carry the code, and our secret, to a place that nobody named.
            .redirect(redirect::Policy::none())
            .timeout(patience)
            .build();
        client.map(Http).map_err(|it| IssuerError::Unusable(it.to_string()))
    }

    pub(super) async fn document(&self, issuer: &str) -> Result<Document, IssuerError> {
        let asked = self.0.get(Document::place(issuer)?);
        Document::read(issuer, &answered("its discovery document", asked).await?)
    }

    pub(super) async fn keys(&self, url: &Url) -> Result<Keys, IssuerError> {
        Keys::read(&answered("its keys", self.0.get(url.clone())).await?)
    }

    pub(super) async fn claims(
        &self,
        url: &Url,
        access_token: &str,
    ) -> Result<Map<String, Value>, IssuerError> {
        let asked = self.0.get(url.clone()).bearer_auth(access_token);
        let said = answered("its word on a person", asked).await?;
        serde_json::from_slice(&said)
            .map_err(|_| IssuerError::Unusable("its word on a person is not JSON".to_owned()))
    }

    pub(super) async fn token(
        &self,
        document: &Document,
        terms: &Terms,
        code: &str,
        handshake: &Handshake,
    ) -> Result<TokenAnswer, IssuerError> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &terms.redirect_uri),
            ("code_verifier", handshake.verifier()),
        ];
        let mut asked = self.0.post(document.token_endpoint.clone());
        match &terms.client_secret {
            Some(secret) if !document.secret_in_form => {
                // RFC 6749, 2.3.1: each is encoded as in a form before they are joined.
                let pair = (encoded(&terms.client_id), encoded(secret.reveal()));
                asked = asked.basic_auth(pair.0, Some(pair.1));
            }
            Some(secret) => {
                form.extend([("client_id", &*terms.client_id), ("client_secret", secret.reveal())]);
            }
            None => form.push(("client_id", &terms.client_id)),
        }
        let body: Vec<String> =
            form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let asked = asked
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(body.join("&"));
        let said = answered("its token endpoint", asked).await?;
        serde_json::from_slice(&said)
            .map_err(|_| IssuerError::Unusable("its token endpoint gave no ID token".to_owned()))
    }
}

async fn answered(what: &str, asked: RequestBuilder) -> Result<Vec<u8>, IssuerError> {
    let unusable = |detail: &str| IssuerError::Unusable(format!("{what} {detail}"));
    let response = asked.send().await.map_err(|it| unusable(cause(&it)))?;
    let status = response.status();
    let said = bounded(response).await.map_err(unusable)?;
    if status.is_success() {
        return Ok(said);
    }
    match serde_json::from_slice::<Failure>(&said).ok().map(|it| it.error) {
        Some(word) if is_plain(&word) => Err(IssuerError::Refused(word)),
        _ => Err(unusable(&format!("answered {}", status.as_u16()))),
    }
}

/// One of the words that the standards have for what went wrong: what is shown of another's text.
pub(super) fn is_plain(word: &str) -> bool {
    (1..=64).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
}

async fn bounded(mut response: Response) -> Result<Vec<u8>, &'static str> {
    let mut said = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|it| cause(&it))? {
        if said.len() + piece.len() > BYTES_MAX {
            return Err("is too long");
        }
        said.extend_from_slice(&piece);
    }
    Ok(said)
}

fn cause(error: &reqwest::Error) -> &'static str {
    match error {
        it if it.is_timeout() => "took too long",
        it if it.is_connect() => "cannot be reached",
        _ => "broke off",
    }
}

/// As `application/x-www-form-urlencoded` has it.
fn encoded(text: &str) -> String {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"-._~".contains(&it);
    text.bytes()
        .map(|it| if plain(it) { char::from(it).to_string() } else { format!("%{it:02X}") })
        .collect()
}
