//! A model server over a real socket that does as it is told, well or badly: it speaks chat
//! completions (`…/chat/completions`) and Anthropic's messages (`…/messages`), and remembers
//! what it was asked. It never thinks and never gives an answer that no test asked for.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use chancery_testkit::fake_model::{Answer, Behaviour, FakeModel};
//!
//! let server = FakeModel::start().await?;
//! server.will(Behaviour::status(500, "try later"));
//! server.will(Behaviour::Stream(Answer::call("read_logs", r#"{"service": "web"}"#)));
//! server.otherwise(|_, _| Behaviour::Stream(Answer::text("done")));
//! // … point a model at `server.chat_url()` …
//! assert_eq!(server.requests().len(), 3);
//! # Ok(()) }
//! ```

pub mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use self::wire::{Answer, FakeCall, Protocol};

/// What is done with one request.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// The answer, event by event.
    Stream(Answer),
    /// The answer as one JSON document, though a stream was asked for.
    Plain(Answer),
    /// The stream in pieces of so many bytes, wherever that cuts.
    Sliced { answer: Answer, bytes: usize },
    /// Only the first events of the stream, and then this.
    Partial { answer: Answer, events: usize, end: End },
    /// Exactly this.
    Raw(Raw),
    /// Not even a status.
    Silence,
}

/// A response that was written by hand.
#[derive(Debug, Clone)]
pub struct Raw {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub pieces: Vec<Bytes>,
    pub end: End,
}

/// What comes after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A proper end.
    Clean,
    /// Nothing, for ever.
    Stall,
    /// The connection breaks.
    Cut,
}

impl Behaviour {
    /// An error in the way that both protocols write it.
    pub fn status(status: u16, message: &str) -> Behaviour {
        let body = serde_json::json!({"error": {"message": message}});
        Behaviour::Raw(Raw::new(status, "application/json", [body.to_string()]))
    }

    /// "Too many requests", with a word on when to come back.
    pub fn busy(header: &'static str, wait: &str) -> Behaviour {
        let raw = Raw::new(429, "application/json", ["{}"]);
        Behaviour::Raw(Raw {
            headers: [raw.headers, vec![(header, wait.to_owned())]].concat(),
            ..raw
        })
    }

    /// A stream that was written by hand.
    pub fn events<P: Into<Bytes>>(pieces: impl IntoIterator<Item = P>) -> Behaviour {
        Behaviour::Raw(Raw::new(200, "text/event-stream", pieces))
    }
}

impl Raw {
    pub fn new<P: Into<Bytes>>(
        status: u16,
        content_type: &str,
        pieces: impl IntoIterator<Item = P>,
    ) -> Raw {
        Raw {
            status,
            headers: vec![("content-type", content_type.to_owned())],
            pieces: pieces.into_iter().map(Into::into).collect(),
            end: End::Clean,
        }
    }
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Two requests over one connection have the same.
    pub peer: SocketAddr,
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    /// `Null` if it was no JSON.
    pub body: Value,
}

/// Stops listening when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    listening: JoinHandle<()>,
}

type Script = Box<dyn FnMut(usize, &Seen) -> Behaviour + Send>;

struct Shared {
    seen: Vec<Seen>,
    queue: VecDeque<Behaviour>,
    otherwise: Script,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("seen", &self.seen)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl FakeModel {
    /// On a free port of this machine.
    pub async fn start() -> std::io::Result<FakeModel> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        // A refusal, for no adapter tries again after one.
        let otherwise: Script = Box::new(|number, _| {
            Behaviour::status(400, &format!("the test did not foresee request {number}"))
        });
        let shared =
            Arc::new(Mutex::new(Shared { seen: Vec::new(), queue: VecDeque::new(), otherwise }));
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared))
            .into_make_service_with_connect_info::<SocketAddr>();
        // As real servers do: a piece is not held back for the next one.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let listening = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the fake model stopped: {error}");
            }
        });
        Ok(FakeModel { address, shared, listening })
    }

    /// The `base_url` for chat completions.
    pub fn chat_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The `base_url` for Anthropic's messages.
    pub fn messages_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// For the next request that has nothing planned for it yet.
    pub fn will(&self, behaviour: Behaviour) {
        lock(&self.shared).queue.push_back(behaviour);
    }

    /// For every request for which nothing is planned: told its number (the first has 1) and
    /// what it asks.
    pub fn otherwise(&self, script: impl FnMut(usize, &Seen) -> Behaviour + Send + 'static) {
        lock(&self.shared).otherwise = Box::new(script);
    }

    /// What was asked so far, in order.
    pub fn requests(&self) -> Vec<Seen> {
        lock(&self.shared).seen.clone()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// A script that panicked has failed its test already; the others may go on.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let seen = see(peer, request).await;
    let Some(protocol) = Protocol::of_path(&seen.path) else {
        return (StatusCode::NOT_FOUND, "this is a fake model server").into_response();
    };
    let behaviour = {
        let mut shared = lock(&shared);
        shared.seen.push(seen.clone());
        let number = shared.seen.len();
        match shared.queue.pop_front() {
            Some(planned) => planned,
            None => (shared.otherwise)(number, &seen),
        }
    };
    let stream = |answer: &Answer| answer.events(protocol);
    match behaviour {
        Behaviour::Stream(answer) => respond(event_stream(stream(&answer), End::Clean)),
        Behaviour::Plain(answer) => {
            respond(Raw::new(200, "application/json", [answer.document(protocol).to_string()]))
        }
        Behaviour::Sliced { answer, bytes } => {
            let whole = stream(&answer).concat();
            let pieces = whole.chunks(bytes.max(1)).map(Bytes::copy_from_slice).collect();
            respond(event_stream(pieces, End::Clean))
        }
        Behaviour::Partial { answer, events, end } => {
            respond(event_stream(stream(&answer).into_iter().take(events).collect(), end))
        }
        Behaviour::Raw(raw) => respond(raw),
        Behaviour::Silence => std::future::pending().await,
    }
}

/// A request is bounded by what a test sends.
const REQUEST_MAX: usize = 64 * 1024 * 1024;

async fn see(peer: SocketAddr, request: Request) -> Seen {
    let (head, body) = request.into_parts();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let body = axum::body::to_bytes(body, REQUEST_MAX).await.unwrap_or_default();
    Seen {
        peer,
        path: head.uri.path().to_owned(),
        headers: head.headers.iter().map(|(name, it)| (name.to_string(), text(it))).collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }
}

fn event_stream(pieces: Vec<Bytes>, end: End) -> Raw {
    Raw { end, ..Raw::new(200, "text/event-stream", pieces) }
}

fn respond(raw: Raw) -> Response {
    // Each piece is sent by itself: a stream that is always ready would be joined into one.
    let pieces = stream::iter(raw.pieces).then(|piece| async {
        tokio::task::yield_now().await;
        Ok::<Bytes, std::io::Error>(piece)
    });
    let end = match raw.end {
        End::Clean => stream::empty().boxed(),
        End::Stall => stream::pending().boxed(),
        // Only what was said before is on its way: hyper drops what it holds when a body fails.
        End::Cut => stream::once(async {
            tokio::task::yield_now().await;
            Err(std::io::Error::other("cut by the test"))
        })
        .boxed(),
    };
    let mut response = Response::new(Body::from_stream(pieces.chain(end)));
    *response.status_mut() = StatusCode::from_u16(raw.status).unwrap_or_default();
    for (name, value) in raw.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
