//! Webhooks: what happened to a run is told, also to one who was away.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use chancery_server::config::{WebhookConfig, WebhookFormat};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::console::Browser;
use crate::harness::{Server, id};
use crate::house::{House, On, on_both};

on_both! {
    a_question_is_told_with_a_signature_and_told_again_to_one_who_was_away;
    a_subscriber_is_tried_out_before_it_matters;
}

/// A message, as it came.
#[derive(Debug, Clone)]
struct Message {
    delivery: String,
    signature: Option<String>,
    text: String,
    body: Value,
}

type Heard = Arc<Mutex<Vec<Message>>>;

/// Has trouble of its own with the first `busy`; hears them all.
async fn subscriber(busy: usize) -> (String, Heard) {
    let heard = Heard::default();
    let ears = heard.clone();
    let hook = async move |headers: HeaderMap, text: String| {
        let header = |name: &str| headers.get(name).map(|it| it.to_str().unwrap().to_owned());
        let (delivery, signature) =
            (header("x-chancery-delivery").unwrap(), header("x-chancery-signature"));
        let body = serde_json::from_str(&text).unwrap();
        let mut heard = ears.lock().unwrap();
        heard.push(Message { delivery, signature, text, body });
        match heard.len() > busy {
            true => StatusCode::NO_CONTENT,
            false => StatusCode::INTERNAL_SERVER_ERROR,
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = Router::new().route("/hook", post(hook));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, heard)
}

/// Waits for so many messages. The runner of the tests ends one that never comes to it.
async fn all(heard: &Heard, count: usize) -> Vec<Message> {
    loop {
        let told = heard.lock().unwrap().clone();
        if told.len() >= count {
            return told;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// HMAC-SHA256 as RFC 2104 has it, and with nothing of ours.
fn hmac(key: &str, text: &str) -> String {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key.bytes()).for_each(|(it, key)| *it ^= key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
    outer.iter().map(|it| format!("{it:02x}")).collect()
}

#[tokio::test]
async fn what_happens_to_a_run_is_told_and_no_word_of_an_agent() {
    let (url, heard) = subscriber(1).await;
    let events = ["run.created", "run.completed"].map(str::to_owned).to_vec();
    let hook = WebhookConfig { url, events, secret_env: None, format: WebhookFormat::Generic };
    let server = Server::with(|config| {
        config.webhooks.insert("ops".to_owned(), hook);
    })
    .await;
    let operator = server.operator();
    let run = id(&operator.run("a secret of the user").await);
    operator.until(&run, "completed").await;
    // The first of them came twice.
    let told = all(&heard, 3).await.split_off(1);
    let mut kinds: Vec<_> = told.iter().map(|it| it.body["type"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["run.completed", "run.created"]);
    for Message { delivery, signature, text, body } in &told {
        assert!(delivery.parse::<u64>().is_ok(), "{delivery}");
        assert_eq!((&body["run_id"], signature), (&json!(run), &None));
        assert!(!text.contains("secret"), "{text}");
    }
    server.running.stop().await;
}

async fn a_question_is_told_with_a_signature_and_told_again_to_one_who_was_away(on: On) {
    let (ops, slack, feishu) = (subscriber(1).await, subscriber(0).await, subscriber(0).await);
    let hook = |url: &str, format: WebhookFormat, secret_env: Option<&str>| WebhookConfig {
        url: url.to_owned(),
        events: vec!["permission.requested".to_owned()],
        secret_env: secret_env.map(str::to_owned),
        format,
    };
    let settle = |config: &mut chancery_server::config::Config| {
        config.public_url = Some("https://chancery.example/".to_owned());
        let hooks = [
            ("ops", hook(&ops.0, WebhookFormat::Generic, Some("OPS_SECRET"))),
            ("slack", hook(&slack.0, WebhookFormat::Slack, None)),
            ("feishu", hook(&feishu.0, WebhookFormat::Feishu, None)),
        ];
        config.webhooks = hooks.map(|(name, it)| (name.to_owned(), it)).into();
    };
    let house = House::with_environment(on, settle, &[("OPS_SECRET", "a shared secret")]).await;
    let (lin, operator) = (house.lin().await, house.server.operator());
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a hidden account"}]]])).await;
    let link = format!("https://chancery.example/inbox/{}", asked[0]["id"].as_str().unwrap());

    let told = all(&ops.1, 2).await;
    for Message { signature, text, body, .. } in &told {
        assert_eq!((&body["type"], &body["run_id"]), (&json!("permission.requested"), &json!(run)));
        let question = &body["permissions"][0];
        assert_eq!((&question["id"], &question["url"]), (&asked[0]["id"], &json!(link)));
        assert_eq!((&question["tool"], &question["risk"]), (&json!("pay"), &json!("high")));
        let (at, hash) = signature.as_deref().unwrap().split_once(",v1=").unwrap();
        let at = at.strip_prefix("t=").unwrap();
        assert_eq!(hash, hmac("a shared secret", &format!("{at}.{text}")));
        let age = chancery_runtime::clock::now().as_second() - at.parse::<i64>().unwrap();
        assert!((0..60).contains(&age), "{age}");
    }
    assert_eq!((told.len(), &told[0].delivery), (2, &told[1].delivery));

    let said = all(&slack.1, 1).await.remove(0).body["text"].clone();
    let also = all(&feishu.1, 1).await.remove(0).body;
    assert_eq!((&also["msg_type"], &also["content"]["text"]), (&json!("text"), &said));
    let said = said.as_str().unwrap();
    assert!(said.starts_with("[HIGH] pa asks for pay for lin") && said.ends_with(&link), "{said}");
    // A channel holds no authority, and learns nothing that an agent said.
    let everything = [&ops, &slack, &feishu].map(|it| format!("{:?}", it.1.lock().unwrap()));
    for part in ["chy_", &house.server.running.local_token, "hidden", "I shall", "shared"] {
        assert!(!everything.concat().contains(part), "{part}: {everything:?}");
    }

    lin.get("/api/webhooks/deliveries").await.problem(403, "forbidden");
    let log = loop {
        let page = operator.get("/api/webhooks/deliveries").await.json();
        let mut items = page["items"].as_array().unwrap().clone();
        items.retain(|it| it["subscriber"] == "ops");
        // What was heard is logged a moment later.
        if items.len() == 2 {
            break items;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let tries: Vec<_> = log.iter().map(|it| (&it["attempt"], &it["delivery"])).collect();
    let delivery = json!(told[0].delivery.parse::<u64>().unwrap());
    assert_eq!(tries, [(&json!(2), &delivery), (&json!(1), &delivery)]);
    assert_eq!(log[0]["error"], Value::Null);
    assert!(log[1]["error"].as_str().unwrap().contains("500"), "{log:?}");
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(ops.1.lock().unwrap().len(), 2);
    house.close().await;
}

async fn a_subscriber_is_tried_out_before_it_matters(on: On) {
    let (ops, away) = (subscriber(0).await, subscriber(9).await);
    let hook = |url: &str, secret_env: Option<&str>| WebhookConfig {
        url: url.to_owned(),
        events: vec!["run.completed".to_owned()],
        secret_env: secret_env.map(str::to_owned),
        format: WebhookFormat::Generic,
    };
    let settle = |config: &mut chancery_server::config::Config| {
        config.public_url = Some("https://chancery.example/".to_owned());
        config.webhooks.insert("ops".to_owned(), hook(&ops.0, Some("OPS_SECRET")));
        config.webhooks.insert("away".to_owned(), hook(&away.0, None));
    };
    let house = House::with_environment(on, settle, &[("OPS_SECRET", "a shared secret")]).await;
    let (lin, operator) = (house.lin().await, house.server.operator());
    for path in ["/api/webhooks/ops/test", "/api/webhooks/nobody/test"] {
        lin.post(path, &json!({})).await.problem(403, "forbidden");
    }
    lin.get("/api/webhooks").await.problem(403, "forbidden");
    operator.post("/api/webhooks/nobody/test", &json!({})).await.problem(404, "not_found");
    let known = operator.get("/api/webhooks").await.json();
    let names: Vec<_> = known["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["away", "ops"]);

    let tried = operator.post("/api/webhooks/ops/test", &json!({})).await.json();
    assert_eq!((&tried["subscriber"], &tried["error"]), (&json!("ops"), &Value::Null));
    let told = ops.1.lock().unwrap().clone();
    let Message { delivery, signature, text, body } = &told[0];
    assert_eq!(
        (told.len(), json!(delivery.parse::<u64>().unwrap())),
        (1, tried["delivery"].clone())
    );
    assert_eq!((&body["type"], &body["by"]), (&json!("test"), &json!("operator")));
    assert_eq!(body["url"], "https://chancery.example/settings");
    let (at, hash) = signature.as_deref().unwrap().split_once(",v1=").unwrap();
    let at = at.strip_prefix("t=").unwrap();
    assert_eq!(hash, hmac("a shared secret", &format!("{at}.{text}")));

    let failed = operator.post("/api/webhooks/away/test", &json!({})).await.json();
    assert!(failed["error"].as_str().unwrap().contains("500"), "{failed}");
    let log = operator.get("/api/webhooks/deliveries").await.json()["items"].clone();
    let logged = |at: usize| (log[at]["subscriber"].clone(), log[at]["type"].clone());
    assert_eq!([logged(0), logged(1)].map(|it| it.1), [json!("test"), json!("test")]);
    assert_eq!([logged(0), logged(1)].map(|it| it.0), [json!("away"), json!("ops")]);
    assert_eq!(log[0]["error"], failed["error"]);

    // The same by a press, with the mark of the visit; people who run nothing have no button.
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let action = "/settings/webhooks/ops/test";
    assert_eq!(boss.post(action, &[]).await.status, 403);
    let pressed = boss.fill("/settings", action, &[]).await;
    assert!(pressed.text.contains("id=\"told\" class=\"made\""), "{}", pressed.text);
    let failed = boss.fill("/settings", "/settings/webhooks/away/test", &[]).await;
    assert!(failed.text.contains("id=\"told\" class=\"problem\""), "{}", failed.text);
    let browser = Browser::of(&house.server, "lin").await;
    assert!(!browser.get("/settings").await.text.contains(action));
    let mark = browser.mark("/settings").await;
    assert_eq!(browser.post(action, &[("csrf", &mark)]).await.status, 403);

    // What failed is not tried again by itself: after it only what happens is told.
    let run = lin.script("pa", json!([])).await;
    lin.until(&run, "completed").await;
    let told = all(&away.1, 3).await;
    let kinds: Vec<_> = told.iter().map(|it| it.body["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["test", "test", "run.completed"]);
    assert_eq!(all(&ops.1, 3).await.len(), 3);
    house.close().await;
}
