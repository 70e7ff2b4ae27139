//! A server over a real socket that tells what texts mean, as `…/embeddings` does it. It knows a
//! few notions, each by the words for it: a dimension each. It can be away, and it can refuse a
//! text.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Words of one meaning.
pub type Notion = &'static [&'static str];

/// Stops listening when it is dropped.
#[derive(Debug)]
pub struct FakeEmbeddings {
    url: String,
    shared: Arc<Mutex<Shared>>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    notions: &'static [Notion],
    is_away: bool,
    /// No text with this in it is taken.
    refuses: Option<&'static str>,
    shown: Vec<String>,
}

impl FakeEmbeddings {
    pub async fn start(notions: &'static [Notion]) -> std::io::Result<FakeEmbeddings> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let shared = Shared { notions, is_away: false, refuses: None, shown: Vec::new() };
        let shared = Arc::new(Mutex::new(shared));
        let router =
            Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&shared));
        let listening = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the fake embeddings stopped: {error}");
            }
        });
        Ok(FakeEmbeddings { url, shared, listening })
    }

    pub fn base_url(&self) -> String {
        self.url.clone()
    }

    /// From now on it answers that it is overloaded, or no longer.
    pub fn be_away(&self, is_away: bool) {
        lock(&self.shared).is_away = is_away;
    }

    pub fn refuse(&self, word: &'static str) {
        lock(&self.shared).refuses = Some(word);
    }

    /// Every text that it was shown and took, in order.
    pub fn shown(&self) -> Vec<String> {
        lock(&self.shared).shown.clone()
    }
}

impl Drop for FakeEmbeddings {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    Json(asked): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let mut shared = lock(&shared);
    let error =
        |status: StatusCode, said: &str| (status, Json(json!({"error": {"message": said}})));
    if shared.is_away {
        return error(StatusCode::SERVICE_UNAVAILABLE, "overloaded");
    }
    let texts = asked["input"].as_array().cloned().unwrap_or_default();
    let texts: Vec<String> = texts.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect();
    if texts.is_empty() || asked["model"].as_str().is_none() {
        return error(StatusCode::BAD_REQUEST, "`model` and `input` are missing");
    }
    if let Some(word) = shared.refuses
        && texts.iter().any(|it| it.contains(word))
    {
        return error(StatusCode::BAD_REQUEST, "this text cannot be embedded");
    }
    let vector = |text: &str| -> Vec<f32> {
        let text = text.to_lowercase();
        let has = |notion: &&[&str]| notion.iter().any(|it| text.contains(it));
        shared.notions.iter().map(|it| if has(it) { 1.0 } else { 0.0 }).collect()
    };
    // The last first: whoever reads it goes by the index.
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
        .collect();
    shared.shown.extend(texts);
    (StatusCode::OK, Json(json!({"object": "list", "data": data, "model": asked["model"]})))
}
