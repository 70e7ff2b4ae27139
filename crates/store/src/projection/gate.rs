//! What an append changes of what people are asked: rows of permissions and standing rules.

use chancery_domain::event::{
    Actor, Answer, Call, Created, Event, Member, PermissionDecided, Request,
};
use chancery_domain::history::Change;
use chancery_domain::id::MessageId;
use chancery_domain::policy::{Reason, Ruling};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::storable;
use crate::StoreError;

/// Everything that one change does here.
#[derive(Debug, Clone, Default)]
pub(crate) struct GateMoves {
    pub asked: Vec<Asked>,
    pub decided: Vec<Decided>,
    pub prolonged: Vec<Prolonged>,
    pub made: Vec<RuleMade>,
    /// The run has ended: what is still asked is asked no more.
    pub cancelled: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub id: Uuid,
    pub call: String,
    pub user: String,
    pub agent: String,
    pub tool: String,
    pub ruling: &'static str,
    pub risk: Option<&'static str>,
    pub asked_at: i64,
    pub expires_at: Option<i64>,
    pub body: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub id: Uuid,
    pub status: &'static str,
    pub by: String,
    pub comment: Option<String>,
    pub arguments: Option<String>,
}

/// A question that has more time.
#[derive(Debug, Clone)]
pub(crate) struct Prolonged {
    pub id: Uuid,
    /// Because others were told; else because somebody wanted it.
    pub escalated: bool,
    pub expires_at: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct RuleMade {
    pub id: Uuid,
    pub user: String,
    pub agent: String,
    pub scope: &'static str,
    pub tool: String,
    pub signature: String,
    pub permission: Uuid,
    pub by: String,
    pub expires_at: i64,
}

/// What a permission's row keeps as one piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedBody {
    pub message: MessageId,
    pub role: String,
    pub group: Option<String>,
    /// What the model said as it asked for the call.
    #[serde(default)]
    pub words: String,
    pub call: Call,
    #[serde(default)]
    pub reasons: Vec<Reason>,
    pub request: Request,
}

impl GateMoves {
    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
            && self.decided.is_empty()
            && self.prolonged.is_empty()
            && self.made.is_empty()
            && !self.cancelled
    }

    pub(crate) fn of(change: &Change) -> Result<GateMoves, StoreError> {
        let created = change.created();
        let mut moves = GateMoves::default();
        for (_, event, speaker) in change.spoken_by() {
            match event {
                Event::BatchProposed(batch) => {
                    for it in &batch.calls {
                        if let Some(Answer::Request(request)) = &it.answer
                            && it.ruling.asks()
                        {
                            let body = AskedBody {
                                message: batch.message,
                                role: speaker.role.0.clone(),
                                group: created.group.as_ref().map(|it| it.0.clone()),
                                words: batch.text.clone(),
                                call: (*it.call).clone(),
                                reasons: it.reasons.clone(),
                                request: (**request).clone(),
                            };
                            moves.asked.push(asked(created, &speaker, it.ruling, &body)?);
                        }
                    }
                }
                Event::PermissionRequested(it) => {
                    let body = AskedBody {
                        message: it.message,
                        role: speaker.role.0.clone(),
                        group: created.group.as_ref().map(|it| it.0.clone()),
                        words: String::new(),
                        call: Call {
                            id: it.call.clone(),
                            tool: it.tool.clone(),
                            arguments: it.arguments.clone(),
                        },
                        reasons: it.reasons.clone(),
                        request: (*it.request).clone(),
                    };
                    moves.asked.push(asked(created, &speaker, it.ruling, &body)?);
                }
                Event::PermissionDecided(it) => {
                    moves.decided.push(decided(it)?);
                    if let Some(remember) = &it.remember {
                        moves.made.push(RuleMade {
                            id: remember.rule.0,
                            user: storable(created.user.as_str()),
                            agent: storable(speaker.agent.as_str()),
                            scope: remember.scope.as_str(),
                            tool: storable(&remember.tool),
                            signature: storable(&remember.signature),
                            permission: it.permission.0,
                            by: actor(&it.by)?,
                            expires_at: remember.expires_at.as_microsecond(),
                        });
                    }
                }
                Event::PermissionEscalated(it) => moves.prolonged.push(Prolonged {
                    id: it.permission.0,
                    escalated: true,
                    expires_at: it.expires_at.as_microsecond(),
                }),
                Event::PermissionExtended(it) => moves.prolonged.push(Prolonged {
                    id: it.permission.0,
                    escalated: false,
                    expires_at: it.expires_at.as_microsecond(),
                }),
                _ => {}
            }
        }
        let (before, after) = (change.before(), change.after());
        let ended = !after.wants_worker && after.waiting_for.is_none();
        moves.cancelled = ended && before.waiting_for == Some("permission");
        Ok(moves)
    }
}

fn asked(
    created: &Created,
    speaker: &Member,
    ruling: Ruling,
    body: &AskedBody,
) -> Result<Asked, StoreError> {
    let request = &body.request;
    Ok(Asked {
        id: request.id.0,
        call: storable(body.call.id.as_str()),
        user: storable(created.user.as_str()),
        agent: storable(speaker.agent.as_str()),
        tool: storable(&body.call.tool),
        ruling: ruling.as_str(),
        risk: request.risk.map(|it| it.as_str()),
        asked_at: request.asked_at.as_microsecond(),
        expires_at: request.expires_at.map(|it| it.as_microsecond()),
        body: json(body)?,
    })
}

fn decided(it: &PermissionDecided) -> Result<Decided, StoreError> {
    Ok(Decided {
        id: it.permission.0,
        status: it.decision.as_str(),
        by: actor(&it.by)?,
        comment: it.comment.as_deref().map(storable),
        arguments: it.arguments.as_ref().map(json).transpose()?,
    })
}

fn actor(by: &Actor) -> Result<String, StoreError> {
    json(by)
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|it| StoreError::Failed(it.to_string()))
}
