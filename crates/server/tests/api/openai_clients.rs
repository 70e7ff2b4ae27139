//! OpenAI's own clients, for Python and for Node.js, against a server of ours.

use std::path::Path;
use std::process::Command;

use chancery_testkit::fake_model::{Behaviour, Seen};
use chancery_testkit::mcp_servers;
use serde_json::json;

use crate::house::{House, On, as_scripted};
use crate::openai::house;

#[tokio::test(flavor = "multi_thread")]
async fn heavy_openais_client_for_python_is_at_home() {
    let python = mcp_servers::openai_python().unwrap();
    let house = failing_where_told().await;
    let script = chancery_testkit::package().join("tests/api/clients/client.py");
    let mut command = command(&python);
    command.arg(script);
    run(command, &house).await;
    assert_eq!(house.ledger(), ["note python", "note stream"]);
    assert_eq!(failures(&house), 2);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_openais_client_for_node_is_at_home() {
    let modules = mcp_servers::openai_node().unwrap();
    let house = failing_where_told().await;
    let script = chancery_testkit::package().join("tests/api/clients/client.mjs");
    let mut command = command(Path::new("node"));
    command.arg(script).env("DOOR_MODULES", modules);
    run(command, &house).await;
    assert_eq!(house.ledger(), ["note node", "note node"]);
    assert_eq!(failures(&house), 1);
    house.close().await;
}

/// The model breaks down where it is told to.
async fn failing_where_told() -> House {
    let house = house(On::Sqlite).await;
    house.model.otherwise(|_, seen| {
        if is_to_fail(seen) {
            Behaviour::status(400, "it was told to fail")
        } else {
            as_scripted(seen)
        }
    });
    house
}

fn is_to_fail(seen: &Seen) -> bool {
    let said = seen.body["messages"].as_array().and_then(|it| it.last());
    said.is_some_and(|it| it["content"] == "fail")
}

/// How often something was asked for that fails: a client that tries again is counted again.
fn failures(house: &House) -> usize {
    house.model.requests().iter().filter(|it| is_to_fail(it)).count()
}

async fn run(mut command: Command, house: &House) {
    let lin = json!({"kind": "human", "name": "lin"});
    let made = house.server.operator().post("/api/tokens", &lin).await.json();
    command.env("DOOR_URL", format!("{}/v1", house.server.running.url()));
    command.env("DOOR_TOKEN", made["token"].as_str().unwrap());
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("all of it holds"), "{said}");
}

#[expect(clippy::disallowed_methods, reason = "a program of the test's, not of an agent's")]
fn command(program: &Path) -> Command {
    Command::new(program)
}
