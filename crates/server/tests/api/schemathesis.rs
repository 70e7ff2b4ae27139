//! The document against the server: schemathesis makes requests from one and holds the other to
//! its word.

use std::path::Path;
use std::process::Command;

use chancery_testkit::mcp_servers;
use serde_json::json;

use crate::harness::Server;

/// A request may be well formed and still ask for what is not there: an agent or a member that
/// nobody has, a right that a kind of token cannot hold, a key that was used for something else.
/// And a run that is there may not wait for the signal that is sent to it.
const CONFIG: &str = r#"
[[operations]]
include-name = [
    "POST /api/runs", "POST /api/tokens", "POST /api/runs/{id}/messages", "POST /api/jobs/{id}/message",
]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "404", "409", "422"]

[[operations]]
include-name = ["POST /api/runs/{id}/signal", "POST /api/jobs/{id}/signal"]
checks.ensure_resource_availability.enabled = false
"#;

#[tokio::test(flavor = "multi_thread")]
async fn heavy_schemathesis_finds_nothing() {
    let program = mcp_servers::schemathesis().unwrap();
    let server = Server::start().await;
    // Some runs to find.
    server.operator().waiting().await;
    server.operator().run("hello").await;
    let token = json!({"kind": "human", "name": "tester", "operator": true});
    let secret = server.operator().post("/api/tokens", &token).await.json()["token"].clone();
    let secret = secret.as_str().unwrap();
    let dir = server.data.path();
    let config = dir.join("schemathesis.toml");
    std::fs::write(&config, CONFIG).unwrap();
    // Apart, for whoever tries everything revokes the token that they try it with.
    let revoke = "/api/tokens/{id}/revoke";
    for (which, seconds) in [("--exclude-path", "20"), ("--include-path", "5")] {
        let url = format!("{}/openapi.json", server.running.url());
        let mut command = command(&program);
        command.current_dir(dir).env("HYPOTHESIS_STORAGE_DIRECTORY", dir);
        command.arg("--config-file").arg(&config).args(["run", &url, which, revoke]);
        command.args(["-H", &format!("Authorization: Bearer {secret}")]);
        command.args(["--max-examples", "20", "--seed", "7", "--no-color"]);
        command.args(["--max-time", seconds, "--request-timeout", "10"]);
        command.args(["--suppress-health-check", "all", "--generation-database", "none"]);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let warned = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{warned}");
        println!("{said}");
    }
    assert_eq!(server.nobody().get("/readyz").await.status, 200);
    server.running.stop().await;
}

#[expect(clippy::disallowed_methods, reason = "a program of the test's, not of an agent's")]
fn command(program: &Path) -> Command {
    Command::new(program)
}
