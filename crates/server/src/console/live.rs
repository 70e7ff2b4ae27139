//! What a page is told while it is looked at: that something of it is stale, and how many
//! questions wait. It carries nothing else; the page asks for itself anew.

mod watch;

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::HeaderValue;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use chancery_domain::id::{PermissionId, UserId};
use chancery_runtime::clock;
use chancery_store::Changed;
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use tokio::sync::broadcast;

use super::visitor::Visitor;
use watch::{Seen, Watch};

use crate::error::Result;
use crate::router::App;

/// Waking is a hint; this often a stream looks without one.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
pub struct Params {
    /// What [`Watch::of`] knows; nothing: only what waits.
    #[serde(default)]
    watch: String,
}

/// How it all stood when it was last looked at.
#[derive(Debug, Clone, PartialEq)]
struct Mark {
    waiting: u64,
    newest: Option<PermissionId>,
    seen: Seen,
}

struct Follower {
    app: App,
    /// The visit that it belongs to, and ends with.
    visit: [u8; 32],
    asked_for: Option<UserId>,
    watch: Watch,
    changes: broadcast::Receiver<Changed>,
    last: Option<Mark>,
}

pub async fn events(
    State(app): State<App>,
    visitor: Visitor,
    Query(Params { watch }): Query<Params>,
) -> Result<Response> {
    let watch = Watch::of(&app, &visitor, &watch).await?;
    let asked_for = visitor.caller.asked_for(&app)?;
    let changes = app.store.bell().changes();
    let visit = visitor.digest;
    let follower = Follower { app, visit, asked_for, watch, changes, last: None };
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(15)).text("here");
    let mut response = Sse::new(frames(follower)).keep_alive(keep_alive).into_response();
    // Proxies that buffer would hold the events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn frames(follower: Follower) -> impl Stream<Item = std::result::Result<Frame, Infallible>> {
    stream::unfold(follower, |mut follower| async move {
        loop {
            if follower.app.stop.is_cancelled() || follower.is_over().await {
                return None;
            }
            // The store may be away: it is looked at again.
            if let Ok(mark) = follower.look().await
                && follower.last.as_ref() != Some(&mark)
            {
                // The first look says how it stands; the page was drawn a moment ago, and what
                // came in between must not be lost: it is stale then, too.
                let frame = Frame::default().event("stale").data(mark.waiting.to_string());
                follower.last = Some(mark);
                return Some((Ok(frame), follower));
            }
            follower.wait().await;
        }
    })
}

impl Follower {
    /// Whether whoever looks has been signed out since. A store that is away does not say so.
    async fn is_over(&self) -> bool {
        matches!(self.app.store.visit(self.visit, clock::now()).await, Ok(None))
    }

    async fn look(&self) -> Result<Mark> {
        let pending = self.app.store.pending(self.asked_for.as_ref()).await?;
        let seen = self.watch.look(&self.app).await?;
        Ok(Mark { waiting: pending.count, newest: pending.newest, seen })
    }

    /// Until something has changed somewhere, and a moment longer.
    async fn wait(&mut self) {
        let look = tokio::time::sleep(LOOK);
        tokio::select! {
            changed = self.changes.recv() => {
                if matches!(changed, Err(broadcast::error::RecvError::Closed)) {
                    return tokio::time::sleep(LOOK).await;
                }
            }
            () = look => return,
            () = self.app.stop.cancelled() => return,
        }
        tokio::time::sleep(self.watch.gather()).await;
        // What has come meanwhile is seen by the same look.
        self.changes = self.changes.resubscribe();
    }
}
