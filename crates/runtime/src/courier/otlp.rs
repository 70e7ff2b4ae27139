//! A subscriber that collects traces: OTLP over HTTP, in its JSON form.

use std::time::Duration;

use chancery_domain::event::Recorded;
use chancery_store::outbox::Notice;
use chancery_store::{Store, StoreError};
use serde_json::{Value, json};

use super::TRIAL;
use super::spans::{Span, spans};

/// How much of a log is read at once, and how much of one becomes a trace.
const PAGE: u32 = 500;
const EVENTS_MAX: usize = 10_000;
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct OtlpSubscriber {
    /// Of the collector, without `/v1/traces`.
    pub endpoint: String,
    pub headers: Vec<(String, String)>,
    pub service_name: String,
}

impl OtlpSubscriber {
    pub(super) async fn send(
        &self,
        store: &Store,
        client: &reqwest::Client,
        notice: &Notice,
    ) -> Result<(), String> {
        let events = log(store, notice).await.map_err(|it| it.to_string())?;
        let spans = spans(notice.run, &events);
        // A collector that is tried out is sent a trace of nothing.
        if spans.is_empty() && notice.topic != TRIAL {
            return Ok(());
        }
        let url = format!("{}/v1/traces", self.endpoint.trim_end_matches('/'));
        let mut request = client.post(url).timeout(TIMEOUT).json(&self.body(&spans));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("status {}", answer.status())),
            // The address may hold a secret: it is not for the log.
            Err(error) => Err(error.without_url().to_string()),
        }
    }

    fn body(&self, spans: &[Span]) -> Value {
        let resource = [("service.name", json!(self.service_name))];
        let scope = json!({ "name": "chancery", "version": env!("CARGO_PKG_VERSION") });
        json!({ "resourceSpans": [{
            "resource": { "attributes": attributes(&resource) },
            "scopeSpans": [{ "scope": scope, "spans": spans.iter().map(span).collect::<Vec<_>>() }],
        }] })
    }
}

async fn log(store: &Store, notice: &Notice) -> Result<Vec<Recorded>, StoreError> {
    let mut events: Vec<Recorded> = Vec::new();
    while events.len() < EVENTS_MAX {
        let after = events.last().map_or(0, |it| it.seq);
        let page = store.events(notice.run, after, PAGE).await?;
        // What came after the end that we were told of is of another notice.
        let whole = page.len() < PAGE as usize;
        events.extend(page.into_iter().take_while(|it| it.seq <= notice.seq));
        if whole || events.last().is_some_and(|it| it.seq >= notice.seq) {
            break;
        }
    }
    Ok(events)
}

fn span(it: &Span) -> Value {
    let nanos = |at: jiff::Timestamp| at.as_nanosecond().to_string();
    // 1: of no kind in particular; 2: an error.
    let mut span = json!({
        "traceId": it.trace, "spanId": it.id, "name": it.name, "kind": 1,
        "startTimeUnixNano": nanos(it.start), "endTimeUnixNano": nanos(it.end),
        "attributes": attributes(&it.attributes),
    });
    if let Some(parent) = &it.parent {
        span["parentSpanId"] = json!(parent);
    }
    if let Some(error) = &it.error {
        span["status"] = json!({ "code": 2, "message": error });
    }
    span
}

/// Numbers are texts in this form, for JSON's own are too small.
fn attributes(all: &[(&'static str, Value)]) -> Vec<Value> {
    let known = all.iter().filter(|it| !it.1.is_null());
    let attribute = |(key, value): &(&'static str, Value)| match value {
        Value::Number(it) if it.is_f64() => json!({ "key": key, "value": { "doubleValue": it } }),
        Value::Number(it) => json!({ "key": key, "value": { "intValue": it.to_string() } }),
        Value::String(it) => json!({ "key": key, "value": { "stringValue": it } }),
        other => json!({ "key": key, "value": { "stringValue": other.to_string() } }),
    };
    known.map(attribute).collect()
}

// Without its headers, which may hold a key.
impl std::fmt::Debug for OtlpSubscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpSubscriber")
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}
