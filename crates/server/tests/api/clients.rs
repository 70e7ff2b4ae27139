//! The clients that are made of the document, and their examples: `clients/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use chancery_testkit::mcp_servers;
use serde_json::json;
use tempfile::TempDir;

use crate::house::{House, On};

/// A directory with the document of a server, whose agent will ask before it pays.
async fn document(house: &House) -> TempDir {
    let dir = TempDir::new().unwrap();
    let document = house.server.nobody().get("/openapi.json").await.text;
    std::fs::write(dir.path().join("openapi.json"), document).unwrap();
    dir
}

/// Starts the example and answers with what it prints.
async fn example(house: &House, mut command: Command) -> String {
    let made = house.server.operator();
    let token = made.post("/api/tokens", &json!({"kind": "human", "name": "lin"})).await.json();
    command.env("CHANCERY_URL", house.server.running.url());
    command.env("CHANCERY_TOKEN", token["token"].as_str().unwrap());
    command.env("GOAL", json!([[["pay", {"to": "mei"}]]]).to_string());
    said(command).await
}

async fn said(mut command: Command) -> String {
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{wrong}");
    text
}

fn kept(name: &str) -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    Path::new(&package).join("../../clients").join(name)
}

#[tokio::test]
async fn heavy_the_python_client_grants_what_its_run_asks() {
    let bin = mcp_servers::python_client().unwrap();
    let house = House::open(On::Sqlite).await;
    let dir = document(&house).await;
    let mut make = program(bin.join("openapi-python-client"), dir.path());
    make.args(["generate", "--path", "openapi.json", "--output-path", "chancery_client"]);
    make.args(["--meta", "none"]);
    said(make).await;
    let mut python = program(bin.join("python"), dir.path());
    python.arg(kept("python/example.py")).env("PYTHONPATH", dir.path());
    assert_eq!(example(&house, python).await, "completed done\n");
    assert_eq!(house.ledger(), ["pay mei"]);
    house.close().await;
}

#[tokio::test]
async fn heavy_the_typescript_client_grants_what_its_run_asks() {
    let modules = mcp_servers::typescript_client().unwrap();
    let house = House::open(On::Sqlite).await;
    let dir = document(&house).await;
    let at = |name: &str| dir.path().join(name);
    std::os::unix::fs::symlink(&modules, at("node_modules")).unwrap();
    std::fs::write(at("package.json"), "{\"type\": \"module\"}").unwrap();
    std::fs::copy(kept("typescript/example.ts"), at("example.ts")).unwrap();
    let mut make = program(modules.join(".bin/openapi-typescript"), dir.path());
    make.args(["openapi.json", "-o", "chancery.d.ts"]);
    said(make).await;
    let mut compile = program(modules.join(".bin/tsc"), dir.path());
    compile.args(["--target", "es2022", "--module", "nodenext", "--strict", "--skipLibCheck"]);
    compile.args(["--types", "node", "example.ts"]);
    said(compile).await;
    let mut node = program("node", dir.path());
    node.arg("example.js");
    assert_eq!(example(&house, node).await, "completed done\n");
    assert_eq!(house.ledger(), ["pay mei"]);
    house.close().await;
}

#[expect(clippy::disallowed_methods, reason = "a program of the test's, not of an agent's")]
fn program(name: impl AsRef<std::ffi::OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(dir);
    command
}
