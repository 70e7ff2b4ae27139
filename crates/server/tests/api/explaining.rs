//! Why something was refused: every layer as it was, what the rules in force say of it, and what
//! would let it through.

use chancery_server::config::{ModelConfig, Provider};
use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::{Caller, Server};
use crate::house::{House, On, on_both};

on_both! {
    a_refusal_shows_every_layer_as_it_was_and_what_the_rules_say_now;
    what_is_asked_needs_a_person_until_somebody_has_answered;
    an_agent_that_asks_is_not_told_whom_it_could_turn_to;
    who_may_change_it_is_what_the_organisation_in_force_says;
    a_rejected_mail_leads_to_its_explanation;
}

/// Each layer with what it said, and the one that decided.
fn said(layers: &Value) -> (Vec<(String, String)>, Vec<String>) {
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let layers = layers.as_array().unwrap();
    let decides = layers.iter().filter(|it| it["decides"] == true).map(|it| word(it, "layer"));
    (layers.iter().map(|it| (word(it, "layer"), word(it, "said"))).collect(), decides.collect())
}

fn pairs<const N: usize>(all: [(&str, &str); N]) -> Vec<(String, String)> {
    all.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec()
}

fn kinds(entry: &Value) -> Vec<&str> {
    entry["ways"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect()
}

async fn refused(caller: &Caller) -> Value {
    let denied = caller.get("/api/audit?ruling=deny").await.json();
    let id = denied["items"][0]["id"].as_str().unwrap().to_owned();
    // A list says no more than it did.
    assert!(denied["items"][0].get("ways").is_none(), "{denied}");
    caller.get(&format!("/api/audit/{id}")).await.json()
}

async fn a_refusal_shows_every_layer_as_it_was_and_what_the_rules_say_now(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let run = lin.script("pa", json!([[["burn", {"to": "c"}]]])).await;
    lin.until(&run, "completed").await;
    let entry = refused(&lin).await;
    let every = pairs([
        ("identity", "pass"),
        ("tool", "pass"),
        ("delegation", "pass"),
        ("role", "pass"),
        ("risk", "pass"),
        ("capability", "objects"),
        ("arguments", "pass"),
        ("limits", "pass"),
    ]);
    assert_eq!(said(&entry["layers"]), (every.clone(), vec!["capability".to_owned()]));
    assert_eq!(said(&entry["now"]["layers"]).0, every);
    assert_eq!((&entry["now"]["ruling"], kinds(&entry)), (&json!("deny"), vec!["organisation"]));
    let rule = entry["ways"][0]["rule"].as_str().unwrap();
    assert!(rule.starts_with("capabilities.arson (policy.yaml:"), "{entry}");
    let path = format!("/audit/{}", entry["id"].as_str().unwrap());
    let page = browser.get(&path).await.text;
    for part in ["What would let it through", "<span class=\"tag\">decides</span>", rule] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Only an operator can draft it.
    assert!(!page.contains("/org/draft"), "{page}");
    // From the talk and from the trace it is one step away.
    assert!(browser.get(&format!("/runs/{run}")).await.text.contains(&path));
    // The record stays as it is when the rules change.
    house.redefine("capabilities: [arson]", "capabilities: []").await;
    let later = refused(&lin).await;
    assert_eq!(later["layers"], entry["layers"]);
    assert_eq!((&later["now"]["ruling"], kinds(&later)), (&json!("allow"), vec!["now"]));
    assert_eq!(later["ways"][0]["text"], "the same again: the rules in force allow it");
    let version = house.server.operator().get("/api/org").await.json()["version"].clone();
    assert_eq!(later["now"]["version"], version);
    // Looking at it is no ruling.
    let rulings = lin.get("/api/audit?kind=ruling").await.json();
    assert_eq!(rulings["items"].as_array().unwrap().len(), 1, "{rulings}");
    house.close().await;
}

async fn what_is_asked_needs_a_person_until_somebody_has_answered(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let listed = lin.get("/api/audit?kind=permission.requested").await.json();
    let path = format!("/api/audit/{}", listed["items"][0]["id"].as_str().unwrap());
    let entry = lin.get(&path).await.json();
    assert_eq!(
        (kinds(&entry), &entry["now"]["ruling"]),
        (vec!["person"], &json!("require_approval"))
    );
    assert_eq!(said(&entry["layers"]).1, ["risk"]);
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    let entry = lin.get(&path).await.json();
    assert!(entry.get("ways").is_none() && !entry["layers"].is_null(), "{entry}");
    house.close().await;
}

async fn an_agent_that_asks_is_not_told_whom_it_could_turn_to(on: On) {
    let house = House::open(on).await;
    let worker = house.server.holder(json!({"kind": "agent", "name": "backend_worker"})).await;
    let question = json!({"agent": "backend_worker", "tool": "docker_deploy"});
    let told = worker.post("/api/authorize", &question).await.json();
    assert_eq!((&told["ruling"], &told["ways"]), (&json!("deny"), &json!([])));
    let told = house.server.operator().post("/api/authorize", &question).await.json();
    let text = told["ways"].to_string();
    assert!(text.contains("backend_worker.tools (builtin/roles.yaml:"), "{told}");
    assert!(text.contains("raise it with `escalate`: it goes to `it_manager`"), "{told}");
    house.close().await;
}

async fn who_may_change_it_is_what_the_organisation_in_force_says(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    // Each change, and who may make it.
    let who = async |agent: &str, tool: &str| -> Vec<(String, Vec<String>)> {
        let asked = operator.post("/api/authorize", &json!({"agent": agent, "tool": tool})).await;
        let ways = asked.json()["ways"].as_array().unwrap().clone();
        let changes = ways.into_iter().filter(|it| it["kind"] == "organisation");
        let of = |it: Value| {
            let names = serde_json::from_value(it["who"].clone()).unwrap();
            (it["text"].as_str().unwrap().to_owned(), names)
        };
        changes.map(of).collect()
    };
    let one = |text: &str, who: &[&str]| {
        vec![(text.to_owned(), who.iter().map(|it| (*it).to_owned()).collect())]
    };
    let personnel = "agent `hr_manager`, with a contract of `ceo`";
    let back = "make it active again:";
    assert_eq!(who("gone", "note").await, one(back, &["an operator", personnel]));
    let tools = "add `docker_deploy` to";
    assert_eq!(who("backend_worker", "docker_deploy").await, one(tools, &["an operator"]));
    let mut browser = Browser::of(&house.server, "lin").await;
    let cookie = browser.cookie.clone();
    for (language, words) in [
        (
            "en",
            "may be changed by an operator, or by agent <code>hr_manager</code>, with a contract \
             of <code>ceo</code>",
        ),
        (
            "zh",
            "可由管理员，或智能体 <code>hr_manager</code>（凭 <code>ceo</code> 给它的合同）修改",
        ),
    ] {
        browser.cookie = format!("{cookie}; chancery_language={language}");
        let page = browser.get("/org?agent=gone&tool=note").await.text;
        assert!(page.contains(words), "{language}: {page}");
    }
    // Where nobody can be given the contract, it is an operator's alone.
    house.change("  ceo: {role: ceo, active: false}\n", "").await;
    assert_eq!(who("gone", "note").await, one(back, &["an operator"]));
    house.close().await;
}

async fn a_rejected_mail_leads_to_its_explanation(on: On) {
    let house = House::open(on).await;
    let (lin, ada) = (house.lin().await, house.server.human("ada").await);
    let mut browser = Browser::of(&house.server, "lin").await;
    let mail = json!({"to": "qa_worker", "type": "info", "subject": "s", "body": "b"});
    assert_eq!(lin.post("/api/mail", &mail).await.status, 403);
    let listed = lin.get("/api/mail/rejections").await.json()["items"][0].clone();
    let word = |name: &str| listed[name].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
    let (id, entry) = (word("id"), word("audit_id"));
    let page = browser.get("/mail?show=rejections").await.text;
    assert!(page.contains(&format!("href=\"/audit/{entry}\"")), "{page}");
    let kept = lin.get(&format!("/api/audit/{entry}")).await.json();
    let path = format!("/api/mail/rejections/{id}");
    let story = lin.get(&path).await.json();
    for name in ["layers", "now", "ways"] {
        assert_eq!(story[name], kept[name], "{story}");
    }
    assert_eq!(
        (&story["step"], said(&story["layers"]).1),
        (&json!("contact"), vec!["contact".into()])
    );
    let ways = story["ways"].to_string();
    assert!(ways.contains("let role `qa_worker` report to `board` in"), "{story}");
    // It has a page, with or without an entry of the audit.
    let path = format!("/mail/rejections/{id}");
    let cookie = browser.cookie.clone();
    for (language, words) in [("en", "What would let it through"), ("zh", "怎样才能通过")] {
        browser.cookie = format!("{cookie}; chancery_language={language}");
        let page = browser.get(&path).await.text;
        assert!(page.contains(words) && page.contains("qa_worker"), "{language}: {page}");
    }
    // It is for those whom it concerns, and for people.
    assert_eq!(ada.get(&format!("/api{path}")).await.status, 404);
    assert_eq!(lin.get("/api/mail/rejections/77").await.status, 404);
    let worker = house.server.holder(json!({"kind": "agent", "name": "backend_worker"})).await;
    let forbidden = json!({"to": "ceo", "type": "info", "subject": "s", "body": "b"});
    assert_eq!(worker.post("/api/mail", &forbidden).await.status, 403);
    let own = worker.get("/api/mail/rejections").await.json()["items"][0].clone();
    assert_eq!(own["audit_id"], Value::Null, "{own}");
    let path = format!("/api/mail/rejections/{}", own["id"].as_str().unwrap());
    assert_eq!(worker.get(&path).await.status, 403);
    house.close().await;
}

const SCENARIO: &str = include_str!("../../../cli/scenarios/demo.yaml");
const ORG: [(&str, &str); 2] = [
    ("tools.yaml", include_str!("../../../cli/scenarios/demo/tools.yaml")),
    ("policy.yaml", include_str!("../../../cli/scenarios/demo/policy.yaml")),
];

async fn demo() -> Server {
    Server::with(|config| {
        let org = config.data.with_file_name("org");
        std::fs::create_dir(&org).unwrap();
        for (name, text) in ORG {
            std::fs::write(org.join(name), text).unwrap();
        }
        config.org = Some(org);
        let path = config.data.with_file_name("demo.yaml");
        std::fs::write(&path, SCENARIO).unwrap();
        let scripted = ModelConfig { scenario: Some(path), ..ModelConfig::new(Provider::Scripted) };
        config.models.insert("default".to_owned(), scripted);
        std::fs::create_dir_all(config.workspace().join("docker")).unwrap();
    })
    .await
}

/// What the demo's agents try, and what each of them can do instead.
#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_of_the_demo_opens_an_explanation_with_a_next_step() {
    let server = demo().await;
    let (lin, mut browser) = (server.human("lin").await, Browser::of(&server, "lin").await);
    let start = async |agent: &str, input: &str, status: &str| -> String {
        let body = json!({"agent": agent, "input": input});
        let made = lin.post("/api/runs", &body).await.json();
        let run = made["id"].as_str().unwrap().to_owned();
        lin.until(&run, status).await;
        run
    };
    start("backend_worker", "break the rules: write to the ceo", "completed").await;
    start("research_worker", "break the rules: push code", "completed").await;
    let wish = "Ship the pricing fix, but change nothing";
    let only = json!({"allowed_tools": ["escalate_to_group", "record"]});
    let body = json!({"agent": "pa", "input": wish, "delegated_permissions": only});
    let made = lin.post("/api/runs", &body).await.json();
    lin.until(made["id"].as_str().unwrap(), "completed").await;
    let group = start("pa", "Ship the pricing fix", "waiting").await;
    let child = lin.get(&format!("/api/runs?parent={group}")).await.json();
    lin.until(child["items"][0]["id"].as_str().unwrap(), "waiting").await;

    let denied = lin.get("/api/audit?ruling=deny&limit=100").await.json();
    let denied = denied["items"].as_array().unwrap().clone();
    let mut about = std::collections::BTreeSet::new();
    for it in &denied {
        let id = it["id"].as_str().unwrap();
        let entry = lin.get(&format!("/api/audit/{id}")).await.json();
        assert!(!kinds(&entry).is_empty() && said(&entry["layers"]).1.len() == 1, "{entry}");
        about.insert((entry["kind"].to_string(), kinds(&entry).join(" ")));
        for (language, words) in [("en", "What would let it through"), ("zh", "怎样才能通过")]
        {
            let cookie = browser.cookie.clone();
            browser.cookie = format!("{cookie}; chancery_language={language}");
            let page = browser.get(&format!("/audit/{id}")).await.text;
            browser.cookie = cookie;
            assert!(page.contains(words), "{language}: {page}");
        }
    }
    assert!(about.len() > 2, "{about:?}");

    // Each of them is one step from the line that says so.
    let runs = lin.get("/api/runs?limit=100").await.json();
    let mut led = std::collections::BTreeSet::new();
    for run in runs["items"].as_array().unwrap() {
        let page = browser.get(&format!("/runs/{}", run["id"].as_str().unwrap())).await.text;
        let links = page.split("href=\"/audit/").skip(1).filter_map(|it| it.split('"').next());
        led.extend(links.map(str::to_owned));
    }
    let all: std::collections::BTreeSet<_> =
        denied.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(led, all);

    // The first that failed ends a mail's way: what comes after it was not looked at.
    let mail = denied.iter().find(|it| it["kind"] == "mail.rejected").unwrap();
    let entry = lin.get(&format!("/api/audit/{}", mail["id"].as_str().unwrap())).await.json();
    assert_eq!(
        said(&entry["layers"]),
        (
            pairs([
                ("sender", "pass"),
                ("recipient", "pass"),
                ("contact", "objects"),
                ("type", "not_looked_at"),
                ("contract", "not_looked_at"),
                ("attachments", "not_looked_at"),
                ("fields", "not_looked_at"),
            ]),
            vec!["contact".to_owned()]
        )
    );
    let ways = entry["ways"].to_string();
    for part in ["raise it with `escalate`: it goes to `it_manager`", "add `ceo` to"] {
        assert!(ways.contains(part), "{part}: {ways}");
    }
    server.running.stop().await;
}
