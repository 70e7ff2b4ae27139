//! Live events of a run, by sequence number: what is in the log, then what comes, read from the
//! log each time. The bell only says when to look.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use chancery_domain::id::{RunId, TokenId};
use chancery_store::{Changed, Store};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::error::{ApiError, Result};
use crate::extract::bad_request;
use crate::router::App;
use crate::view;

/// Waking is a hint; this often a stream looks without one.
const LOOK: Duration = Duration::from_secs(1);
const PAGE: u32 = 256;

/// Whether what a stream was opened with still holds: it ends when that is taken back.
#[derive(Debug)]
pub struct Hold {
    store: Store,
    token: TokenId,
    /// When it was last looked at.
    looked: Instant,
}

impl Hold {
    pub fn new(app: &App, token: TokenId) -> Hold {
        Hold { store: app.store.clone(), token, looked: Instant::now() }
    }

    /// Whether the token was taken back since, looked at no more often than a run is without a
    /// hint. A store that is away does not say so.
    pub async fn is_over(&mut self) -> bool {
        if self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = Instant::now();
        match self.store.token(self.token).await {
            Ok(token) => token.is_none_or(|it| it.revoked_at.is_some()),
            Err(_) => false,
        }
    }
}

struct Follower {
    app: App,
    run: RunId,
    by: Hold,
    after: u64,
    changes: broadcast::Receiver<Changed>,
    buffer: std::vec::IntoIter<Frame>,
    ended: bool,
}

/// The stream ends when the run has ended and all of its events were sent.
pub fn live(app: App, run: RunId, by: TokenId, after: u64) -> Response {
    let changes = app.store.bell().changes();
    let (by, buffer) = (Hold::new(&app, by), Vec::new().into_iter());
    let follower = Follower { app, run, by, after, changes, buffer, ended: false };
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(15)).text("here");
    let mut response = Sse::new(frames(follower)).keep_alive(keep_alive).into_response();
    // Proxies that buffer would hold the events back.
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(given) = headers.get("last-event-id") else { return Ok(None) };
    let parsed = given.to_str().ok().and_then(|it| it.trim().parse().ok());
    parsed.map(Some).ok_or_else(|| bad_request("`Last-Event-ID` is not a number".to_owned()))
}

fn frames(follower: Follower) -> impl Stream<Item = std::result::Result<Frame, Infallible>> {
    stream::unfold(follower, |mut follower| async move {
        loop {
            if let Some(frame) = follower.buffer.next() {
                return Some((Ok(frame), follower));
            }
            if follower.ended || follower.app.stop.is_cancelled() || follower.by.is_over().await {
                return None;
            }
            match follower.read().await {
                Ok(0) => follower.wait().await,
                Ok(_) => {}
                // The store is away: it may be back when we look again.
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    })
}

impl Follower {
    /// Reads on, and answers how many events there were.
    async fn read(&mut self) -> Result<usize> {
        let found = self.app.store.events(self.run, self.after, PAGE).await?;
        let n = found.len();
        let mut frames = Vec::with_capacity(n);
        for recorded in found {
            self.after = recorded.seq;
            self.ended =
                matches!(recorded.event.kind(), "run.completed" | "run.failed" | "run.cancelled");
            let event = view::event(recorded)?;
            let data =
                serde_json::to_string(&event).map_err(|it| ApiError::Internal(it.to_string()))?;
            frames.push(Frame::default().id(event.seq.to_string()).event(event.kind).data(data));
        }
        // What looks like the end of a full page may have been resumed on the next.
        self.ended &= n < PAGE as usize;
        self.buffer = frames.into_iter();
        if n == 0 {
            // Someone who has seen the end already has nothing to wait for.
            let row = self.app.store.run(self.run).await?;
            self.ended = row.is_none_or(|row| row.ended_at.is_some() && row.seq <= self.after);
        }
        Ok(n)
    }

    async fn wait(&mut self) {
        if self.ended {
            return;
        }
        changed(&mut self.changes, self.run, &self.app.stop).await;
    }
}

/// Returns when a run may have changed, or when it is time to look without a hint.
pub async fn changed(
    changes: &mut broadcast::Receiver<Changed>,
    run: RunId,
    stop: &CancellationToken,
) {
    let look = tokio::time::sleep(LOOK);
    tokio::pin!(look);
    loop {
        tokio::select! {
            changed = changes.recv() => match changed {
                Ok(Changed::Driven(other) | Changed::Outside(other)) if other != run => {}
                Err(broadcast::error::RecvError::Closed) => return (&mut look).await,
                _ => return,
            },
            () = &mut look => return,
            () = stop.cancelled() => return,
        }
    }
}
