//! One question over HTTP and its answer, with patience: deadlines, retries and limits that
//! hold for every protocol. Knows nothing of what is asked or answered, never follows a
//! redirect (it would carry the key elsewhere) and never lets the key into an error.

mod body;

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Url, redirect};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use self::body::{Body, causes, silent};
use super::fault::Fault;
use super::secret::Secret;
use super::sse::{self, Decoder};
use super::{ModelError, Patience, Request};

/// A longer pause would outlive the leases and the people that wait for the answer.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// One event may hold a whole call with a file in its arguments.
const EVENT_MAX: usize = 4 * 1024 * 1024;
/// Where the explanation of an error is, if there is one.
const EXPLANATION_MAX: usize = 64 * 1024;
/// Enough to say what is wrong; the rest is someone's page layout.
const DETAIL_MAX: usize = 300;
/// After the last event, for the end of the body: then the connection can be used again.
const FAREWELL: Duration = Duration::from_millis(250);

/// What is wrong with a model's settings before anything was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    #[error("model `{model}`: `{url}` is not the address of a web server")]
    Address { model: String, url: String },
    #[error("model `{model}`: the key has characters that no header can carry")]
    Key { model: String },
    #[error("model `{model}`: cannot prepare for HTTP: {detail}")]
    Client { model: String, detail: String },
}

/// Puts an answer together, of events or of one document. Made anew for every try.
pub(crate) trait Reading: Send {
    type Whole;

    fn event(&mut self, event: &sse::Event) -> Result<Progress, Fault>;
    fn document(&mut self, document: &Value) -> Result<(), Fault>;
    /// Whether all was said, though the stream may go on.
    fn is_complete(&self) -> bool;
    /// Only called when complete.
    fn whole(self) -> Result<Self::Whole, Fault>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

/// The way to one model.
#[derive(Debug)]
pub(crate) struct Exchange {
    client: Client,
    /// As our configuration names it.
    model: String,
    url: Url,
    key: Option<Secret>,
    patience: Patience,
}

impl Exchange {
    /// The headers go with every request; one with the key in it is marked as sensitive by who
    /// made it.
    pub(crate) fn new(
        model: &str,
        url: &str,
        headers: HeaderMap,
        key: Option<Secret>,
        patience: Patience,
    ) -> Result<Exchange, SetupError> {
        let url = Url::parse(url)
            .ok()
            .filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host())
            .ok_or_else(|| SetupError::Address { model: model.to_owned(), url: url.to_owned() })?;
        let client = Client::builder()
            .user_agent(concat!("chancery/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .default_headers(headers)
            .build()
            .map_err(|it| SetupError::Client { model: model.to_owned(), detail: causes(it) })?;
        Ok(Exchange { client, model: model.to_owned(), url, key, patience })
    }

    /// Asks until there is an answer, a refusal, or no patience left. Without a request it is the
    /// system itself that asks.
    pub(crate) async fn ask<R: Reading>(
        &self,
        request: Option<&Request<'_>>,
        body: &Value,
        reading: impl Fn() -> R,
    ) -> Result<R::Whole, ModelError> {
        let headers = attribution(request);
        let body = Bytes::from(body.to_string());
        let mut pauses = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(self.patience.backoff)
            .with_max_delay(PAUSE_MAX)
            .with_max_times(self.patience.retries as usize)
            .build();
        let started = Instant::now();
        let mut tries = 0;
        loop {
            tries += 1;
            let left = self.patience.whole.saturating_sub(started.elapsed());
            let one = self.try_once(headers.clone(), body.clone(), reading());
            let fault = match timeout(left, one).await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(fault)) => fault,
                Err(_) => {
                    Fault::passing(format!("no whole answer within {:?}", self.patience.whole))
                }
            };
            let (detail, retry_after) = match fault {
                Fault::Passing { detail, retry_after } => (detail, retry_after),
                Fault::Refused(detail) => return Err(self.refused(&detail)),
                Fault::Malformed(detail) => return Err(self.malformed(&detail)),
            };
            match pauses.next().map(|it| pause(it, retry_after)) {
                Some(pause) if started.elapsed().saturating_add(pause) < self.patience.whole => {
                    tracing::warn!(
                        run.id = request.and_then(|it| it.run).map(tracing::field::display),
                        model = self.model,
                        tries,
                        "Model `{}` did not answer, trying again in {pause:?}",
                        self.model,
                    );
                    sleep(pause).await;
                }
                _ => return Err(self.unavailable(tries, &detail)),
            }
        }
    }

    async fn try_once<R: Reading>(
        &self,
        headers: HeaderMap,
        body: Bytes,
        reading: R,
    ) -> Result<R::Whole, Fault> {
        let sent = Instant::now();
        let send = self.client.post(self.url.clone()).headers(headers).body(body).send();
        let response = match timeout(self.patience.first_byte, send).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_builder() => return Err(Fault::Refused(causes(error))),
            Ok(Err(error)) => return Err(Fault::passing(causes(error))),
            Err(_) => return Err(silent(self.patience.first_byte)),
        };
        let status = response.status();
        let headers = response.headers().clone();
        let header = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
        let mut body = Body::new(response, sent, self.patience);
        if status.is_redirection() {
            let to = header(LOCATION).unwrap_or("nowhere");
            return Err(Fault::Refused(format!(
                "HTTP {} redirects to `{to}`: if that is right, make it the `base_url`",
                status.as_u16()
            )));
        }
        if !status.is_success() {
            let explanation = body.start(EXPLANATION_MAX).await;
            return Err(Fault::of_status(status, &headers, &explanation));
        }
        let kind = header(CONTENT_TYPE).unwrap_or("text/event-stream").to_ascii_lowercase();
        if kind.starts_with("text/event-stream") {
            read_stream(body, reading).await
        } else if kind.contains("json") {
            read_document(body, reading).await
        } else {
            let start = body.start(EXPLANATION_MAX).await;
            let start = String::from_utf8_lossy(&start);
            Err(Fault::Malformed(format!("neither a stream nor JSON but `{kind}`: {start}")))
        }
    }

    fn refused(&self, detail: &str) -> ModelError {
        ModelError::Refused { model: self.model.clone(), detail: self.detail(detail) }
    }

    fn malformed(&self, detail: &str) -> ModelError {
        ModelError::Malformed { model: self.model.clone(), detail: self.detail(detail) }
    }

    fn unavailable(&self, tries: u32, detail: &str) -> ModelError {
        let detail = self.detail(detail);
        ModelError::Unavailable { model: self.model.clone(), tries, detail }
    }

    /// One line that can be shown: first without the key and only then cut, or half of the key
    /// could stay.
    fn detail(&self, text: &str) -> String {
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        let line = text.split(|it: char| it.is_whitespace() || it.is_control());
        let line = line.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(DETAIL_MAX) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// As long as we were asked to wait, within reason. The back-off comes on top, for its jitter:
/// the others that were sent away were told the same time.
fn pause(backoff: Duration, retry_after: Option<Duration>) -> Duration {
    backoff + retry_after.unwrap_or_default().min(PAUSE_MAX)
}

/// Who asks, for a gateway in between that attributes cost.
fn attribution(request: Option<&Request<'_>>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let run = request.and_then(|it| it.run).map(|it| ("x-chancery-run", it.to_string()));
    let agent = request.map(|it| ("x-chancery-agent", it.agent.to_string()));
    for (name, value) in [run, agent].into_iter().flatten() {
        if let Ok(value) = HeaderValue::from_str(&percent_encoded(&value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

/// Names may be written in any script; headers are ASCII.
fn percent_encoded(name: &str) -> String {
    name.bytes().fold(String::with_capacity(name.len()), |mut text, byte| {
        match byte {
            b'!'..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
        text
    })
}

async fn read_stream<R: Reading>(mut body: Body, mut reading: R) -> Result<R::Whole, Fault> {
    let mut decoder = Decoder::new(EVENT_MAX);
    loop {
        let bytes = match body.next().await {
            Ok(Some(bytes)) => bytes,
            // Nothing is lost when only the farewell is missing.
            Ok(None) | Err(Fault::Passing { .. }) if reading.is_complete() => {
                return reading.whole();
            }
            Ok(None) => return Err(Fault::passing("the stream ended before the answer did")),
            Err(fault) => return Err(fault),
        };
        decoder.push(&bytes);
        while let Some(event) = decoder.next_event()? {
            if reading.event(&event)? == Progress::Done {
                let _ = timeout(FAREWELL, body.next()).await;
                return reading.whole();
            }
        }
    }
}

async fn read_document<R: Reading>(mut body: Body, mut reading: R) -> Result<R::Whole, Fault> {
    let mut bytes = Vec::new();
    while let Some(more) = body.next().await? {
        bytes.extend_from_slice(&more);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::passing("the answer is empty"));
    }
    let document = serde_json::from_slice(&bytes).map_err(|it| unreadable(&it, &bytes))?;
    reading.document(&document)?;
    reading.whole()
}

/// For a piece of an answer that is not the JSON that it should be.
pub(super) fn unreadable(error: &serde_json::Error, piece: &[u8]) -> Fault {
    // Far more than will be shown, so that no half of a key is left at the cut.
    let start = String::from_utf8_lossy(&piece[..piece.len().min(EXPLANATION_MAX)]);
    Fault::Malformed(format!("{error} in `{start}`"))
}

/// A header with the key in it, which no log will show.
pub(crate) fn key_header(model: &str, text: &str) -> Result<HeaderValue, SetupError> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| SetupError::Key { model: model.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_as_long_as_asked_for_but_never_unreasonable() {
        let (backoff, second) = (Duration::from_millis(5), Duration::from_secs(1));
        for (retry_after, expected) in [
            (None, backoff),
            (Some(7 * second), 7 * second + backoff),
            (Some(3600 * second), PAUSE_MAX + backoff),
        ] {
            assert_eq!(pause(backoff, retry_after), expected, "{retry_after:?}");
        }
    }

    #[test]
    fn a_name_in_any_script_fits_into_a_header() {
        assert_eq!(percent_encoded("pa/lin-1"), "pa/lin-1");
        assert_eq!(percent_encoded("林 1%\n"), "%E6%9E%97%201%25%0A");
    }
}
