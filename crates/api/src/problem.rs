//! What an error looks like: problem+json (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};

use crate::org::Mistake;
use crate::permission::Reason;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the code says which problem it is.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// A word that programs can match.
    pub code: String,
    /// A sentence for people.
    pub detail: String,
    /// Where a ruling caused it: every layer that spoke.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Where the route of a mail caused it: the step that rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Where the route of a mail caused it: whom the sender may write to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contacts: Vec<String>,
    /// Where files caused it: everything that is wrong with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<Mistake>,
}

/// What any request may come to when it does not come to what was asked; for the document.
#[derive(Debug, IntoResponses)]
pub enum Problems {
    /// The request cannot be met: `code` says why.
    #[response(status = "4XX", content_type = "application/problem+json")]
    OfTheRequest(Problem),
    /// The server, or its store, cannot just now.
    #[response(status = "5XX", content_type = "application/problem+json")]
    OfTheServer(Problem),
}
