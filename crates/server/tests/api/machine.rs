//! The machine surface: health, counters, the document and its page, the files of a server.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use chancery_server::start;
use serde_json::{Value, json};

use crate::harness::{Server, id};

#[tokio::test]
async fn health_is_for_everyone_and_counters_are_not() {
    let server = Server::start().await;
    let version = env!("CARGO_PKG_VERSION");
    for (path, status) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let answered = server.nobody().get(path).await;
        assert_eq!(answered.json(), json!({"status": status, "version": version}));
        assert_eq!(answered.header("cache-control"), "no-store");
    }
    let run = id(&server.operator().run("x").await);
    server.operator().until(&run, "completed").await;
    server.operator().get("/nowhere/at/all").await.problem(404, "not_found");
    let counted = server.operator().get("/metrics").await;
    assert_eq!(counted.header("content-type"), "text/plain; charset=utf-8");
    for line in [
        "chancery_runs{status=\"completed\"} 1",
        "chancery_runs{status=\"waiting\"} 0",
        "chancery_queue_depth 0",
        "chancery_permissions_pending 0",
        "chancery_queue_claimed 0",
        "chancery_build_info{version=\"0.1.0\"} 1",
        "chancery_http_requests_total{method=\"POST\",route=\"/api/runs\",status=\"201\"} 1",
        "chancery_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"} 1",
    ] {
        assert!(counted.text.contains(line), "{line}\n{}", counted.text);
    }
    assert!(!counted.text.contains("nowhere") && !counted.text.contains(&run), "{}", counted.text);
    server.running.stop().await;
}

#[tokio::test]
async fn the_document_lists_every_route() {
    let server = Server::start().await;
    let answered = server.nobody().get("/openapi.json").await;
    assert_eq!(answered.header("content-type"), "application/json");
    let document = answered.json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut listed = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            listed.insert(format!("{} {path}", method.to_uppercase()));
            let open = operation["security"] == json!([{}]);
            assert_eq!(open, path == "/healthz" || path == "/readyz", "{method} {path}");
        }
    }
    let expected: BTreeSet<String> = [
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "GET /api/webhooks",
        "GET /api/webhooks/deliveries",
        "POST /api/webhooks/{name}/test",
        "GET /api/audit/{id}",
        "GET /api/memories",
        "POST /api/memories",
        "GET /api/memories/export",
        "GET /api/memories/search",
        "GET /api/memories/{id}",
        "DELETE /api/memories/{id}",
        "GET /api/rules",
        "GET /api/rules/{id}",
        "DELETE /api/rules/{id}",
        "POST /api/rules/{id}/narrow",
        "GET /api/rules/{id}/matches",
        "POST /api/authorize",
        "GET /api/org",
        "PUT /api/org",
        "GET /api/org/versions",
        "GET /api/org/versions/{number}",
        "GET /api/roles",
        "POST /api/org/impact",
        "GET /api/agents",
        "GET /api/groups",
        "GET /api/tools",
        "GET /api/permissions",
        "GET /api/permissions/{id}",
        "POST /api/permissions/{id}/decision",
        "POST /api/permissions/{id}/extend",
        "GET /api/permissions/{id}/matches",
        "POST /api/permissions/{id}/ask",
        "GET /api/runs",
        "POST /api/runs",
        "GET /api/runs/{id}",
        "GET /api/runs/{id}/events",
        "GET /api/runs/{id}/tree",
        "POST /api/runs/{id}/fork",
        "POST /api/runs/{id}/cancel",
        "POST /api/runs/{id}/pause",
        "POST /api/runs/{id}/resume",
        "POST /api/runs/{id}/wrapup",
        "POST /api/runs/{id}/messages",
        "POST /api/runs/{id}/signal",
        "POST /api/jobs/{id}/signal",
        "POST /api/jobs/{id}/message",
        "POST /api/mail",
        "GET /api/mail/{id}",
        "GET /api/mail/check",
        "GET /api/mail/rejections",
        "GET /api/mail/rejections/{id}",
        "GET /api/mcp/servers",
        "GET /api/agents/{id}/inbox",
        "GET /api/agents/{id}/sent",
        "GET /api/contracts",
        "POST /api/contracts",
        "GET /api/contracts/{id}",
        "POST /api/contracts/{id}/transition",
        "GET /api/tokens",
        "POST /api/tokens",
        "POST /api/tokens/{id}/revoke",
        "GET /api/audit",
        "GET /api/audit/export",
        "GET /api/audit/verify",
        "GET /api/audit/anchor",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(listed, expected);
    let schema = &document["components"]["schemas"]["Run"];
    let properties: BTreeSet<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let required: BTreeSet<String> = serde_json::from_value(schema["required"].clone()).unwrap();
    let optional: Vec<&&String> = properties.iter().filter(|it| !required.contains(**it)).collect();
    assert_eq!(optional, [&"forked_from", &"wait"]);
    let events = &document["paths"]["/api/runs/{id}/events"]["get"];
    let content = events["responses"]["200"]["content"].as_object().unwrap();
    assert_eq!(content.keys().collect::<Vec<_>>(), ["application/json", "text/event-stream"]);
    let headers: Vec<&Value> = events["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["in"] == "header")
        .map(|it| &it["name"])
        .collect();
    assert_eq!(headers, [&json!("Last-Event-ID")]);
    for parameter in events["parameters"].as_array().unwrap() {
        assert!(parameter["schema"]["type"].is_string(), "{parameter}");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn the_page_of_the_document_asks_nobody_else() {
    let server = Server::start().await;
    let page = server.nobody().get("/docs").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("http"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let mut loaded = 0;
    for part in page.text.split('"').filter(|it| it.ends_with(".js") || it.ends_with(".css")) {
        let path = format!("/docs/{}", part.trim_start_matches("./"));
        assert_eq!(server.nobody().get(&path).await.status, 200, "{path}");
        loaded += 1;
    }
    assert!(loaded >= 4, "{}", page.text);
    assert!(!page.text.contains("://"), "{}", page.text);
    let start = server.nobody().get("/docs/swagger-initializer.js").await.text;
    assert!(start.contains("\"validatorUrl\": \"none\""), "{start}");
    assert!(!start.contains("://"), "{start}");
    server.running.stop().await;
}

#[tokio::test]
async fn the_files_of_a_server_are_its_owners_and_go_with_it() {
    let server = Server::start().await;
    let data = server.config.data.clone();
    let mode =
        |name: &str| std::fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("token"), mode("server"), mode("")), (0o600, 0o600, 0o700));
    assert_eq!(mode("workspace"), 0o700);
    let read = |name: &str| std::fs::read_to_string(data.join(name)).unwrap();
    assert_eq!(read("token"), server.running.local_token);
    assert_eq!(read("server"), server.running.url());
    let old = server.running.local_token.clone();
    let (config, data_dir) = (server.config.clone(), server.data);
    server.running.stop().await;
    assert!(!data.join("token").exists() && !data.join("server").exists());
    // The token went with the server.
    let again = start(&config, []).await.unwrap();
    let again = Server { running: again, data: data_dir, config };
    let stale = again.caller(Some(&old));
    stale.get("/api/runs").await.problem(401, "unauthenticated");
    assert_eq!(again.operator().get("/api/runs").await.status, 200);
    again.running.stop().await;
}

#[tokio::test]
async fn a_token_that_a_killed_server_left_is_worthless_after_the_next_start() {
    let server = Server::start().await;
    let (config, old) = (server.config.clone(), server.running.local_token.clone());
    let data = server.data;
    server.running.stop().await;
    // As if it had been killed: its token is valid, and in the file.
    let store =
        chancery_store::Store::open(&config.location(), chancery_runtime::clock::new_worker_id())
            .await
            .unwrap();
    let kind = chancery_store::token::TokenKind::Human;
    let by = chancery_domain::event::Actor::System;
    let (left, _) =
        chancery_server::tokens::make(&store, kind, "operator", true, true, by).await.unwrap();
    store.close().await;
    drop(store);
    std::fs::write(config.data.join("token"), &left).unwrap();
    let running = start(&config, []).await.unwrap();
    let server = Server { running, data, config };
    for stale in [&old, &left] {
        let caller = server.caller(Some(stale));
        caller.get("/api/runs").await.problem(401, "unauthenticated");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn a_token_set_from_outside_is_an_operators() {
    let secret = [("CHANCERY_BOOTSTRAP_TOKEN", " for-automation\n")];
    let server = Server::with_environment(|_| {}, &secret).await;
    let caller = server.caller(Some("for-automation"));
    assert_eq!(caller.get("/api/tokens").await.status, 200);
    assert_eq!(caller.run("x").await["user"], "operator");
    server.running.stop().await;
    let long = "x".repeat(513);
    for bad in ["two words", "\u{e9}", &*long, " "] {
        let environment = [("CHANCERY_BOOTSTRAP_TOKEN".to_owned(), bad.to_owned())];
        let refused = start(&server.config, environment).await.unwrap_err().to_string();
        assert!(refused.contains("CHANCERY_BOOTSTRAP_TOKEN"), "{refused}");
        assert!(!refused.contains(bad.trim()) || bad.trim().is_empty(), "{refused}");
    }
    let file = server.data.path().join("secret");
    std::fs::write(&file, "from-a-file\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let server =
        Server::with_environment(|_| {}, &[("CHANCERY_BOOTSTRAP_TOKEN_FILE", &file)]).await;
    assert_eq!(server.caller(Some("from-a-file")).get("/api/tokens").await.status, 200);
    server.running.stop().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused_and_harms_nothing() {
    let server = Server::start().await;
    let refused = start(&server.config, []).await.unwrap_err().to_string();
    assert!(refused.starts_with("another server uses the data directory"), "{refused}");
    assert!(!refused.contains('\n'));
    assert_eq!(server.operator().get("/api/runs").await.status, 200);
    assert!(server.config.data.join("token").exists());
    // On another directory, but the same port.
    let mut config = server.config.clone();
    config.data = server.data.path().join("other");
    config.listen = server.running.address;
    let refused = start(&config, []).await.unwrap_err().to_string();
    assert!(refused.starts_with("cannot listen on 127.0.0.1:"), "{refused}");
    assert!(!config.data.join("token").exists());
    server.running.stop().await;
}

#[tokio::test]
async fn every_operation_has_a_name_of_its_own_and_every_answer_a_description() {
    let server = Server::start().await;
    let document = server.nobody().get("/openapi.json").await.json();
    let mut names = std::collections::BTreeSet::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            for response in operation["responses"].as_object().unwrap().values() {
                assert!(!response["description"].as_str().unwrap().is_empty(), "{name}");
            }
        }
    }
    assert!(names.contains("runs_create") && names.contains("permissions_decide"), "{names:?}");
    server.running.stop().await;
}

#[tokio::test]
async fn the_page_about_the_api_knows_every_noun() {
    let page = include_str!("../../../../docs/api.md");
    let server = Server::start().await;
    let document = server.nobody().get("/openapi.json").await.json();
    for path in document["paths"].as_object().unwrap().keys() {
        let noun: Vec<&str> = path.split('/').take(3).collect();
        assert!(page.contains(&noun.join("/")), "{path}");
    }
    server.running.stop().await;
}

#[test]
fn the_dashboard_asks_for_what_is_counted() {
    fn sources(dir: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|it| it == "rs") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let top = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let mut text = String::new();
    for name in ["server", "runtime"] {
        sources(&top.join("crates").join(name).join("src"), &mut text);
    }
    let dashboard = std::fs::read_to_string(top.join("deploy/grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|it| it["targets"].as_array().unwrap());
    let asked: std::collections::BTreeSet<&str> = targets
        .flat_map(|it| {
            it["expr"].as_str().unwrap().split(|it: char| !it.is_alphanumeric() && it != '_')
        })
        .filter(|it| it.starts_with("chancery_"))
        .collect();
    assert!(asked.len() > 5, "{asked:?}");
    for name in asked {
        assert!(text.contains(&format!("!(\"{name}\"")), "{name} is counted nowhere");
    }
}
