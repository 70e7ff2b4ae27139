//! The body of an answer as it comes over the wire: in time, within a limit, or as a fault.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout};

use crate::model::Patience;
use crate::model::fault::Fault;

/// A frame around each token makes a stream some thirty times as long as its words: this is
/// still a megabyte of words, more than any model says at once.
const ANSWER_MAX: usize = 32 * 1024 * 1024;

/// Bytes as they come, each in its time, and not too many.
pub(super) struct Body {
    response: Response,
    sent: Instant,
    begun: bool,
    size: usize,
    patience: Patience,
}

impl Body {
    pub(super) fn new(response: Response, sent: Instant, patience: Patience) -> Body {
        Body { response, sent, begun: false, size: 0, patience }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        // A far side may send its headers long before it has anything to say.
        let (patience, left) = match self.begun {
            true => (self.patience.between, self.patience.between),
            false => {
                let first = self.patience.first_byte;
                (first, first.saturating_sub(self.sent.elapsed()))
            }
        };
        let bytes = match timeout(left, self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => return Ok(None),
            Ok(Err(error)) => return Err(Fault::passing(causes(error))),
            Err(_) => return Err(silent(patience)),
        };
        self.begun = true;
        self.size += bytes.len();
        match self.size > ANSWER_MAX {
            true => Err(Fault::Malformed(format!("the answer is longer than {ANSWER_MAX} bytes"))),
            false => Ok(Some(bytes)),
        }
    }

    /// For explanations: as much as there is of it, whatever happens then.
    pub(super) async fn start(&mut self, limit: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while start.len() < limit
            && let Ok(Some(bytes)) = self.next().await
        {
            start.extend_from_slice(&bytes);
        }
        start.truncate(limit);
        start
    }
}

pub(super) fn silent(patience: Duration) -> Fault {
    Fault::passing(format!("not a byte came within {patience:?}"))
}

/// An error with what is behind it: the outermost one alone says only that it failed. Without
/// the address, which may hold a key of its own.
pub(super) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
