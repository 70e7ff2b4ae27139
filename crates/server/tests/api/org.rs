//! The organisation over HTTP: read, checked, changed, and changed from its files.

use std::path::Path;
use std::time::{Duration, Instant};

use chancery_server::start;
use reqwest::Method;
use serde_json::{Value, json};

use super::harness::{Answer, Caller, Server, answer};

const ROLES: &str = "extends: builtin\nroles:\n  backend_worker: {deny_tools: [git_push]}\n";

async fn put(caller: &Caller, path: &str, files: Value) -> Answer {
    answer(caller.request(Method::PUT, path).json(&json!({ "files": files }))).await
}

/// The organisation once it is as it should be.
async fn until(caller: &Caller, what: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let org = caller.get("/api/org").await.json();
        if what(&org) {
            return org;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{org}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn with_dir() -> (Server, std::path::PathBuf) {
    let mut org = None;
    let server = Server::with(|config| {
        let dir = config.data.with_file_name("org");
        std::fs::create_dir(&dir).unwrap();
        config.org = Some(dir.clone());
        org = Some(dir);
    })
    .await;
    (server, org.unwrap())
}

async fn denied(caller: &Caller, role: &str) -> Value {
    let roles = caller.get("/api/roles").await.json();
    let found = roles["items"].as_array().unwrap().iter().find(|it| it["id"] == role);
    found.map_or(Value::Null, |it| it["deny_tools"].clone())
}

#[tokio::test]
async fn what_is_built_in_is_version_one() {
    let server = Server::start().await;
    let operator = server.operator();
    let org = operator.get("/api/org").await.json();
    assert_eq!((&org["version"], &org["source"]), (&json!(1), &json!("built-in")));
    assert_eq!(
        org["counts"],
        json!({"roles": 10, "agents": 10, "users": 0, "groups": 2, "tools": 47})
    );
    assert_eq!(org["by"], "system");
    assert_eq!(org["pending_mistakes"], json!([]));
    assert!(org["mistakes"].as_array().unwrap().iter().all(|it| it["code"] == "W101"), "{org}");

    let agents = operator.get("/api/agents").await.json();
    let pa = agents["items"].as_array().unwrap().iter().find(|it| it["id"] == "pa").unwrap();
    assert_eq!(
        *pa,
        json!({"id": "pa", "role": "personal_agent", "kind": "personal", "active": true})
    );
    let groups = operator.get("/api/groups").await.json();
    assert_eq!(groups["items"][0]["lead"], "it_manager");
    let tools = operator.get("/api/tools").await.json();
    assert_eq!(tools["items"][0]["name"], "approve_deployment");
    assert_eq!(tools["items"][0]["kind"], "built-in");
    let roles = operator.get("/api/roles").await.json();
    assert_eq!(roles["items"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn the_organisation_is_changed_by_operators_and_read_by_people() {
    let server = Server::start().await;
    let lin = server.human("lin").await;
    assert_eq!(lin.get("/api/org").await.json()["files"], json!(null));
    // Whoever may change it reads what there is to change, in the form that is taken.
    let there = server.operator().get("/api/org").await.json()["files"].clone();
    let checked = put(&server.operator(), "/api/org?check=true", there.clone()).await;
    assert_eq!((checked.status, &checked.json()["differences"]), (200, &json!([])), "{there}");
    put(&lin, "/api/org", json!({})).await.problem(403, "forbidden");
    lin.get("/api/org/versions").await.problem(403, "forbidden");
    lin.get("/api/org/versions/1").await.problem(403, "forbidden");
    server.nobody().get("/api/org").await.problem(401, "unauthenticated");
    let agent = server.holder(json!({"kind": "agent", "name": "pa"})).await;
    for path in ["/api/org", "/api/roles", "/api/agents", "/api/groups", "/api/tools"] {
        agent.get(path).await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn a_change_is_a_version_and_the_same_again_is_none() {
    let server = Server::start().await;
    let operator = server.operator();
    let files = json!({ "roles.yaml": ROLES });
    let checked = put(&operator, "/api/org?check=true", files.clone()).await;
    assert_eq!((checked.status, &checked.json()["version"]), (200, &Value::Null));
    assert_eq!(denied(&operator, "backend_worker").await, json!([]));

    let changed = put(&operator, "/api/org", files.clone()).await.json();
    assert_eq!(changed["version"], 2);
    assert_eq!(
        changed["differences"],
        json!([
            {"subject": "role backend_worker", "detail": "loses tool git_push", "effect": "narrower"},
            {"subject": "role backend_worker", "detail": "deny_tools: git_push is new",
             "effect": "narrower"},
        ])
    );
    assert_eq!(denied(&operator, "backend_worker").await, json!(["git_push"]));
    assert_eq!(put(&operator, "/api/org", files).await.json()["version"], 2);
    assert_eq!(operator.get("/api/org").await.json()["by"], "operator");

    let versions = operator.get("/api/org/versions?limit=1").await.json();
    assert_eq!(versions["items"][0]["version"], 2);
    let cursor = versions["next_cursor"].as_str().unwrap();
    let rest = operator.get(&format!("/api/org/versions?cursor={cursor}")).await.json();
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next_cursor"]), (1, &Value::Null));
    let second = operator.get("/api/org/versions/2").await.json();
    assert_eq!(second["files"], json!({ "roles.yaml": ROLES }));
    for number in ["3", "0", "-1", "x", "99999999999999999999"] {
        operator.get(&format!("/api/org/versions/{number}")).await.problem(404, "not_found");
    }
    operator.get("/api/org/versions?cursor=x").await.problem(400, "bad_request");
}

#[tokio::test]
async fn every_mistake_is_in_the_answer_and_nothing_changes() {
    let server = Server::start().await;
    let operator = server.operator();
    let files = json!({
        "roles.yaml": "roles: {a: {tols: []}}\nagents: {x: {role: b}}",
        "policy.yaml": "risk: {low: perhaps}",
        "notes.yaml": "",
        "../../etc/passwd": "",
    });
    for path in ["/api/org", "/api/org?check=true"] {
        let refused = put(&operator, path, files.clone()).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        let said = refused.json();
        assert_eq!(said["code"], "bad_organisation");
        let codes: Vec<(&str, &str)> = said["mistakes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["file"].as_str().unwrap(), it["code"].as_str().unwrap()))
            .collect();
        assert_eq!(
            codes,
            [
                (".", "E112"),
                (".", "E112"),
                ("policy.yaml", "E107"),
                ("roles.yaml", "E105"),
                ("roles.yaml", "E201")
            ]
        );
    }
    assert_eq!(operator.get("/api/org").await.json()["version"], 1);
    for body in [r#"{"files": 7}"#, r#"{"files": {}, "x": 1}"#, "[]", ""] {
        let refused = answer(operator.request(Method::PUT, "/api/org").body(body)).await;
        refused.problem(400, "bad_request");
    }
}

/// What only shows when the tools are put together: a check says of it what applying says.
#[tokio::test]
async fn a_check_finds_what_applying_finds_and_starts_nothing() {
    let (server, dir) = with_dir().await;
    let operator = server.operator();
    let started = dir.join("started");
    let touch = format!("mcp: {{far: {{command: [touch, {}]}}}}", started.display());
    let checked = put(&operator, "/api/org?check=true", json!({ "tools.yaml": touch })).await;
    assert_eq!((checked.status, &checked.json()["version"]), (200, &Value::Null));
    assert!(!started.exists());
    let odd = "commands: {pay: {description: Pays, command: [./ws/pay]}}\n\
        mcp:\n  both: {url: \"ftp://x\"}\n  secret: {url: \"http://127.0.0.1:9\", headers: {A: \"env:NOT_SET\"}}\n";
    let workspace = server.config.workspace();
    std::os::unix::fs::symlink(&workspace, dir.join("ws")).unwrap();
    std::fs::write(workspace.join("pay"), "").unwrap();
    let warned = async |path: &str| {
        let answer = put(&operator, path, json!({ "tools.yaml": odd })).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let said = answer.json()["mistakes"].as_array().unwrap().clone();
        let said = said.iter().filter(|it| it["code"] == "W111");
        said.map(|it| it["detail"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let said = warned("/api/org?check=true").await;
    assert_eq!(said.len(), 3, "{said:?}");
    for part in ["lies in the workspace", "`both`", "`NOT_SET`"] {
        assert!(said.iter().any(|it| it.contains(part)), "{part}: {said:?}");
    }
    assert_eq!(operator.get("/api/org").await.json()["version"], 1);
    assert_eq!(warned("/api/org").await, said);
    // Without its workspace no version has tools: neither says otherwise.
    std::fs::remove_dir_all(&workspace).unwrap();
    for path in ["/api/org?check=true", "/api/org"] {
        let refused = put(&operator, path, json!({ "tools.yaml": touch })).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(refused.json()["mistakes"][0]["code"], "E111");
    }
    assert!(!started.exists());
}

#[tokio::test]
async fn a_changed_file_is_put_in_force_and_a_bad_one_is_not() {
    let (server, dir) = with_dir().await;
    let operator = server.operator();
    assert_eq!(operator.get("/api/org").await.json()["source"], "files");
    std::fs::write(dir.join("roles.yaml"), ROLES).unwrap();
    let org = until(&operator, |it| it["version"] == 2).await;
    assert_eq!(org["source"], "files");
    assert_eq!(denied(&operator, "backend_worker").await, json!(["git_push"]));

    std::fs::write(dir.join("roles.yaml"), "roles: {a: {reports_to: [a]}}\nagents: {a: {role: a}}")
        .unwrap();
    let org = until(&operator, |it| it["pending_mistakes"] != json!([])).await;
    assert_eq!(org["version"], 2);
    assert_eq!(org["pending_mistakes"][0]["code"], "E203");
    assert_eq!(denied(&operator, "backend_worker").await, json!(["git_push"]));

    std::fs::write(dir.join("roles.yaml"), ROLES).unwrap();
    let org = until(&operator, |it| it["pending_mistakes"] == json!([])).await;
    assert_eq!(org["version"], 2);
    std::fs::remove_file(dir.join("roles.yaml")).unwrap();
    until(&operator, |it| it["version"] == 3).await;
    assert_eq!(denied(&operator, "backend_worker").await, json!([]));
}

#[tokio::test]
async fn a_tool_in_a_changed_file_can_be_called() {
    let (server, dir) = with_dir().await;
    let operator = server.operator();
    let before = operator.get("/api/org").await.json()["counts"]["tools"].as_u64().unwrap();
    let text = "commands: {greet: {description: Greets, command: [printf, hello]}}";
    std::fs::write(dir.join("tools.yaml"), text).unwrap();
    let org = until(&operator, |it| it["version"] == 2).await;
    assert_eq!(org["counts"]["tools"], before + 1);
    let tools = operator.get("/api/tools").await.json();
    let greet = tools["items"].as_array().unwrap().iter().find(|it| it["name"] == "greet");
    assert_eq!(greet.unwrap()["kind"], "command");
}

#[tokio::test]
async fn what_was_sent_outlives_a_start_until_the_files_change() {
    let (server, dir) = with_dir().await;
    let changed = put(&server.operator(), "/api/org", json!({ "roles.yaml": ROLES })).await;
    assert_eq!(changed.json()["version"], 2);
    let server = restarted(server).await;
    let org = server.operator().get("/api/org").await.json();
    assert_eq!((&org["version"], &org["source"]), (&json!(2), &json!("api")));
    assert_eq!(denied(&server.operator(), "backend_worker").await, json!(["git_push"]));

    let running = stopped(server).await;
    std::fs::write(dir.join("policy.yaml"), "extends: builtin\ntools: {git_push: deny}\n").unwrap();
    let server = started(running).await;
    let org = server.operator().get("/api/org").await.json();
    assert_eq!((&org["version"], &org["source"]), (&json!(3), &json!("files")));
}

#[tokio::test]
async fn a_run_is_started_by_whoever_is_there_now() {
    let server = Server::start().await;
    let operator = server.operator();
    let auditor = json!({"agent": "auditor", "input": "hello"});
    operator.post("/api/runs", &auditor).await.problem(400, "unknown_agent");
    let roles = "extends: builtin\nroles: {auditor: {}}\nagents: {auditor: {role: auditor}}\n";
    assert_eq!(put(&operator, "/api/org", json!({ "roles.yaml": roles })).await.status, 200);
    assert_eq!(operator.post("/api/runs", &auditor).await.status, 201);
}

async fn restarted(server: Server) -> Server {
    let stopped = stopped(server).await;
    started(stopped).await
}

type Stopped = (tempfile::TempDir, chancery_server::config::Config);

async fn stopped(server: Server) -> Stopped {
    let Server { running, data, config } = server;
    running.stop().await;
    (data, config)
}

async fn started((data, config): Stopped) -> Server {
    assert!(Path::new(&config.data).exists());
    let running = start(&config, []).await.unwrap();
    Server { running, data, config }
}
