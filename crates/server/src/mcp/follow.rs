//! Waits for what becomes of a call, and tells the client meanwhile. The waiting is the client's:
//! whoever goes away loses nothing but the wait.

use std::time::Duration;

use chancery_domain::event::Event;
use chancery_domain::id::RunId;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ProgressNotificationParam};
use rmcp::service::RequestContext;
use tokio::time::Instant;

use super::answer;
use super::standing::{Standing, UNDER_WAY, standing};
use crate::access::Outsider;
use crate::config::OnAsk;
use crate::error::{ApiError, Result};
use crate::router::App;
use crate::stream::{self, Hold};

/// Clients and proxies give up on a connection that is silent for longer.
const TELL: Duration = Duration::from_secs(10);

pub(super) struct Followed<'f> {
    pub run: RunId,
    pub tool: &'f str,
    /// Whether the client is shown where a person answers before it waits.
    pub hint: bool,
}

/// Answers when the call has its result, or when nobody is to wait for it any longer.
pub(super) async fn follow(
    app: &App,
    outsider: &Outsider,
    followed: &Followed<'_>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse> {
    let Followed { run, tool, hint } = *followed;
    let terms = &app.mcp;
    // Subscribed to before the first look, so that nothing falls in between.
    let mut changes = app.store.bell().changes();
    let until = Instant::now() + terms.wait;
    let mut teller = Teller::new(context);
    let mut by = Hold::new(app, outsider.caller.token());
    loop {
        if by.is_over().await {
            return Err(ApiError::Unauthenticated);
        }
        let (_, stands) = look(app, run).await?;
        match &stands {
            Standing::Ended(_) => return Ok(answer::of(terms, run, tool, &stands).into()),
            Standing::Asked(asked) if hint => {
                return Ok(answer::hint(terms, run, tool, asked).into());
            }
            Standing::Asked(_) if terms.on_ask == OnAsk::Pending => {
                return Ok(answer::of(terms, run, tool, &stands).into());
            }
            Standing::Asked(_) | Standing::UnderWay(_) => {}
        }
        let over = Instant::now() >= until || app.stop.is_cancelled();
        if over || context.ct.is_cancelled() {
            return Ok(answer::of(terms, run, tool, &stands).into());
        }
        teller.tell(&stands, || answer::progress(terms, tool, &stands)).await;
        tokio::select! {
            () = stream::changed(&mut changes, run, &app.stop) => {}
            () = context.ct.cancelled() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }
}

/// The tool of a call, and how it stands.
pub(super) async fn look(app: &App, run: RunId) -> Result<(String, Standing)> {
    let log = app.store.events(run, 0, u32::MAX).await?;
    let tool = log.first().and_then(|it| match &it.event {
        Event::Created(created) => created.call.as_ref().map(|it| it.tool.clone()),
        _ => None,
    });
    let stands = standing(run, &log).map_err(|it| ApiError::Internal(it.to_string()))?;
    tool.zip(stands).ok_or_else(|| ApiError::NotFound { what: "call", id: run.to_string() })
}

/// Tells the client how the call stands: when that changes, and now and then.
struct Teller<'t> {
    told: (Standing, Instant),
    count: u32,
    context: &'t RequestContext<RoleServer>,
}

impl<'t> Teller<'t> {
    /// That a call has begun is told by nothing: most have ended in a moment.
    fn new(context: &'t RequestContext<RoleServer>) -> Teller<'t> {
        Teller { told: (Standing::UnderWay(UNDER_WAY), Instant::now()), count: 0, context }
    }

    async fn tell(&mut self, stands: &Standing, text: impl FnOnce() -> String) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        if self.told.0 == *stands && self.told.1.elapsed() < TELL {
            return;
        }
        self.told = (stands.clone(), Instant::now());
        self.count += 1;
        let told =
            ProgressNotificationParam::new(token, f64::from(self.count)).with_message(text());
        // A client that does not listen is none of the call's business.
        let _ = self.context.peer.notify_progress(told).await;
    }
}
