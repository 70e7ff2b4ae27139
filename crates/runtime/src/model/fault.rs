//! What went wrong in one try, and whether another try may help. Decides only: waiting and
//! trying again are the business of [`super::exchange`].

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::sse::SseError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It may pass by itself.
    Passing {
        detail: String,
        /// What the far side asked us to wait.
        retry_after: Option<Duration>,
    },
    /// The far side will say the same again.
    Refused(String),
    /// It is no answer of the protocol.
    Malformed(String),
}

impl Fault {
    pub(super) fn passing(detail: impl Into<String>) -> Fault {
        Fault::Passing { detail: detail.into(), retry_after: None }
    }

    /// An answer that is an error by its status.
    pub(super) fn of_status(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Fault {
        let detail = format!("HTTP {}: {}", status.as_u16(), said(body));
        if is_passing(status.as_u16().into()) {
            return Fault::Passing { detail, retry_after: retry_after(headers) };
        }
        Fault::Refused(detail)
    }

    /// An `error` object where an answer should be. The request had been accepted, so whatever
    /// is not known to be its fault is taken for an accident of the far side.
    pub(crate) fn of_error(error: &Value) -> Fault {
        let detail = words(error);
        let code = error.get("code").and_then(Value::as_u64);
        let named = |key| error.get(key).and_then(Value::as_str);
        let refused = code.is_some_and(|code| (400..500).contains(&code) && !is_passing(code))
            || ["type", "code"].into_iter().filter_map(named).any(|it| REFUSALS.contains(&it));
        if refused { Fault::Refused(detail) } else { Fault::passing(detail) }
    }
}

impl From<SseError> for Fault {
    fn from(error: SseError) -> Fault {
        Fault::Malformed(error.to_string())
    }
}

/// Errors that come back however often one asks, by their names in both protocols.
const REFUSALS: &[&str] = &[
    "authentication_error",
    "billing_error",
    "context_length_exceeded",
    "insufficient_quota",
    "invalid_api_key",
    "invalid_request_error",
    "model_not_found",
    "not_found_error",
    "permission_error",
    "request_too_large",
    "BadRequestError",
    "NotFoundError",
];

/// Too slow, too many, and whatever is wrong on the far side (529: Anthropic's "overloaded").
fn is_passing(status: u64) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// What an error's body says, in as few words as it allows.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    if text.trim().is_empty() {
        return "no explanation".to_owned();
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(document) => words(document.get("error").unwrap_or(&document)),
        Err(_) => text.into_owned(),
    }
}

fn words(error: &Value) -> String {
    let message = ["message", "detail"].iter().find_map(|key| error.get(key)?.as_str());
    let kind = ["code", "type"].iter().find_map(|key| error.get(key)?.as_str());
    match (error.as_str().or(message), kind) {
        (Some(message), Some(kind)) => format!("{message} ({kind})"),
        (Some(message), None) => message.to_owned(),
        (None, _) => error.to_string(),
    }
}

/// In milliseconds (as some providers say it), in seconds, or as a date: the latter is measured
/// against the answer's own date, so that our clock need not agree with theirs.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok()).map(str::trim);
    if let Some(millis) = headers.get("retry-after-ms").and_then(|it| it.to_str().ok()) {
        return millis.trim().parse().ok().map(Duration::from_millis);
    }
    let after = text(RETRY_AFTER)?;
    if let Ok(seconds) = after.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    date(after)?.duration_since(date(text(DATE)?)?).try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn retry_after_is_read_in_all_three_spellings() {
        for (pairs, expected) in [
            (&[][..], None),
            (&[("retry-after", "7")], Some(Duration::from_secs(7))),
            (&[("retry-after", "7"), ("retry-after-ms", "20")], Some(Duration::from_millis(20))),
            (
                &[
                    ("retry-after", "Sun, 15 Nov 2026 10:00:09 GMT"),
                    ("date", "Sun, 15 Nov 2026 10:00:00 GMT"),
                ],
                Some(Duration::from_secs(9)),
            ),
            (&[("retry-after", "Sun, 15 Nov 2026 10:00:09 GMT")], None),
            // A date that has passed, and words.
            (
                &[
                    ("retry-after", "Sun, 15 Nov 2026 09:00:00 GMT"),
                    ("date", "Sun, 15 Nov 2026 10:00:00 GMT"),
                ],
                None,
            ),
            (&[("retry-after", "soon")], None),
        ] {
            assert_eq!(retry_after(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn only_trouble_on_the_far_side_is_passing() {
        let passing: Vec<u16> = (300..600)
            .filter(|code| {
                let status = StatusCode::from_u16(*code).unwrap();
                matches!(Fault::of_status(status, &HeaderMap::new(), b""), Fault::Passing { .. })
            })
            .collect();
        let expected: Vec<u16> = [408, 429].into_iter().chain(500..600).collect();
        assert_eq!(passing, expected);
    }

    #[test]
    fn an_error_inside_an_answer_is_refused_only_when_the_request_is_to_blame() {
        let refused = |text: &str| Fault::Refused(text.to_owned());
        for (error, expected) in [
            (
                json!({"message": "no", "type": "invalid_request_error"}),
                refused("no (invalid_request_error)"),
            ),
            (json!({"message": "no", "code": 400}), refused("no")),
            (
                json!({"message": "no", "type": null, "code": "model_not_found"}),
                refused("no (model_not_found)"),
            ),
            (json!({"message": "wait", "code": 429}), Fault::passing("wait")),
            (
                json!({"message": "wait", "type": "overloaded_error"}),
                Fault::passing("wait (overloaded_error)"),
            ),
            (json!({"odd": true}), Fault::passing(r#"{"odd":true}"#)),
            (json!("gone"), Fault::passing("gone")),
        ] {
            assert_eq!(Fault::of_error(&error), expected, "{error}");
        }
    }
}
