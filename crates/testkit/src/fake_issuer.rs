//! An OpenID provider over a real socket, with real keys: discovery, authorization, tokens, keys,
//! and what it says of a person. It does what it is told to do wrong, and holds its clients to
//! what they must do right: PKCE, the code once, the redirect as it was.

mod keys;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use chancery_runtime::clock;
use futures_util::stream;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use keys::{Kind, Signing};

use keys::KeyPair;

pub const CLIENT: &str = "chancery";
/// With what a form and a header would each spell otherwise.
pub const SECRET: &str = "s3cret/with+odd:signs%";

/// Stops listening when it is dropped.
#[derive(Debug)]
pub struct FakeIssuer {
    url: String,
    shared: Arc<Mutex<Shared>>,
    listening: JoinHandle<()>,
}

/// What it does when it is asked for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenDoor {
    Answers,
    /// Never.
    Hangs,
    /// Goes on for ever.
    Floods,
    /// With this status, and no word of the standard.
    Fails(u16),
    /// Sends the request, with the secret in it, on to somewhere else.
    Redirects,
    /// In the middle of its answer.
    BreaksOff,
}

/// All that can be otherwise. Change it through [`FakeIssuer::set`].
#[derive(Debug)]
pub struct Conduct {
    pub signing: Signing,
    pub door: TokenDoor,
    /// Claims of the ID token in place of its own; `null` takes one out.
    pub claims: Value,
    /// What it says of the person elsewhere, beside the subject.
    pub userinfo: Value,
    /// What its discovery document says otherwise.
    pub document: Value,
    /// The `iss` that it sends people back with.
    pub sends_iss: Option<String>,
}

#[derive(Debug)]
struct Shared {
    url: String,
    conduct: Conduct,
    /// The last one signs.
    keys: Vec<KeyPair>,
    /// Codes that were given out, each with what it was asked for by.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    asked_keys: usize,
    asked_tokens: usize,
}

type Asked = BTreeMap<String, String>;

impl FakeIssuer {
    pub async fn start() -> std::io::Result<FakeIssuer> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let conduct = Conduct {
            signing: Signing::Honest,
            door: TokenDoor::Answers,
            claims: json!({}),
            userinfo: json!({}),
            document: json!({}),
            sends_iss: None,
        };
        let shared = Arc::new(Mutex::new(Shared {
            url: url.clone(),
            conduct,
            keys: vec![KeyPair::generate(Kind::Rsa, "first")],
            codes: BTreeMap::new(),
            asked_keys: 0,
            asked_tokens: 0,
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(document))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/jwks", get(key_set))
            .route("/userinfo", get(userinfo))
            .with_state(Arc::clone(&shared));
        let listening = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the fake issuer stopped: {error}");
            }
        });
        Ok(FakeIssuer { url, shared, listening })
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn set(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut lock(&self.shared).conduct);
    }

    /// What the ID token says, beside what it must.
    pub fn says(&self, claims: Value) {
        self.set(|it| it.claims = claims);
    }

    /// Signs with a new key from now on; those before are gone.
    pub fn rotate(&self, kind: Kind, id: &str) {
        lock(&self.shared).keys = vec![KeyPair::generate(kind, id)];
    }

    /// How often its keys were asked for, and how often a token.
    pub fn asked(&self) -> (usize, usize) {
        let shared = lock(&self.shared);
        (shared.asked_keys, shared.asked_tokens)
    }
}

impl Drop for FakeIssuer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

type Its = State<Arc<Mutex<Shared>>>;

async fn document(State(shared): Its) -> Response {
    let shared = lock(&shared);
    let url = &shared.url;
    let own = json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "jwks_uri": format!("{url}/jwks"),
        "userinfo_endpoint": format!("{url}/userinfo"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": shared.conduct.sends_iss.is_some(),
    });
    answer(&merged(own, &shared.conduct.document))
}

/// Everybody is signed in here already: they are sent back at once.
async fn authorize(State(shared): Its, Query(asked): Query<Asked>) -> Response {
    let mut shared = lock(&shared);
    let is = |name: &str, value: &str| asked.get(name).is_some_and(|it| it == value);
    let whole = is("response_type", "code")
        && is("client_id", CLIENT)
        && is("code_challenge_method", "S256")
        && ["code_challenge", "state", "nonce", "redirect_uri"]
            .iter()
            .all(|it| asked.get(*it).is_some_and(|it| !it.is_empty()))
        && asked.get("scope").is_some_and(|it| it.split(' ').any(|it| it == "openid"));
    let Some(back) = asked.get("redirect_uri").filter(|_| whole).cloned() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (code, state) = (clock::new_secret(), asked.get("state").cloned().unwrap_or_default());
    shared.codes.insert(code.clone(), asked);
    let iss = shared.conduct.sends_iss.as_ref().map(|it| format!("&iss={it}"));
    let url = format!("{back}?code={code}&state={state}{}", iss.unwrap_or_default());
    Redirect::to(&url).into_response()
}

async fn token(State(shared): Its, headers: HeaderMap, Form(asked): Form<Asked>) -> Response {
    let door = {
        let mut shared = lock(&shared);
        shared.asked_tokens += 1;
        shared.conduct.door
    };
    let refused = |word: &str| {
        (StatusCode::BAD_REQUEST, json!({ "error": word }).to_string()).into_response()
    };
    match door {
        TokenDoor::Answers => {}
        TokenDoor::Hangs => std::future::pending().await,
        TokenDoor::Floods => {
            let piece = Bytes::from(vec![b' '; 1 << 16]);
            let endless = stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
            return Body::from_stream(endless).into_response();
        }
        TokenDoor::Fails(status) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            return (status, "<b>it hurts</b>").into_response();
        }
        TokenDoor::Redirects => return Redirect::temporary("/elsewhere").into_response(),
        TokenDoor::BreaksOff => {
            let pieces: [Result<&str, std::io::Error>; 2] =
                [Ok("{\"id_token\": "), Err(std::io::Error::other("cut"))];
            return Body::from_stream(stream::iter(pieces)).into_response();
        }
    }
    let given = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let in_form = field("client_id") == CLIENT && field("client_secret") == SECRET;
    // In one of the two places, and not in both.
    if in_form == (given == Some(&*basic())) {
        return refused("invalid_client");
    }
    let mut shared = lock(&shared);
    // Once: whoever brings it again has it from somebody else.
    let Some(before) = shared.codes.remove(&field("code")) else {
        return refused("invalid_grant");
    };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
    let fits = field("grant_type") == "authorization_code"
        && before.get("redirect_uri") == asked.get("redirect_uri")
        && before.get("code_challenge") == Some(&challenge);
    if !fits {
        return refused("invalid_grant");
    }
    let now = clock::now().as_second();
    let own = json!({
        "iss": shared.url,
        "aud": CLIENT,
        "sub": "subject-1",
        "nonce": before.get("nonce"),
        "iat": now,
        "exp": now + 300,
    });
    let claims = merged(own, &shared.conduct.claims);
    let Some(pair) = shared.keys.last() else { return refused("server_error") };
    let id_token = pair.token(&claims, shared.conduct.signing);
    let access_token = claims["sub"].as_str().unwrap_or_default();
    answer(&json!({ "id_token": id_token, "access_token": access_token, "token_type": "Bearer" }))
}

async fn key_set(State(shared): Its) -> Response {
    let mut shared = lock(&shared);
    shared.asked_keys += 1;
    let mut keys: Vec<Value> = shared.keys.iter().map(KeyPair::public).collect();
    // What is for others, or for something else, is passed over.
    keys.extend([json!({"kty": "oct", "k": "AAAA", "kid": "shared"}), json!({"kty": "??"})]);
    answer(&json!({ "keys": keys }))
}

async fn userinfo(State(shared): Its, headers: HeaderMap) -> Response {
    let shared = lock(&shared);
    let bearer = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    let Some(subject) = bearer.and_then(|it| it.strip_prefix("Bearer ")) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    answer(&merged(json!({ "sub": subject }), &shared.conduct.userinfo))
}

fn answer(said: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], said.to_string()).into_response()
}

fn merged(mut own: Value, over: &Value) -> Value {
    for (name, value) in over.as_object().into_iter().flatten() {
        match (value, own.as_object_mut()) {
            (Value::Null, Some(own)) => drop(own.remove(name)),
            (value, Some(own)) => drop(own.insert(name.clone(), value.clone())),
            (_, None) => {}
        }
    }
    own
}

/// As RFC 6749 has it: encoded first, joined then.
fn basic() -> String {
    let secret = SECRET.replace('%', "%25").replace('/', "%2F");
    let secret = secret.replace('+', "%2B").replace(':', "%3A");
    format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{secret}")))
}
