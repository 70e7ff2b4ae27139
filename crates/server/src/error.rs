//! Where a failure gets its status: problem+json (RFC 9457), here only.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chancery_api::Problem;
use chancery_domain::command::Refusal;
use chancery_domain::mail::Rejection;
use chancery_domain::memory;
use chancery_domain::policy::Reason;
use chancery_runtime::consult::ConsultError;
use chancery_runtime::fork;
use chancery_store::{AppendError, StoreError};

use crate::organisation::reload::ChangeError;
use crate::organisation::{Mistake, Severity};
use crate::view;

/// What a request can come to when it does not come to what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("{detail}")]
    BadRequest { code: &'static str, detail: String },
    #[error("a valid token is needed: `Authorization: Bearer …`")]
    Unauthenticated,
    #[error("{0}")]
    Forbidden(String),
    /// A ruling stands against it.
    #[error("{}", deciding(.0))]
    Denied(Vec<Reason>),
    /// A mail that is not delivered.
    #[error("{0}")]
    Rejected(Rejection),
    /// Also for what belongs to someone else.
    #[error("there is no {what} `{id}`")]
    NotFound { what: &'static str, id: String },
    /// Nobody by that name whom the caller may address.
    #[error("there is no model `{0}`: `GET /v1/models` lists those that there are")]
    NoModel(String),
    /// A run, or a model, that ends without an answer. Asking again would be asking for it twice.
    #[error("{detail}")]
    NoAnswer { code: &'static str, detail: String },
    #[error("there is nothing here")]
    NoRoute,
    #[error("this is not done with {0}")]
    Method(String),
    #[error("{detail}")]
    Conflict { code: &'static str, detail: String },
    #[error("{detail}")]
    Unprocessable { code: &'static str, detail: String },
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// Seconds until there is room again.
    #[error("too many requests: there is room again in {0} s")]
    TooMany(u64),
    #[error("the request took too long to arrive")]
    Slow,
    /// What a layer below said without a word of ours.
    #[error("the request cannot be read")]
    Unreadable(StatusCode),
    /// What the layer of a protocol said, in its own words.
    #[error("{detail}")]
    Protocol { status: StatusCode, detail: String },
    /// Why is in the log, not on the wire.
    #[error("the store is not available just now")]
    Unavailable(String),
    #[error("the store cannot write: the disk is full")]
    DiskFull,
    /// Files that cannot be put in force.
    #[error("the organisation's files have mistakes: {}", first_of(.0))]
    Organisation(Vec<Mistake>),
    /// A mistake of ours: the detail is in the log, not on the wire.
    #[error("something went wrong in the server")]
    Internal(String),
}

pub type Result<T> = std::result::Result<T, ApiError>;

impl ApiError {
    fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            ApiError::BadRequest { code, .. } => (StatusCode::BAD_REQUEST, code),
            ApiError::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated"),
            ApiError::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden"),
            ApiError::Denied(_) => (StatusCode::FORBIDDEN, "PERMISSION_DENIED"),
            ApiError::Rejected(_) => (StatusCode::FORBIDDEN, "mail_rejected"),
            ApiError::NotFound { .. } | ApiError::NoRoute => (StatusCode::NOT_FOUND, "not_found"),
            ApiError::NoModel(_) => (StatusCode::NOT_FOUND, "model_not_found"),
            ApiError::NoAnswer { code, .. } => (StatusCode::BAD_GATEWAY, code),
            ApiError::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            ApiError::Conflict { code, .. } => (StatusCode::CONFLICT, code),
            ApiError::Unprocessable { code, .. } => (StatusCode::UNPROCESSABLE_ENTITY, code),
            ApiError::Organisation(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_organisation"),
            ApiError::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            ApiError::TooMany(_) => (StatusCode::TOO_MANY_REQUESTS, "too_many_requests"),
            ApiError::Slow => (StatusCode::REQUEST_TIMEOUT, "too_slow"),
            ApiError::Unreadable(status) => (*status, "unreadable"),
            ApiError::Protocol { status, .. } => (*status, "protocol"),
            ApiError::Unavailable(_) | ApiError::DiskFull => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
            }
            ApiError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }

    pub fn problem(&self) -> Problem {
        let (status, code) = self.status_and_code();
        Problem {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: shortened(self.to_string()),
            reasons: match self {
                ApiError::Denied(reasons) => view::reasons(reasons.clone()),
                _ => Vec::new(),
            },
            step: match self {
                ApiError::Rejected(it) => Some(it.step.as_str().to_owned()),
                _ => None,
            },
            contacts: match self {
                ApiError::Rejected(it) => it.contacts.clone(),
                _ => Vec::new(),
            },
            mistakes: match self {
                ApiError::Organisation(mistakes) => {
                    mistakes.iter().map(view::org::mistake).collect()
                }
                _ => Vec::new(),
            },
        }
    }
}

impl ApiError {
    /// What is not on the wire is in the log.
    pub fn log(&self) {
        match self {
            ApiError::Internal(detail) => tracing::error!(detail, "A request failed: {detail}"),
            ApiError::Unavailable(detail) => {
                tracing::warn!(detail, "A request met no store: {detail}");
            }
            _ => {}
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let (status, _) = self.status_and_code();
        // A client in the middle of a body that nobody reads would ask again over its middle.
        let unread = matches!(self, ApiError::TooLarge(_) | ApiError::Slow);
        let problem = self.problem();
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (status, body).into_response();
        // Some clients want it in another form.
        response.extensions_mut().insert(problem);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self, ApiError::NoAnswer { .. } | ApiError::Conflict { .. }) {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if let ApiError::TooMany(seconds) = self {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if unread {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

fn deciding(reasons: &[Reason]) -> String {
    match reasons.first() {
        Some(it) => format!("{} (layer `{}`, rule `{}`)", it.detail, it.layer, it.rule),
        None => "denied".to_owned(),
    }
}

/// The longest detail, in characters: it may quote what it was given, and that may be anything.
const DETAIL_MAX: usize = 500;

fn shortened(detail: String) -> String {
    match detail.char_indices().nth(DETAIL_MAX) {
        Some((end, _)) => format!("{}…", &detail[..end]),
        None => detail,
    }
}

/// Errors that were not made here, by axum or by a layer, made ours.
pub async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let ours = response
        .headers()
        .get(header::CONTENT_TYPE)
        // JSON-RPC has errors of its own.
        .is_some_and(|it| {
            [&b"application/problem+json"[..], b"application/json"].contains(&it.as_bytes())
        });
    if !is_error || ours {
        return response;
    }
    match status {
        StatusCode::NOT_FOUND => ApiError::NoRoute.into_response(),
        status if status.is_client_error() => ApiError::Unreadable(status).into_response(),
        status => ApiError::Internal(format!("a layer answered {status}")).into_response(),
    }
}

fn first_of(mistakes: &[Mistake]) -> String {
    let first = mistakes.iter().find(|it| it.severity == Severity::Error);
    first.map(ToString::to_string).unwrap_or_default()
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> ApiError {
        match error {
            ChangeError::Mistakes(mistakes) => ApiError::Organisation(mistakes),
            ChangeError::Store(error) => error.into(),
            ChangeError::Overtaken => {
                ApiError::Conflict { code: "organisation_changed", detail: error.to_string() }
            }
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        match error {
            StoreError::DiskFull => ApiError::DiskFull,
            StoreError::Unreachable(_) | StoreError::Failed(_) | StoreError::Closed => {
                ApiError::Unavailable(error.to_string())
            }
            StoreError::Unreadable(_) => ApiError::Internal(error.to_string()),
        }
    }
}

impl From<AppendError> for ApiError {
    fn from(error: AppendError) -> ApiError {
        match error {
            AppendError::Store(error) => error.into(),
            AppendError::NoSuchRun(run) => ApiError::NotFound { what: "run", id: run.to_string() },
            AppendError::Conflict { .. } | AppendError::LeaseLost(_) => {
                ApiError::Internal(error.to_string())
            }
        }
    }
}

impl From<ConsultError> for ApiError {
    fn from(error: ConsultError) -> ApiError {
        let detail = error.to_string();
        match error {
            ConsultError::Fold(_) => ApiError::Internal(detail),
            ConsultError::Gone(_) | ConsultError::Outside => {
                ApiError::Conflict { code: "nobody_to_ask", detail }
            }
            ConsultError::Silent | ConsultError::Model(_) => {
                ApiError::NoAnswer { code: "no_answer", detail }
            }
        }
    }
}

impl From<fork::Refusal> for ApiError {
    fn from(refusal: fork::Refusal) -> ApiError {
        let detail = refusal.to_string();
        let code = match refusal {
            fork::Refusal::NoBeginning => return ApiError::Internal(detail),
            fork::Refusal::Group | fork::Refusal::Beneath | fork::Refusal::Outside => {
                "not_forkable"
            }
            fork::Refusal::NoSuchPlace { .. } => "no_such_place",
            fork::Refusal::TooLong(_) => "too_long",
        };
        ApiError::Unprocessable { code, detail }
    }
}

impl From<memory::Refusal> for ApiError {
    fn from(refusal: memory::Refusal) -> ApiError {
        let detail = refusal.to_string();
        match refusal {
            memory::Refusal::NoGroup => ApiError::BadRequest { code: "bad_request", detail },
            memory::Refusal::OthersUser => ApiError::Forbidden(detail),
            memory::Refusal::PreferenceKind
            | memory::Refusal::PreferenceOfNobody
            | memory::Refusal::NotPersonsOwn
            | memory::Refusal::NotAGroup => ApiError::Unprocessable { code: "not_here", detail },
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        let detail = refusal.to_string();
        match refusal {
            Refusal::Ended(_) => ApiError::Conflict { code: "run_ended", detail },
            Refusal::UnknownKey(key) => {
                ApiError::NotFound { what: "wait for", id: key.to_string() }
            }
            Refusal::UnknownPermission(id) => {
                ApiError::NotFound { what: "permission", id: id.to_string() }
            }
            Refusal::HumanRequired(_) => ApiError::Forbidden(detail),
            Refusal::Decided { .. } => ApiError::Conflict { code: "already_decided", detail },
            Refusal::NoExpiry(_) => ApiError::Conflict { code: "does_not_expire", detail },
            Refusal::AskedEnough(_) => ApiError::Conflict { code: "asked_enough", detail },
            Refusal::LongEnough(_) => ApiError::Conflict { code: "long_enough", detail },
            Refusal::Payload => ApiError::BadRequest { code: "bad_payload", detail },
            Refusal::NoSuchMember(_) => ApiError::BadRequest { code: "unknown_member", detail },
            Refusal::NotResumable(_) => ApiError::Conflict { code: "not_resumable", detail },
            Refusal::Illegal(_) => ApiError::Conflict { code: "not_legal_now", detail },
        }
    }
}
