//! The audit: for operators whole, for people what concerns them.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use chancery_api::audit::{Anchor, Entry, Verified};
use chancery_api::{Page, Problems};
use chancery_domain::id::{AgentId, AuditId, UserId};
use chancery_domain::policy::Ruling;
use chancery_runtime::clock;
use chancery_runtime::tool::config::Span;
use chancery_store::audit::{AuditFilter, Head, hex, unhex};
use futures_util::stream;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use crate::access::{Caller, Operator};
use crate::error::{ApiError, Result};
use crate::extract::{Params, asked, bad_request};
use crate::paging;
use crate::router::App;
use crate::view;
use crate::why::{self, Why};

/// Entries of an export that are in memory at once: in the worst case some megabytes.
const EXPORT_PAGE: u32 = 64;
/// The store counts with 63 bits; no chain is longer.
const SEQ_MAX: u64 = i64::MAX as u64;

/// Which entries: the same words narrow a list and an export.
macro_rules! narrowing {
    ($(#[$doc:meta])* $name:ident { $($more:tt)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize, IntoParams)]
        #[serde(deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            agent: Option<String>,
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            tool: Option<String>,
            #[param(pattern = "^(allow|require_approval|require_human|deny)?$")]
            ruling: Option<String>,
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            kind: Option<String>,
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            user: Option<String>,
            #[param(pattern = "^(run_[0-9a-f]{32})?$")]
            run: Option<String>,
            /// Written then or later: RFC 3339, or how long ago, such as `7d`.
            #[param(
                pattern = "^([1-9][0-9]?[smhd]|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?$"
            )]
            since: Option<String>,
            /// Written before: RFC 3339, or how long ago.
            #[param(
                pattern = "^([1-9][0-9]?[smhd]|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?$"
            )]
            until: Option<String>,
            $($more)*
        }

        impl $name {
            fn filter(self, caller: &Caller) -> Result<AuditFilter> {
                let params = self;
                // `?agent=` asks for no agent in particular.
                let said = |given: Option<String>| given.filter(|it| !it.is_empty());
                let run = said(params.run).map(|it| it.parse()).transpose();
                let whose = asked("user", params.user)?.map(UserId);
                let now = clock::now();
                Ok(AuditFilter {
                    agent: asked("agent", params.agent)?.map(AgentId),
                    tool: asked("tool", params.tool)?,
                    ruling: said(params.ruling).map(|it| known_ruling(&it)).transpose()?,
                    kind: asked("kind", params.kind)?,
                    user: caller.audited(whose)?,
                    run: run.map_err(|it| bad_request(format!("`run`: {it}")))?,
                    since: said(params.since).map(|it| moment("since", &it, now)).transpose()?,
                    until: said(params.until).map(|it| moment("until", &it, now)).transpose()?,
                })
            }
        }
    };
}

narrowing! { ListParams {
    /// At most 200; 50 unless said.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(maximum = 9223372036854775807i64)]
    cursor: Option<u64>,
} }

impl ListParams {
    /// Whether it asks for a page that is not the newest.
    pub fn is_older(&self) -> bool {
        self.cursor.is_some()
    }
}

narrowing! {
    /// An export has no pages.
    ExportParams {}
}

/// The newest entries first.
#[utoipa::path(get, path = "/api/audit", params(ListParams),
    responses((status = 200, body = Page<Entry>), Problems))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Page<Entry>>> {
    let (limit, cursor) = (paging::limit(params.limit), params.cursor);
    if cursor.is_some_and(|it| it > SEQ_MAX) {
        return Err(bad_request(format!("`cursor` is at most {SEQ_MAX}")));
    }
    let filter = params.filter(&caller)?;
    let found = app.store.audit_page(&filter, cursor, limit + 1).await?;
    Ok(paging::page(found, limit, |it| it.seq.to_string(), |it| view::audit::entry(&it)))
}

/// One entry, by the id that `chancery why` is asked for.
#[utoipa::path(get, path = "/api/audit/{id}", params(("id" = String, Path)),
    responses((status = 200, body = Entry), Problems))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Entry>> {
    let missing = || ApiError::NotFound { what: "entry", id: id.chars().take(64).collect() };
    let user = caller.audited(None)?;
    let parsed: AuditId = id.parse().map_err(|_| missing())?;
    let found = app.store.audit_entry(parsed).await?.ok_or_else(missing)?;
    let entry = view::audit::entry(&found);
    // What concerns somebody else is not there.
    if user.is_some_and(|it| entry.user.as_deref() != Some(it.as_str())) {
        return Err(missing());
    }
    let why = match found.link() {
        Ok(link) => why::of(&app, &caller, &link.entry).await?,
        Err(_) => Why::default(),
    };
    let now = why.now.map(view::audit::now);
    let (layers, ways) = (view::looked(why.layers), view::ways(why.ways));
    Ok(Json(Entry { layers, now, ways, ..entry }))
}

/// Every entry that matches, oldest first, a line each: `docs/audit.md` says how to check them.
#[utoipa::path(get, path = "/api/audit/export", params(ExportParams),
    responses((status = 200, body = String, content_type = "application/x-ndjson"), Problems))]
pub async fn export(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ExportParams>,
) -> Result<Response> {
    let filter = params.filter(&caller)?;
    // One that could not even begin is an error that can be read.
    let first = app.store.audit_after(&filter, 0, EXPORT_PAGE).await?;
    let lines = stream::try_unfold((app, filter, Some(first)), |(app, filter, page)| async move {
        // An export that is broken off must not look like one that is whole.
        if app.stop.is_cancelled() {
            return Err(ApiError::Unavailable("the server stops".to_owned()));
        }
        let Some(page) = page else { return Ok(None) };
        let text: String = page.iter().map(view::audit::line).collect();
        let next = match page.last().filter(|_| page.len() == EXPORT_PAGE as usize) {
            Some(last) => Some(app.store.audit_after(&filter, last.seq, EXPORT_PAGE).await?),
            None => None,
        };
        Ok::<_, ApiError>(Some((Bytes::from(text), (app, filter, next))))
    });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct VerifyParams {
    /// An anchor that was kept elsewhere: `SEQ:HASH`.
    #[param(pattern = "^([0-9]{1,18}:[0-9a-f]{64})?$")]
    anchor: Option<String>,
}

/// Recomputes the chain from its beginning.
#[utoipa::path(get, path = "/api/audit/verify", params(VerifyParams),
    responses((status = 200, body = Verified), Problems))]
pub async fn verify(
    State(app): State<App>,
    _: Operator,
    Params(params): Params<VerifyParams>,
) -> Result<Json<Verified>> {
    let anchor = params.anchor.filter(|it| !it.is_empty());
    let anchor = anchor.map(|it| parse_anchor(&it)).transpose()?;
    let verified = app.store.audit_verify(anchor).await?;
    Ok(Json(Verified {
        ok: verified.ok(),
        entries: verified.entries,
        head: hex(&verified.head.hash),
        from: verified.from,
        to: verified.to,
        first_bad: verified.first_bad.as_ref().map(|it| it.seq),
        why: verified.first_bad.map(|it| it.to_string()),
    }))
}

/// Where the chain ends: what is kept of it elsewhere shows later what was cut off or rewritten.
#[utoipa::path(get, path = "/api/audit/anchor",
    responses((status = 200, body = Anchor), Problems))]
pub async fn anchor(State(app): State<App>, _: Operator) -> Result<Json<Anchor>> {
    let (Head { seq, hash }, at) = app.store.audit_head().await?;
    Ok(Json(Anchor { seq, hash: hex(&hash), at }))
}

pub(crate) fn parse_anchor(given: &str) -> Result<Head> {
    let parsed = given.split_once(':').and_then(|(seq, hash)| {
        let seq: u64 = seq.parse().ok().filter(|it| *it <= SEQ_MAX)?;
        Some(Head { seq, hash: unhex(hash)? })
    });
    parsed.ok_or_else(|| bad_request("`anchor` is not of the form `SEQ:HASH`".to_owned()))
}

fn known_ruling(given: &str) -> Result<Ruling> {
    [Ruling::Allow, Ruling::RequireApproval, Ruling::RequireHuman, Ruling::Deny]
        .into_iter()
        .find(|it| it.as_str() == given)
        .ok_or_else(|| bad_request(format!("there is no ruling `{given}`")))
}

/// A time, or how long ago.
pub(super) fn moment(name: &str, given: &str, now: Timestamp) -> Result<Timestamp> {
    if let Ok(time) = given.parse::<Timestamp>() {
        return Ok(time);
    }
    let ago = Span::try_from(Value::String(given.to_owned())).ok();
    ago.and_then(|it| now.checked_sub(it.0).ok()).ok_or_else(|| {
        bad_request(format!(
            "`{name}` is neither a time such as `2026-02-01T00:00:00Z` nor how long ago, such as `7d`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_how_long_ago() {
        let now: Timestamp = "2026-02-08T12:00:00Z".parse().unwrap();
        for (given, expected) in [
            ("7d", Some("2026-02-01T12:00:00Z")),
            ("90m", Some("2026-02-08T10:30:00Z")),
            ("2026-02-01T00:00:00Z", Some("2026-02-01T00:00:00Z")),
            ("2026-02-01T02:00:00+02:00", Some("2026-02-01T00:00:00Z")),
            ("yesterday", None),
            ("-7d", None),
            ("999999d", None),
            ("2026-02-30T00:00:00Z", None),
        ] {
            let read = moment("since", given, now).ok().map(|it| it.to_string());
            assert_eq!(read.as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn an_anchor_has_one_form() {
        let hash = "0a".repeat(32);
        assert_eq!(parse_anchor(&format!("7:{hash}")).unwrap(), Head { seq: 7, hash: [10; 32] });
        for bad in ["", "7", "7:", ":0a", "x:0a", &format!("-1:{hash}"), &format!("7:{hash}0")] {
            assert!(parse_anchor(bad).is_err(), "{bad}");
        }
        assert!(parse_anchor(&format!("9999999999999999999:{hash}")).is_err());
        assert!(parse_anchor(&format!("7:{}", hash.to_uppercase())).is_err());
    }
}
