//! What texts mean, asked of a far side that speaks `…/embeddings` as OpenAI does. A second
//! signal: nothing waits for it but a question, and that not for long. Memories are read to it
//! after they are written, those from before it was there too.

mod answer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chancery_domain::memory::Plan;
use chancery_domain::memory::vector::Vector;
use chancery_store::memory::{Found, Meaning, Question, Space, Unread};
use chancery_store::{Store, StoreError};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use self::answer::Answer;
use crate::model::exchange::{Exchange, key_header};
use crate::model::{ModelError, Patience, Secret, SetupError};

/// What it is called in errors: its place in the settings.
const NAME: &str = "memory.embeddings";
/// A question is not worth more of anyone's time.
const QUESTION: Duration = Duration::from_secs(2);
/// A far side that did not answer is left alone for so long.
const AWAY: Duration = Duration::from_secs(30);
/// For a batch of memories, retries included.
const BATCH: Duration = Duration::from_secs(60);
const BATCH_MAX: u32 = 64;
/// In characters: what far sides take of a text at the least, whatever the language.
const TEXT_MAX: usize = 4_000;
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Up to `/embeddings`.
    pub base_url: String,
    pub model: String,
    pub api_key: Option<Secret>,
    /// As many as the model has, unless it can be asked for fewer.
    pub dimensions: Option<u32>,
}

#[derive(Debug)]
pub struct Embeddings {
    config: Config,
    questions: Exchange,
    batches: Exchange,
    space: OnceCell<Space>,
    away_until: Mutex<Option<Instant>>,
}

/// What came of showing the far side some texts.
enum Shown {
    Vectors(Vec<Option<Vector>>),
    /// It will not have one of them.
    Refused(ModelError),
}

impl Embeddings {
    pub fn new(config: Config) -> Result<Embeddings, SetupError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.api_key {
            headers.insert(AUTHORIZATION, key_header(NAME, &format!("Bearer {}", key.reveal()))?);
        }
        let url = format!("{}/embeddings", config.base_url.trim_end_matches('/'));
        let exchange = |whole: Duration, retries: u32| {
            let patience = Patience {
                first_byte: whole,
                between: whole,
                whole,
                retries,
                ..Patience::default()
            };
            Exchange::new(NAME, &url, headers.clone(), config.api_key.clone(), patience)
        };
        let (questions, batches) = (exchange(QUESTION, 0)?, exchange(BATCH, 3)?);
        let (space, away_until) = (OnceCell::new(), Mutex::new(None));
        Ok(Embeddings { config, questions, batches, space, away_until })
    }

    /// Another model, another address or other dimensions span another space.
    async fn space(&self, store: &Store) -> Result<Space, StoreError> {
        let Config { base_url, model, dimensions, .. } = &self.config;
        let name = json!([base_url.trim_end_matches('/'), model, dimensions]).to_string();
        self.space.get_or_try_init(|| store.vector_space(&name)).await.copied()
    }

    /// What a question means. `None`: nothing that could be told.
    pub async fn meaning(
        &self,
        store: &Store,
        question: &str,
    ) -> Result<Option<Meaning>, ReadError> {
        let space = self.space(store).await?;
        let vectors = self.ask(&self.questions, &[question]).await?;
        Ok(vectors.into_iter().next().flatten().map(|vector| Meaning { space, vector }))
    }

    /// The same; where nobody can tell in time it is asked without.
    async fn meaning_if_told(&self, store: &Store, question: &str) -> Option<Meaning> {
        if self.is_away() || question.trim().is_empty() {
            return None;
        }
        match self.meaning(store, question).await {
            Ok(meaning) => meaning,
            Err(error) => {
                tracing::warn!(%error, "Searches go by words alone for a while: {error}");
                *self.away() = Some(Instant::now() + AWAY);
                None
            }
        }
    }

    fn is_away(&self) -> bool {
        self.away().is_some_and(|it| it > Instant::now())
    }

    fn away(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.away_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(
        &self,
        exchange: &Exchange,
        texts: &[&str],
    ) -> Result<Vec<Option<Vector>>, ModelError> {
        let input: Vec<&str> = texts.iter().map(|it| beginning(it)).collect();
        let mut body =
            json!({"model": self.config.model, "input": input, "encoding_format": "float"});
        if let Some(dimensions) = self.config.dimensions {
            body["dimensions"] = json!(dimensions);
        }
        let reading = || Answer::new(texts.len(), self.config.dimensions);
        exchange.ask(None, &body, reading).await
    }

    /// Shows the far side texts, and finds out whose fault a refusal is: it takes a word that
    /// nobody can object to.
    async fn show(&self, texts: &[&str]) -> Result<Shown, ModelError> {
        match self.ask(&self.batches, texts).await {
            Ok(vectors) => Ok(Shown::Vectors(vectors)),
            Err(refused @ ModelError::Refused { .. }) => {
                self.ask(&self.batches, &["word"]).await?;
                Ok(Shown::Refused(refused))
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at memories that it has not looked at. Answers how many there were.
    pub async fn read_some(&self, store: &Store, org: &str) -> Result<usize, ReadError> {
        let space = self.space(store).await?;
        let unread = store.unread_memories(org, space, BATCH_MAX).await?;
        let count = unread.len();
        if count > 0 {
            let texts: Vec<&str> = unread.iter().map(|it| it.content.as_str()).collect();
            let read = match self.show(&texts).await? {
                Shown::Vectors(vectors) => unread.into_iter().zip(vectors).collect(),
                Shown::Refused(_) => self.one_by_one(unread).await?,
            };
            store.keep_vectors(org, space, read).await?;
        }
        Ok(count)
    }

    async fn one_by_one(
        &self,
        unread: Vec<Unread>,
    ) -> Result<Vec<(Unread, Option<Vector>)>, ModelError> {
        let mut read = Vec::with_capacity(unread.len());
        for memory in unread {
            let vector = match self.show(&[&memory.content]).await? {
                Shown::Vectors(vectors) => vectors.into_iter().next().flatten(),
                Shown::Refused(error) => {
                    tracing::warn!(memory.id = %memory.id, "{} is found by its words alone: {error}", memory.id);
                    None
                }
            };
            read.push((memory, vector));
        }
        Ok(read)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// As much of a text as is shown.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(TEXT_MAX).map_or(text, |(end, _)| &text[..end])
}

/// What is asked, with what it means where somebody can tell.
pub async fn question<'q>(
    store: &Store,
    embeddings: Option<&Embeddings>,
    text: &'q str,
) -> Question<'q> {
    let meaning = match embeddings {
        Some(embeddings) => embeddings.meaning_if_told(store, text).await,
        None => None,
    };
    Question { text, meaning }
}

/// What is remembered, for whoever searches it.
#[derive(Debug, Clone)]
pub struct Memories {
    pub store: Store,
    pub embeddings: Option<Arc<Embeddings>>,
}

impl Memories {
    /// By words, and by meaning where somebody can tell.
    pub async fn search(
        &self,
        plan: &Plan,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let question = question(&self.store, self.embeddings.as_deref(), text).await;
        self.store.search_memories(plan, question, limit).await
    }
}

impl From<Store> for Memories {
    fn from(store: Store) -> Memories {
        Memories { store, embeddings: None }
    }
}

/// Reads what is written, for as long as the server runs.
pub async fn read_on(
    store: Store,
    embeddings: Arc<Embeddings>,
    org: String,
    stop: CancellationToken,
) {
    let mut pause = LOOK;
    loop {
        match embeddings.read_some(&store, &org).await {
            Ok(0) => pause = LOOK,
            Ok(_) => pause = Duration::ZERO,
            Err(error) => {
                pause = (pause * 2).clamp(LOOK, AWAY);
                tracing::warn!(%error, "Memories are not read for their meaning just now: {error}");
            }
        }
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}
