//! The HTTP API, over real sockets: what is promised, and what strangers try.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "api/access.rs"]
mod access;
#[path = "api/audit.rs"]
mod audit;
#[path = "api/authority.rs"]
mod authority;
#[path = "api/backup.rs"]
mod backup;
#[path = "api/bad_input.rs"]
mod bad_input;
#[path = "api/browser.rs"]
mod browser;
#[path = "api/chinese.rs"]
mod chinese;
#[path = "api/clients.rs"]
mod clients;
#[path = "api/commands.rs"]
mod commands;
#[path = "api/company.rs"]
mod company;
#[path = "api/console.rs"]
mod console;
#[path = "api/create.rs"]
mod create;
#[path = "api/deciding.rs"]
mod deciding;
#[path = "api/delegation.rs"]
mod delegation;
#[path = "api/drafting.rs"]
mod drafting;
#[path = "api/embeddings.rs"]
mod embeddings;
#[path = "api/escalation.rs"]
mod escalation;
#[path = "api/events.rs"]
mod events;
#[path = "api/explaining.rs"]
mod explaining;
#[path = "api/extending.rs"]
mod extending;
#[path = "api/far.rs"]
mod far;
#[path = "api/forking.rs"]
mod forking;
#[path = "api/hands.rs"]
mod hands;
#[path = "api/harness.rs"]
mod harness;
#[path = "api/house.rs"]
mod house;
#[path = "api/inquiring.rs"]
mod inquiring;
#[path = "api/keys.rs"]
mod keys;
#[path = "api/latch.rs"]
mod latch;
#[path = "api/limits.rs"]
mod limits;
#[path = "api/live.rs"]
mod live;
#[path = "api/lived_in.rs"]
mod lived_in;
#[path = "api/lost.rs"]
mod lost;
#[path = "api/machine.rs"]
mod machine;
#[path = "api/mail.rs"]
mod mail;
#[path = "api/mailroom.rs"]
mod mailroom;
#[path = "api/matches.rs"]
mod matches;
#[path = "api/mcp.rs"]
mod mcp;
#[path = "api/memories.rs"]
mod memories;
#[path = "api/oidc.rs"]
mod oidc;
#[path = "api/oidc_attacks.rs"]
mod oidc_attacks;
#[path = "api/oidc_provider.rs"]
mod oidc_provider;
#[path = "api/openai.rs"]
mod openai;
#[path = "api/openai_clients.rs"]
mod openai_clients;
#[path = "api/openai_responses.rs"]
mod openai_responses;
#[path = "api/org.rs"]
mod org;
#[path = "api/postgres.rs"]
mod postgres;
#[path = "api/prices.rs"]
mod prices;
#[path = "api/room.rs"]
mod room;
#[path = "api/rooms.rs"]
mod rooms;
#[path = "api/schemathesis.rs"]
mod schemathesis;
#[path = "api/smtp.rs"]
mod smtp;
#[path = "api/staff.rs"]
mod staff;
#[path = "api/story.rs"]
mod story;
#[path = "api/stream.rs"]
mod stream;
#[path = "api/tab.rs"]
mod tab;
#[path = "api/taken_back.rs"]
mod taken_back;
#[path = "api/talking.rs"]
mod talking;
#[path = "api/times.rs"]
mod times;
#[path = "api/traces.rs"]
mod traces;
#[path = "api/turnstile.rs"]
mod turnstile;
#[path = "api/two_minutes.rs"]
mod two_minutes;
#[path = "api/visits.rs"]
mod visits;
#[path = "api/webhooks.rs"]
mod webhooks;
