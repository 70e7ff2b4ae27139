//! Notes, reports, requirements, the backlog, equipment, CI, logs and code.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::json;

use super::{House, code, json as read};

#[tokio::test]
async fn a_note_is_kept_under_its_writers_own_notes_and_listed() {
    let house = House::new().await;
    let given = json!({"title": "Q3: what now?", "content": "Less."});
    let wrote = house.call_as("ceo", "write_note", given.clone(), "k1").await;
    assert_eq!(code(&wrote), "OK", "{}", wrote.text);
    let path = wrote.text.split('`').nth(1).unwrap().to_owned();
    assert!(path.starts_with("agents/ceo/notes/2") && path.ends_with("-q3-what-now.md"), "{path}");
    let note = house.text(&path);
    assert!(note.contains("author: \"ceo\"") && note.ends_with("Less.\n"), "{note}");
    assert!(house.text("agents/ceo/notes/INDEX.md").contains("Q3: what now?"));
    // A call that is repeated after a crash is the same note.
    let again = house.call_as("ceo", "write_note", given, "k1").await;
    assert_eq!(again.text, wrote.text);
    assert_eq!(std::fs::read_dir(house.at("agents/ceo/notes")).unwrap().count(), 2);
}

#[tokio::test]
async fn writers_at_the_same_time_lose_nothing() {
    let house = Arc::new(House::new().await);
    let mut writers = Vec::new();
    for number in 0..24 {
        let house = house.clone();
        writers.push(tokio::spawn(async move {
            let note = json!({"title": "the same", "content": "x"});
            let item = json!({"action": "add", "title": format!("item {number}")});
            let note = house.call("ceo", "write_note", note).await;
            let item = house.call("product_manager", "manage_backlog", item).await;
            (note.text, read(&item)["id"].as_str().unwrap().to_owned())
        }));
    }
    let (mut notes, mut items) = (BTreeSet::new(), BTreeSet::new());
    for writer in writers {
        let (note, item) = writer.await.unwrap();
        notes.insert(note);
        items.insert(item);
    }
    assert_eq!((notes.len(), items.len()), (24, 24));
    let rows = |path: &str| house.text(path).lines().filter(|it| it.starts_with("| [")).count();
    assert_eq!((rows("agents/ceo/notes/INDEX.md"), rows("backlog/INDEX.md")), (24, 24));
}

#[tokio::test]
async fn reports_are_read_as_far_as_a_scope_reads_them() {
    let house = House::new().await;
    let report = json!({"title": "Rivals", "content": "There are two.", "report_type": "research"});
    let wrote = house.call("research_worker", "write_report", report).await;
    assert!(wrote.text.contains("reports/research/"), "{}", wrote.text);
    house.put("reports/tech/2026-02-10-outage.md", "The disk was full.");
    house.put("reports/hr/20260101-people.md", "---\ntype: status\n---\nTen of us.");
    house.put("reports/hr/.env", "SECRET");
    house.put("reports/hr/id_rsa.md", "SECRET");
    symlink("../hr/20260101-people.md", house.at("reports/tech/over.md")).unwrap();

    let listed = |result: &chancery_domain::event::CallResult| -> Vec<String> {
        let all = read(result)["reports"].as_array().unwrap().clone();
        all.iter()
            .map(|it| it["path"].as_str().unwrap().rsplit('/').nth(1).unwrap().to_owned())
            .collect()
    };
    let all = house.call("ceo", "read_reports", json!({})).await;
    assert_eq!(listed(&all), ["research", "tech", "hr"]);
    assert!(!all.text.contains("SECRET"));
    let tech = house.call("it_manager", "read_reports", json!({})).await;
    assert_eq!(listed(&tech), ["tech"]);
    for (given, expected) in [
        (json!({"department": "product"}), vec!["research"]),
        (json!({"department": "it"}), vec!["tech"]),
        (json!({"report_type": "status"}), vec!["hr"]),
        (json!({"date_range": "2026-02-01..2026-02-28"}), vec!["tech"]),
        (json!({"date_range": "..2026-01-31"}), vec!["hr"]),
        (json!({"limit": 1}), vec!["research"]),
    ] {
        let found = house.call("ceo", "read_reports", given.clone()).await;
        assert_eq!(listed(&found), expected, "{given}");
    }
    let whole = json!({"path": "reports/tech/2026-02-10-outage.md"});
    assert_eq!(house.call("ceo", "read_reports", whole.clone()).await.text, "The disk was full.");
    assert_eq!(
        house.call("it_manager", "read_tech_reports", whole).await.text,
        "The disk was full."
    );
    for (agent, tool, given, expected) in [
        ("it_manager", "read_reports", json!({"department": "hr"}), "DENIED_AT_THE_GATE"),
        (
            "it_manager",
            "read_reports",
            json!({"path": "reports/hr/20260101-people.md"}),
            "DENIED_AT_THE_GATE",
        ),
        (
            "it_manager",
            "read_reports",
            json!({"path": "reports/tech/over.md"}),
            "PERMISSION_DENIED",
        ),
        ("ceo", "read_reports", json!({"path": "agents/ceo/x"}), "INVALID_ARGUMENTS"),
        ("ceo", "read_reports", json!({"date_range": "soon"}), "INVALID_ARGUMENTS"),
        ("product_manager", "read_tech_reports", json!({}), "DENIED_AT_THE_GATE"),
    ] {
        assert_eq!(code(&house.call(agent, tool, given.clone()).await), expected, "{given}");
    }
    house.put("reports/product/feedback/1.md", "Too slow.");
    let said = house.call("product_manager", "read_user_feedback", json!({})).await;
    assert_eq!(read(&said)["reports"][0]["begins"], "Too slow.");
}

#[tokio::test]
async fn the_backlog_is_kept_and_ordered() {
    let house = House::new().await;
    let pm = |tool: &'static str, given| house.call("product_manager", tool, given);
    for (title, priority) in [("a", "low"), ("b", "critical"), ("c", "medium")] {
        let added =
            pm("manage_backlog", json!({"action": "add", "title": title, "priority": priority}))
                .await;
        assert_eq!(code(&added), "OK", "{}", added.text);
    }
    let order = |listed: &chancery_domain::event::CallResult| -> String {
        let items = read(listed)["items"].as_array().unwrap().clone();
        items.iter().map(|it| it["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(order(&pm("manage_backlog", json!({"action": "list"})).await), "bca");
    let put = pm("prioritize_tasks", json!({"order": ["BL-0003", "BL-0001"]})).await;
    assert_eq!(code(&put), "OK", "{}", put.text);
    assert_eq!(order(&pm("manage_backlog", json!({"action": "list"})).await), "cab");
    let closed = pm("manage_backlog", json!({"action": "close", "id": "BL-0003"})).await;
    assert_eq!(read(&closed)["status"], "closed");
    pm("manage_backlog", json!({"action": "update", "id": "BL-0001", "title": "A"})).await;
    assert_eq!(order(&pm("manage_backlog", json!({"action": "list"})).await), "Ab");
    let index = house.text("backlog/INDEX.md");
    assert!(index.find("BL-0003").unwrap() < index.find("BL-0001").unwrap(), "{index}");
    for (given, expected) in [
        (json!({"action": "update", "id": "BL-0009"}), "NOT_FOUND"),
        (json!({"action": "close"}), "INVALID_ARGUMENTS"),
        (json!({"action": "add"}), "INVALID_ARGUMENTS"),
        (json!({"action": "update", "id": "../../x"}), "DENIED_AT_THE_GATE"),
    ] {
        assert_eq!(code(&pm("manage_backlog", given.clone()).await), expected, "{given}");
    }
    let unknown = pm("prioritize_tasks", json!({"order": ["BL-0042"]})).await;
    assert_eq!(code(&unknown), "NOT_FOUND");
    let stranger = house.call("ceo", "manage_backlog", json!({"action": "list"})).await;
    assert_eq!(code(&stranger), "DENIED_AT_THE_GATE");
}

#[tokio::test]
async fn requirements_have_revisions_and_equipment_a_register() {
    let house = House::new().await;
    for (key, revision) in [("k1", 1), ("k2", 2), ("k2", 2)] {
        let given = json!({"title": "Log in", "content": format!("as of {key}")});
        let wrote = house.call_as("product_manager", "write_prd", given, key).await;
        assert_eq!(wrote.text, format!("wrote `docs/prd/log-in.md`, revision {revision}"));
    }
    assert!(house.text("docs/prd/INDEX.md").contains("Log in"));
    let denied = house.call("ceo", "write_prd", json!({"title": "x", "content": ""})).await;
    assert_eq!(code(&denied), "DENIED_AT_THE_GATE");

    let it = |given| house.call("it_manager", "manage_tools", given);
    let add = json!({"action": "add", "name": "scanner", "owner": "qa", "description": "Scans."});
    assert_eq!(code(&it(add.clone()).await), "OK");
    assert_eq!(code(&it(add).await), "EXISTS");
    assert_eq!(code(&it(json!({"action": "retire", "name": "scanner"})).await), "OK");
    let listed = read(&it(json!({"action": "list"})).await);
    assert_eq!(listed["equipment"][0]["status"], "retired");
    assert!(house.text("equipment/INDEX.md").contains("retired"));
}

#[tokio::test]
async fn a_workflow_is_yaml_or_is_not_written() {
    let house = House::new().await;
    let ops = |given| house.call("devops_worker", "manage_ci_config", given);
    let write = |content: &str| json!({"action": "write", "name": "ci.yml", "content": content});
    assert_eq!(code(&ops(write("on: push\njobs: {a: {runs-on: x}}\n")).await), "OK");
    for wrong in ["jobs: [", "a: 1\na: 2", "- a\n- b\n", "just text", "a: &x [*x, *x]", ""] {
        assert_eq!(code(&ops(write(wrong)).await), "INVALID_YAML", "{wrong}");
    }
    let name = json!({"action": "write", "name": "../../evil.yml", "content": "a: 1"});
    assert_eq!(code(&ops(name).await), "DENIED_AT_THE_GATE");
    let shown = ops(json!({"action": "read", "name": "ci.yml"})).await;
    assert!(shown.text.starts_with("on: push"), "{}", shown.text);
    assert_eq!(read(&ops(json!({"action": "list"})).await)["workflows"], json!(["ci.yml"]));
    let worker = json!({"action": "write", "name": "ci.yml", "content": "a: 1"});
    let worker = house.call("backend_worker", "manage_ci_config", worker).await;
    assert_eq!(code(&worker), "DENIED_AT_THE_GATE");
}

#[tokio::test]
async fn logs_are_read_from_their_end_and_code_within_a_scope() {
    let house = House::new().await;
    house.put("logs/app/today.log", "1 ok\n2 ERROR disk\n3 ok\n");
    house.put("secret.log", "SECRET");
    symlink("../secret.log", house.at("logs/over.log")).unwrap();
    let ops = |given| house.call("devops_worker", "read_logs", given);
    assert_eq!(read(&ops(json!({})).await)["files"], json!(["logs/app/today.log"]));
    let last = ops(json!({"file": "app/today.log", "lines": 1})).await;
    assert_eq!(last.text, "3 ok");
    let errors = ops(json!({"file": "logs/app/today.log", "contains": "error"})).await;
    assert_eq!(errors.text, "2 ERROR disk");
    assert_eq!(code(&ops(json!({"file": "over.log"})).await), "PERMISSION_DENIED");
    assert_eq!(code(&ops(json!({"file": "../secret.log"})).await), "DENIED_AT_THE_GATE");

    house.put("agents/backend_worker/WORKSPACE/main.rs", "fn main() {}");
    house.put("agents/backend_worker/diary.md", "mine");
    let it = |given| house.call("it_manager", "read_code", given);
    let folder = "agents/backend_worker/WORKSPACE";
    assert_eq!(read(&it(json!({"path": folder})).await)["entries"], json!(["main.rs"]));
    let file = it(json!({"path": format!("{folder}/main.rs")})).await;
    assert_eq!(file.text, "fn main() {}");
    assert!(it(json!({})).await.text.contains(folder));
    let diary = it(json!({"path": "agents/backend_worker/diary.md"})).await;
    assert_eq!(code(&diary), "DENIED_AT_THE_GATE");
}

#[tokio::test]
async fn programs_are_the_operators_to_name() {
    let house = House::new().await;
    for tool in ["run_test", "run_linter", "run_health_check"] {
        let unsaid = house.call("backend_worker", tool, json!({})).await;
        assert_eq!(code(&unsaid), "NOT_CONFIGURED");
        assert!(unsaid.text.contains(&format!("commands: {{{tool}:")), "{}", unsaid.text);
    }
    let tools = "commands: {run_test: {description: Tests, command: [printf, passed]}, \
                 write_note: {description: Ours, command: [printf, noted]}}";
    let house = House::with(tools, |_| {}).await;
    let ran = house.call("backend_worker", "run_test", json!({})).await;
    assert_eq!(ran.text, "exit code 0\n--- output\npassed");
    let noted = house.call("ceo", "write_note", json!({})).await;
    assert_eq!(noted.text, "exit code 0\n--- output\nnoted");
}
