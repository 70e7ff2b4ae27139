//! The document against the server: schemathesis makes requests from one and holds the other to
//! its word.

use std::path::Path;
use std::process::Command;

use chancery_testkit::mcp_servers;
use serde_json::json;

use crate::harness::Server;

/// A request may be well formed and still ask for what is not there: an agent or a member that
/// nobody has, a right that a kind of token cannot hold, a key that was used for something else. Files may say anything.
/// And a run that is there may not wait for the signal that is sent to it; a memory that was written
/// for another user is there for them.
const CONFIG: &str = r#"
[[operations]]
include-name = [
    "POST /api/runs", "POST /api/tokens", "POST /api/runs/{id}/messages", "POST /api/jobs/{id}/message",
    "PUT /api/org", "POST /api/org/impact", "POST /api/memories", "GET /api/memories/search", "POST /api/runs/{id}/fork",
]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "404", "409", "422"]

[[operations]]
include-name = ["POST /api/runs/{id}/signal", "POST /api/jobs/{id}/signal"]
checks.ensure_resource_availability.enabled = false

[[operations]]
include-name = ["GET /api/memories/{id}", "DELETE /api/memories/{id}"]
checks.ensure_resource_availability.enabled = false
"#;

/// For those who may not do most of it: that a request is well formed says nothing then, and what
/// one makes another may not see.
const NARROW: &str = r#"
checks.positive_data_acceptance.enabled = false
checks.ensure_resource_availability.enabled = false
"#;

const REVOKE: &str = "/api/tokens/{id}/revoke";

#[tokio::test(flavor = "multi_thread")]
async fn heavy_schemathesis_finds_nothing() {
    let program = mcp_servers::schemathesis().unwrap();
    let server = Server::start().await;
    let tester = json!({"kind": "human", "name": "tester", "operator": true});
    let made = server.operator().post("/api/tokens", &tester).await.json();
    let secret = made["token"].as_str().unwrap();
    let secret = Some(secret);
    // Once with whatever ids it makes up or finds. Whoever tries everything revokes the token
    // that they try it with: that one is left for last.
    let made_up = Tried {
        config: CONFIG.to_owned(),
        which: ["--exclude-path", REVOKE],
        seconds: "7",
        probe: OPERATORS,
    };
    made_up.run(&program, &server, secret).await;
    // And once with ids of what is there, for else nearly all of it is "not found".
    let operator = server.operator();
    let (waits, cancelled) = (operator.waiting().await, operator.waiting().await);
    let there = Tried {
        config: format!("{CONFIG}{}", ids(&server, &waits, &cancelled).await),
        which: ["--include-path-regex", "/api/(runs|jobs)/.id"],
        seconds: "7",
        probe: OPERATORS,
    };
    there.run(&program, &server, secret).await;
    // It got through to them: one was cancelled, the other was spoken to or signalled.
    operator.until(&cancelled, "cancelled").await;
    let events = operator.get(&format!("/api/runs/{waits}/events")).await.text;
    let reached = events.contains("message.user") || events.contains("signal.received");
    assert!(reached, "{events}");
    let other = json!({"kind": "human", "name": "revoked"});
    let other = server.operator().post("/api/tokens", &other).await.json()["id"].clone();
    let revoked = Tried {
        config: format!("{CONFIG}{}", id_for(&[REVOKE], other.as_str().unwrap())),
        which: ["--include-path", REVOKE],
        seconds: "2",
        probe: OPERATORS,
    };
    revoked.run(&program, &server, secret).await;
    let tokens = operator.get("/api/tokens").await.json();
    let found = tokens["items"].as_array().unwrap().iter().find(|it| it["id"] == other).cloned();
    assert!(found.is_some_and(|it| it["revoked_at"].is_string()), "{tokens}");
    assert_eq!(server.nobody().get("/readyz").await.status, 200);
    server.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_schemathesis_finds_nothing_whatever_token_it_has() {
    let program = mcp_servers::schemathesis().unwrap();
    let server = Server::start().await;
    let own_box = id_for(&["/api/agents/{id}/inbox", "/api/agents/{id}/sent"], "pa");
    for (token, probe) in [
        (json!({"kind": "human", "name": "lin"}), ("/api/runs", 200)),
        (json!({"kind": "service", "name": "ci", "approve": true}), ("/api/runs", 200)),
        (json!({"kind": "agent", "name": "pa"}), ("/api/agents/pa/inbox", 200)),
        (json!(null), ("/api/runs", 401)),
    ] {
        let secret = match token.is_null() {
            true => None,
            false => {
                let made = server.operator().post("/api/tokens", &token).await.json();
                Some(made["token"].as_str().unwrap().to_owned())
            }
        };
        let agent = if token["kind"] == "agent" { &*own_box } else { "" };
        let tried = Tried {
            config: format!("{NARROW}{agent}"),
            which: ["--include-path-regex", "/"],
            seconds: "4",
            probe,
        };
        tried.run(&program, &server, secret.as_deref()).await;
    }
    assert_eq!(server.nobody().get("/readyz").await.status, 200);
    server.running.stop().await;
}

/// A run for those that leave it as it waits, one to cancel, and one that has ended.
async fn ids(server: &Server, waits: &str, cancelled: &str) -> String {
    let operator = server.operator();
    let ended = crate::harness::id(&operator.run("hello").await);
    operator.until(&ended, "completed").await;
    let run = |rest: &str| format!("/api/runs/{{id}}{rest}");
    let rest = ["", "/events", "/tree", "/messages", "/signal"].map(run);
    let mut paths: Vec<&str> = rest.iter().map(String::as_str).collect();
    paths.extend(["/api/jobs/{id}/message", "/api/jobs/{id}/signal"]);
    let (cancel, resume) = (run("/cancel"), run("/resume"));
    [(paths, waits), (vec![&*cancel], cancelled), (vec![&*resume], &*ended)]
        .iter()
        .map(|(paths, id)| id_for(paths, id))
        .collect()
}

fn id_for(paths: &[&str], id: &str) -> String {
    format!("\n[[operations]]\ninclude-path = {paths:?}\nparameters = {{ \"path.id\" = {id:?} }}\n")
}

struct Tried {
    config: String,
    which: [&'static str; 2],
    seconds: &'static str,
    /// What the token opens, still: with one that is worth nothing, nothing would have been found.
    probe: (&'static str, u16),
}

const OPERATORS: (&str, u16) = ("/api/tokens", 200);

impl Tried {
    /// Returns if it found nothing.
    async fn run(&self, program: &Path, server: &Server, secret: Option<&str>) {
        let dir = server.data.path();
        let config = dir.join("schemathesis.toml");
        std::fs::write(&config, &self.config).unwrap();
        let url = format!("{}/openapi.json", server.running.url());
        let mut command = command(program);
        command.current_dir(dir).env("HYPOTHESIS_STORAGE_DIRECTORY", dir);
        command.arg("--config-file").arg(&config).args(["run", &url]).args(self.which);
        if let Some(secret) = secret {
            command.args(["-H", &format!("Authorization: Bearer {secret}")]);
        }
        command.args(["--max-examples", "20", "--seed", "7", "--no-color"]);
        command.args(["--max-time", self.seconds, "--request-timeout", "10"]);
        command.args(["--suppress-health-check", "all", "--generation-database", "none"]);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        let (path, status) = self.probe;
        assert_eq!(server.caller(secret).get(path).await.status, status, "{said}");
        println!("{said}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a program of the test's, not of an agent's")]
fn command(program: &Path) -> Command {
    Command::new(program)
}
