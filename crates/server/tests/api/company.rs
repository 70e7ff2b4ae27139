//! The built-in company at work on a real repository: the board's sentence becomes a contract, a
//! code change, tests, a verdict, an approval and a deployment, all driven by mail.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use chancery_server::config::{IsolationMode, ModelConfig, Provider};
use chancery_testkit::fake_model::{Answer, Behaviour, FakeModel, Seen};
use serde_json::{Value, json};

use crate::house::{On, on_both};
use crate::mail::Office;
use crate::mailroom::{asked, results};

on_both! {
    a_company_ships_a_change_from_the_boards_sentence_to_the_deployment;
}

const IMAGE: &str = "shop/web:1.8.3";
const TOOLS: &str = r#"
commands:
  run_test:
    description: Runs the project's tests
    command: [/bin/sh, -c, "grep -q 'round(price, 2)' src/price.txt && echo 1 passed"]
    risk: low
"#;

/// What each agent does with the mail that it has, one call after the other.
fn acts(seen: &Seen) -> Behaviour {
    let agent = seen.headers.get("x-chancery-agent").map_or("", String::as_str);
    let (mail, made) = (asked(seen), results(seen));
    let is = |kind: &str| mail.contains(&format!(", type {kind},"));
    let contract = |at: usize| {
        let ids = mail.split(|it: char| !it.is_ascii_alphanumeric() && it != '-');
        let mut ids: Vec<&str> = ids.filter(|it| it.starts_with("CTR-")).collect();
        ids.dedup();
        ids.get(at).copied().unwrap_or_default().to_owned()
    };
    let to_worker = |to: &str, title: &str, body: &str| {
        let args = json!({"to": to, "title": title, "body": body, "workspace_scope": "src/",
            "assigned_branch": "feature/price"});
        ("create_contract", args)
    };
    let call = match (agent, made) {
        ("ceo", 0) if is("contract") => Some((
            "generate_contract",
            json!({"to": "it_manager", "title": "Prices", "body": "Round prices to cents."}),
        )),
        ("it_manager", 0) if is("contract") => {
            Some(to_worker("backend_worker", "Round", "Round prices to cents."))
        }
        ("it_manager", 0) if is("report") => {
            Some(to_worker("qa_worker", "Check", &format!("Check {}", contract(0))))
        }
        ("it_manager", 0) if is("verdict") => Some((
            "create_contract",
            json!({"to": "devops_worker", "title": "Ship", "body": IMAGE}),
        )),
        ("it_manager", 0) if is("approval_request") => Some((
            "approve_deployment",
            json!({"to": "devops_worker", "environment": "production", "deployment": IMAGE}),
        )),
        ("backend_worker", step) => [
            ("read_contract", json!({"id": contract(0)})),
            ("write_file", json!({"path": "src/price.txt", "content": "round(price, 2)\n"})),
            ("write_file", json!({"path": "docker/Dockerfile", "content": "FROM scratch\n"})),
            ("run_test", json!({})),
            ("git_branch", json!({"branch": "feature/price"})),
            ("git_commit", json!({"message": "Prices are rounded", "paths": ["src/price.txt"]})),
            ("git_push", json!({"branch": "main"})),
            ("git_push", json!({"branch": "feature/price"})),
            ("submit_report", json!({"title": "Rounded", "body": "Prices are rounded."})),
        ]
        .get(step)
        .cloned(),
        ("qa_worker", step) => [
            ("read_contract", json!({"id": contract(0)})),
            ("run_test", json!({})),
            (
                "write_verdict",
                json!({"contract_ref": contract(1), "verdict": "PASS",
                "summary": "The test passes."}),
            ),
        ]
        .get(step)
        .cloned(),
        ("devops_worker", step) if is("contract") => [
            ("read_contract", json!({"id": contract(0)})),
            ("docker_deploy", json!({"environment": "production", "deployment": IMAGE})),
            (
                "send_mail",
                json!({"to": "it_manager", "type": "approval_request",
                "subject": "Deploy", "body": IMAGE}),
            ),
        ]
        .get(step)
        .cloned(),
        ("devops_worker", 0) if is("deployment_approval") => {
            Some(("docker_deploy", json!({"environment": "production", "deployment": IMAGE})))
        }
        _ => None,
    };
    Behaviour::Stream(match call {
        Some((tool, arguments)) => Answer::call(tool, &arguments.to_string()),
        None => Answer::text("done"),
    })
}

#[expect(clippy::disallowed_methods, reason = "a test looks at what there is with git itself")]
fn git() -> std::process::Command {
    std::process::Command::new("git")
}

/// A repository with one commit on `main`, and a remote that has it.
fn repository(workspace: &Path, remote: &Path) {
    let run = |dir: &Path, args: &[&str]| {
        let mut command = git();
        command.args(["-c", "user.name=t", "-c", "user.email=t@t.invalid"]).args(args);
        let went = command.current_dir(dir).output().unwrap();
        assert!(went.status.success(), "{args:?} {went:?}");
    };
    std::fs::create_dir_all(workspace.join("src")).unwrap();
    std::fs::create_dir_all(remote).unwrap();
    run(remote, &["init", "--quiet", "--bare", "--initial-branch=main"]);
    run(workspace, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(workspace.join("src/price.txt"), "price\n").unwrap();
    run(workspace, &["add", "src"]);
    run(workspace, &["commit", "--quiet", "-m", "first"]);
    run(workspace, &["push", "--quiet", remote.to_str().unwrap(), "main"]);
}

async fn a_company_ships_a_change_from_the_boards_sentence_to_the_deployment(on: On) {
    let model = FakeModel::start().await.unwrap();
    model.otherwise(|_, seen| acts(seen));
    let url = model.chat_url();
    let away = tempfile::tempdir().unwrap();
    let (docker, ships) = (away.path().join("docker"), away.path().join("ships"));
    let remote = away.path().join("remote.git");
    std::fs::write(&docker, format!("#!/bin/sh\necho \"$@\" >> {}\n", ships.display())).unwrap();
    std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (docker_path, remote_path) = (docker.clone(), remote.clone());
    let office = Office::with(on, |config| {
        let fake = ModelConfig {
            base_url: Some(url),
            model: Some("fake".to_owned()),
            retries: Some(0),
            ..ModelConfig::new(Provider::Openai)
        };
        config.models.insert("default".to_owned(), fake);
        let org = config.data.with_file_name("org");
        std::fs::create_dir(&org).unwrap();
        std::fs::write(org.join("tools.yaml"), TOOLS).unwrap();
        config.org = Some(org);
        config.isolation.mode = IsolationMode::Off;
        config.tools.docker.program = docker_path.display().to_string();
        config.tools.git.remote = Some(remote_path.display().to_string());
        repository(&config.workspace(), &remote_path);
    })
    .await;
    let lin = office.server.operator();
    let ships = || std::fs::read_to_string(&ships).unwrap_or_default();

    let issued = lin.issue("ceo", json!({"title": "Round prices to cents"})).await.json();
    let top = issued["id"].as_str().unwrap();

    // Everything up to the deployment happens by itself; that waits for a person.
    let began = Instant::now();
    let question = loop {
        let asked = lin.get("/api/permissions?status=pending").await.json();
        if let Some(first) = asked["items"].as_array().unwrap().first() {
            break first.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", told(&lin, top).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(ships(), "", "nothing is shipped without an approval");
    // The first time nobody had approved it: no person is asked about what cannot be.
    let denied = "/api/audit?agent=devops_worker&tool=docker_deploy&ruling=deny";
    let denied = lin.get(denied).await.json()["items"].clone();
    assert_eq!(denied.as_array().unwrap().len(), 1, "{denied}");
    assert_eq!(denied[0]["reasons"][0]["rule"], "deployment_approval");
    assert_ne!(denied[0]["run_id"], question["run_id"]);
    grant(&lin, &question).await;
    lin.until(question["run_id"].as_str().unwrap(), "completed").await;
    assert!(ships().contains(IMAGE), "{}", ships());

    // The change is on its branch, there and at the remote, and `main` is as it was.
    let at = |dir: &Path, name: &str| {
        let mut command = git();
        let went = command.args(["show", name]).current_dir(dir).output().unwrap();
        String::from_utf8_lossy(&went.stdout).into_owned()
    };
    let workspace = office.server.config.workspace();
    assert_eq!(at(&workspace, "feature/price:src/price.txt"), "round(price, 2)\n");
    assert_eq!(at(&remote, "feature/price:src/price.txt"), "round(price, 2)\n");
    assert_eq!(at(&remote, "main:src/price.txt"), "price\n");
    assert!(!workspace.join("docker/Dockerfile").exists(), "it is not the worker's to write");

    // From the board's sentence to the verdict, in one view.
    let story = told(&lin, top).await;
    let manager = &story["children"][0];
    assert_eq!((&manager["from"], &manager["to"]), (&json!("ceo"), &json!("it_manager")));
    let manager =
        lin.get(&format!("/api/contracts/{}", manager["id"].as_str().unwrap())).await.json();
    assert_eq!(manager["state"], "in_progress");
    let of = |to: &str| {
        let found = manager["children"].as_array().unwrap().iter().find(|it| it["to"] == to);
        found.unwrap_or_else(|| panic!("no contract of {to}: {manager}")).clone()
    };
    let built = told(&lin, of("backend_worker")["id"].as_str().unwrap()).await;
    assert_eq!(built["state"], "passed");
    let steps: Vec<_> =
        built["history"].as_array().unwrap().iter().map(|it| it["to"].clone()).collect();
    assert_eq!(json!(steps), json!(["accepted", "in_progress", "review", "passed"]));
    let kinds: Vec<_> =
        built["mails"].as_array().unwrap().iter().map(|it| it["type"].clone()).collect();
    assert_eq!(json!(kinds), json!(["contract", "report", "verdict"]));
}

async fn told(lin: &crate::harness::Caller, contract: &str) -> Value {
    lin.get(&format!("/api/contracts/{contract}")).await.json()
}

async fn grant(lin: &crate::harness::Caller, question: &Value) {
    assert_eq!(question["tool"], "docker_deploy", "{question}");
    let path = format!("/api/permissions/{}/decision", question["id"].as_str().unwrap());
    let decided = lin.post(&path, &json!({"decision": "grant"})).await;
    assert_eq!(decided.status, 200, "{decided:?}");
}
