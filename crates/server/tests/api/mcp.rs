//! `/mcp`: agents outside at the gate, over real sockets and on both databases.

use std::time::{Duration, Instant};

use chancery_server::config::OnAsk;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{Answer, Caller, Server, answer};
use crate::house::{House, On, on_both};

on_both! {
    an_agent_sees_what_the_authority_does_not_deny_it_and_nothing_else;
    a_call_that_is_allowed_runs_and_is_answered;
    a_call_that_is_denied_is_refused_with_its_rule_and_the_audit_knows_it;
    a_call_that_must_ask_waits_with_progress_and_runs_once_when_it_is_granted;
    what_a_person_denies_does_not_run_and_says_so;
    a_pending_call_is_answered_at_once_and_its_result_is_found_later;
    two_clients_with_one_key_make_one_call;
    a_caller_that_goes_away_loses_nothing_but_the_wait;
    a_server_that_stops_answers_those_who_wait_and_the_call_goes_on_after_it;
    a_page_that_is_shown_decides_nothing;
    one_agents_calls_are_not_anothers;
    what_a_call_asks_is_for_people_and_never_for_agents;
}

/// Someone who speaks the protocol.
#[derive(Clone)]
pub struct Client(pub Caller);

/// What came back: the messages of the stream, the answer last.
#[derive(Debug)]
pub struct Said(Vec<Value>);

impl Client {
    pub async fn agent(server: &Server, agent: &str) -> Client {
        Client(server.holder(json!({"kind": "agent", "name": agent})).await)
    }

    pub fn request(&self, body: &Value) -> reqwest::RequestBuilder {
        let accept = "application/json, text/event-stream";
        let version = "2025-11-25";
        self.0
            .request(Method::POST, "/mcp")
            .header("accept", accept)
            .header("mcp-protocol-version", version)
            .json(body)
    }

    pub async fn ask(&self, method: &str, params: Value) -> Said {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        Said::of(&answer(self.request(&body)).await)
    }

    pub async fn tools(&self) -> Vec<String> {
        let said = self.ask("tools/list", json!({})).await;
        let tools = said.result()["tools"].as_array().unwrap().clone();
        tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn call(&self, tool: &str, arguments: Value, meta: Value) -> Said {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.ask("tools/call", params).await
    }

    fn calls(&self, tool: &str, arguments: Value, meta: Value) -> JoinHandle<Said> {
        let (client, tool) = (self.clone(), tool.to_owned());
        tokio::spawn(async move { client.call(&tool, arguments, meta).await })
    }

    async fn reads(&self, uri: &str) -> Value {
        let said = self.ask("resources/read", json!({"uri": uri})).await;
        let text = said.result()["contents"][0]["text"].as_str().unwrap().to_owned();
        serde_json::from_str(&text).unwrap()
    }
}

impl Said {
    fn of(answer: &Answer) -> Said {
        assert_eq!(answer.status, 200, "{answer:?}");
        if answer.header("content-type").starts_with("application/json") {
            return Said(vec![answer.json()]);
        }
        let data = answer.text.lines().filter_map(|it| it.strip_prefix("data:"));
        let data = data.map(str::trim).filter(|it| !it.is_empty());
        Said(data.map(|it| serde_json::from_str(it).unwrap()).collect())
    }

    #[track_caller]
    pub fn result(&self) -> &Value {
        let last = self.0.last().unwrap();
        assert!(last["result"].is_object(), "{last}");
        &last["result"]
    }

    #[track_caller]
    fn text(&self) -> &str {
        text(self.result())
    }

    /// What a command of the house printed.
    #[track_caller]
    fn printed(&self) -> &str {
        printed(self.result())
    }

    /// The structured content of an answer that is an error.
    #[track_caller]
    fn refusal(&self) -> &Value {
        assert_eq!(self.result()["isError"], true, "{self:?}");
        &self.result()["structuredContent"]
    }

    #[track_caller]
    fn error(&self) -> &str {
        self.0.last().unwrap()["error"]["message"].as_str().unwrap()
    }

    fn progress(&self) -> Vec<&Value> {
        let told = self.0.iter().filter(|it| it["method"] == "notifications/progress");
        told.map(|it| &it["params"]).collect()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn printed(result: &Value) -> &str {
    text(result).strip_prefix("exit code 0\n--- output\n").unwrap_or_else(|| panic!("{result}"))
}

/// The one question that is open, once it is.
async fn question(person: &Caller) -> Value {
    let began = Instant::now();
    loop {
        let page = person.get("/api/permissions?status=pending").await.json();
        if let Some(first) = page["items"].as_array().unwrap().first() {
            return first.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(20), "nobody is asked");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What a pending call was answered with, once it is not pending any more.
async fn settled(client: &Client, run: &str) -> Value {
    let began = Instant::now();
    loop {
        let shown = client.reads(&format!("chancery://calls/{run}")).await;
        if shown["structuredContent"]["status"] != "pending" {
            return shown;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "still pending: {shown}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn an_agent_sees_what_the_authority_does_not_deny_it_and_nothing_else(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    let all = operator.get("/api/tools").await.json();
    let all = all["items"].as_array().unwrap();
    for agent in ["payer", "narrow", "patterns"] {
        let mut allowed = Vec::new();
        for tool in all.iter().map(|it| it["name"].as_str().unwrap()) {
            let asked = json!({"agent": agent, "tool": tool});
            let said = operator.post("/api/authorize", &asked).await.json();
            if said["ruling"] != "deny" {
                allowed.push(tool.to_owned());
            }
        }
        allowed.sort();
        assert!(!allowed.is_empty() && allowed.len() < all.len());
        assert_eq!(Client::agent(&house.server, agent).await.tools().await, allowed, "{agent}");
    }
    let payer = Client::agent(&house.server, "payer").await;
    assert_eq!(payer.tools().await, ["conclude", "note", "pay", "wait_for_signal"]);
    let listed = payer.ask("tools/list", json!({})).await;
    let pay = &listed.result()["tools"][2];
    let schema = json!({
        "type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"],
        "additionalProperties": false,
    });
    assert_eq!((&pay["inputSchema"], &pay["description"]), (&schema, &json!("Pays somebody")));
    let said = json!({"chancery/risk": "high", "chancery/capabilities": ["payment"]});
    assert_eq!((&pay["_meta"], &pay["annotations"]), (&said, &Value::Null));
    // What is denied from now on is not shown from now on.
    house.change("", "tools: {pay: deny}\n").await;
    assert_eq!(payer.tools().await, ["conclude", "note", "wait_for_signal"]);
    house.close().await;
}

async fn a_call_that_is_allowed_runs_and_is_answered(on: On) {
    let house = House::open(on).await;
    let payer = Client::agent(&house.server, "payer").await;
    let begun = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let begun = payer.ask("initialize", begun).await;
    assert_eq!(begun.result()["serverInfo"]["name"], "chancery");
    assert_eq!(begun.result()["capabilities"], json!({"tools": {}, "resources": {}}));
    assert_eq!(*payer.ask("ping", json!({})).await.result(), json!({}));

    let said = payer.call("note", json!({"to": "a"}), json!({"progressToken": 1})).await;
    assert_eq!((said.printed(), &said.result()["isError"]), ("noted a", &json!(false)));
    assert_eq!(house.ledger(), ["note a"]);
    // It is a run like any other, without a model in it.
    let run = said.result()["_meta"]["chancery/run_id"].as_str().unwrap().to_owned();
    let operator = house.server.operator();
    let shown = operator.until(&run, "completed").await;
    assert_eq!((&shown["agent"], &shown["user"]), (&json!("payer"), &json!("agent:payer")));
    assert_eq!(shown["input"], r#"note {"to":"a"}"#);
    let kinds = [
        "run.created",
        "run.started",
        "batch.proposed",
        "tool.started",
        "tool.finished",
        "batch.closed",
        "run.completed",
    ];
    assert_eq!(operator.kinds(&run).await, kinds);
    assert!(house.model.requests().is_empty());
    // Arguments that the tool does not take are the caller's mistake, in words.
    let wrong = payer.call("note", json!({"to": 1}), json!({})).await;
    assert_eq!(wrong.refusal()["code"], "INVALID_ARGUMENTS");
    assert_eq!(house.ledger(), ["note a"]);
    house.close().await;
}

async fn a_call_that_is_denied_is_refused_with_its_rule_and_the_audit_knows_it(on: On) {
    let house = House::open(on).await;
    let narrow = Client::agent(&house.server, "narrow").await;
    let said = narrow.call("deploy", json!({"to": "a"}), json!({})).await;
    let refusal = said.refusal();
    assert_eq!(refusal["code"], "PERMISSION_DENIED");
    assert!(said.text().contains("deny_tools"), "{said:?}");
    let decision = refusal["decision_id"].as_str().unwrap();
    assert!(said.text().contains(decision));
    let entry = house.server.operator().get(&format!("/api/audit/{decision}")).await.json();
    let kept = (&entry["agent"], &entry["tool"], &entry["ruling"], &entry["run_id"]);
    let expected = (&json!("narrow"), &json!("deploy"), &json!("deny"), &refusal["run_id"]);
    assert_eq!(kept, expected, "{entry}");
    // Also what there is not.
    let said = narrow.call("no_such_tool", json!({}), json!({})).await;
    assert_eq!(said.refusal()["code"], "UNKNOWN_TOOL");
    assert!(house.ledger().is_empty());
    house.close().await;
}

async fn a_call_that_must_ask_waits_with_progress_and_runs_once_when_it_is_granted(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    let clerk = Client::agent(&house.server, "patterns").await;
    let waits = clerk.calls("pay", json!({"to": "a"}), json!({"progressToken": "p"}));
    let asked = question(&operator).await;
    assert_eq!((&asked["tool"], &asked["agent"]), (&json!("pay"), &json!("patterns")));
    assert!(house.ledger().is_empty());
    assert_eq!(operator.grant(&asked).await.status, 200);
    let said = waits.await.unwrap();
    assert_eq!(said.printed(), "paid a");
    assert_eq!(house.ledger(), ["pay a"]);
    let told = said.progress();
    assert_eq!((&told[0]["progressToken"], &told[0]["progress"]), (&json!("p"), &json!(1.0)));
    let link = format!("{}/inbox/{}", house.server.running.url(), asked["id"].as_str().unwrap());
    assert!(told[0]["message"].as_str().unwrap().contains(&link), "{told:?}");
    house.close().await;
}

async fn what_a_person_denies_does_not_run_and_says_so(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    let clerk = Client::agent(&house.server, "patterns").await;
    let waits = clerk.calls("pay", json!({"to": "a"}), json!({}));
    let asked = question(&operator).await;
    assert_eq!(operator.deny(&asked).await.status, 200);
    let said = waits.await.unwrap();
    assert_eq!(said.refusal()["code"], "DENIED");
    assert!(said.text().starts_with("User denied the request."), "{said:?}");
    let decision = said.refusal()["decision_id"].as_str().unwrap();
    let entry = operator.get(&format!("/api/audit/{decision}")).await.json();
    assert_eq!((&entry["kind"], &entry["reference"]), (&json!("permission.decided"), &asked["id"]));
    assert!(house.ledger().is_empty());
    house.close().await;
}

async fn a_pending_call_is_answered_at_once_and_its_result_is_found_later(on: On) {
    let house = House::with(on, |config| config.mcp.on_ask = OnAsk::Pending).await;
    let operator = house.server.operator();
    let clerk = Client::agent(&house.server, "patterns").await;
    let tools = ["note", "pay", "chancery_result"];
    assert_eq!(clerk.tools().await, tools);
    let key = json!({"chancery/idempotency_key": "k1"});
    let said = clerk.call("pay", json!({"to": "a"}), key.clone()).await;
    let pending = said.result()["structuredContent"].clone();
    assert_eq!((&pending["status"], &said.result()["isError"]), (&json!("pending"), &json!(false)));
    let asked = question(&operator).await;
    let link = format!("{}/inbox/{}", house.server.running.url(), asked["id"].as_str().unwrap());
    assert_eq!(pending["permissions"], json!([{"id": asked["id"], "url": link}]));
    assert!(said.text().contains(&link));
    // To ask again asks nobody anew.
    let again = clerk.call("pay", json!({"to": "a"}), key.clone()).await;
    assert_eq!(again.result()["structuredContent"], pending);
    assert_eq!(operator.get("/api/permissions").await.json()["items"].as_array().unwrap().len(), 1);
    let run = pending["run_id"].as_str().unwrap();
    let result = json!({"run_id": run});
    let read = clerk.call("chancery_result", result.clone(), json!({})).await;
    assert_eq!(read.result()["structuredContent"], pending);

    assert_eq!(operator.grant(&asked).await.status, 200);
    let shown = settled(&clerk, run).await;
    assert_eq!(printed(&shown), "paid a");
    for said in [
        clerk.call("pay", json!({"to": "a"}), key).await,
        clerk.call("chancery_result", result, json!({})).await,
    ] {
        assert_eq!(said.printed(), "paid a");
    }
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}

async fn two_clients_with_one_key_make_one_call(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    let key = json!({"chancery/idempotency_key": "once"});
    let one = Client::agent(&house.server, "patterns").await;
    let other = Client::agent(&house.server, "patterns").await;
    let both = [&one, &other].map(|it| it.calls("pay", json!({"to": "a"}), key.clone()));
    let asked = question(&operator).await;
    assert_eq!(operator.grant(&asked).await.status, 200);
    for said in both {
        assert_eq!(said.await.unwrap().printed(), "paid a");
    }
    assert_eq!(house.ledger(), ["pay a"]);
    // The key is for that call, and for that agent.
    let said = one.call("pay", json!({"to": "b"}), key.clone()).await;
    assert!(said.error().contains("was used for another call"), "{said:?}");
    let said = one.call("note", json!({"to": "b"}), json!({"chancery/idempotency_key": ""})).await;
    assert!(said.error().contains("1 to 255"), "{said:?}");
    let narrow = Client::agent(&house.server, "narrow").await;
    assert_eq!(narrow.call("note", json!({"to": "c"}), key).await.printed(), "noted c");
    assert_eq!(house.ledger(), ["pay a", "note c"]);
    house.close().await;
}

async fn a_caller_that_goes_away_loses_nothing_but_the_wait(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    let clerk = Client::agent(&house.server, "patterns").await;
    let key = json!({"chancery/idempotency_key": "k", "progressToken": 1});
    let waits = clerk.calls("pay", json!({"to": "a"}), key.clone());
    let asked = question(&operator).await;
    waits.abort();
    assert!(waits.await.unwrap_err().is_cancelled());
    assert_eq!(operator.grant(&asked).await.status, 200);
    let said = clerk.call("pay", json!({"to": "a"}), key).await;
    assert_eq!(said.printed(), "paid a");
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}

async fn a_server_that_stops_answers_those_who_wait_and_the_call_goes_on_after_it(on: On) {
    let house = House::open(on).await;
    let clerk = Client::agent(&house.server, "patterns").await;
    let waits = clerk.calls("pay", json!({"to": "a"}), json!({}));
    let asked = question(&house.server.operator()).await;
    let house = house.restart().await;
    let pending = waits.await.unwrap().result()["structuredContent"].clone();
    assert_eq!(pending["status"], "pending");
    assert!(house.ledger().is_empty());
    assert_eq!(house.server.operator().grant(&asked).await.status, 200);
    let clerk = Client::agent(&house.server, "patterns").await;
    let shown = settled(&clerk, pending["run_id"].as_str().unwrap()).await;
    assert_eq!(printed(&shown), "paid a");
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}

async fn a_page_that_is_shown_decides_nothing(on: On) {
    let house = House::with(on, |config| config.mcp.on_ask = OnAsk::Pending).await;
    let operator = house.server.operator();
    let clerk = Client::agent(&house.server, "patterns").await;
    let version = "2026-07-28";
    let ask = async |params: Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let mut params = params;
        params["_meta"] = meta;
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = clerk.0.request(Method::POST, "/mcp");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", version);
        let request = request.header("mcp-method", "tools/call").header("mcp-name", "pay");
        Said::of(&answer(request.json(&body)).await)
    };
    let call = json!({"name": "pay", "arguments": {"to": "a"}});
    let said = ask(call.clone()).await;
    let asked = question(&operator).await;
    let id = asked["id"].as_str().unwrap();
    assert_eq!(said.result()["resultType"], "input_required");
    let shown = &said.result()["inputRequests"][id];
    assert_eq!(
        (&shown["method"], &shown["params"]["mode"]),
        (&json!("elicitation/create"), &json!("url"))
    );
    assert!(shown["params"]["url"].as_str().unwrap().ends_with(&format!("/inbox/{id}")));
    // Whatever the client says came of it, the question is open, and nothing has run.
    let mut again = call.clone();
    again["requestState"] = said.result()["requestState"].clone();
    again["inputResponses"] = json!({id: {"action": "accept", "content": {"approved": true}}});
    let said = ask(again.clone()).await;
    assert_eq!(said.result()["structuredContent"]["status"], "pending");
    let shown = operator.get(&format!("/api/permissions/{id}")).await.json();
    assert_eq!(shown["status"], "pending");
    assert!(house.ledger().is_empty());
    assert_eq!(operator.grant(&asked).await.status, 200);
    let run = said.result()["structuredContent"]["run_id"].as_str().unwrap();
    settled(&clerk, run).await;
    assert_eq!(ask(again).await.printed(), "paid a");
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}

async fn one_agents_calls_are_not_anothers(on: On) {
    let house = House::open(on).await;
    let payer = Client::agent(&house.server, "payer").await;
    let said = payer.call("note", json!({"to": "a"}), json!({})).await;
    let run = said.result()["_meta"]["chancery/run_id"].as_str().unwrap().to_owned();
    let lins = house.server.human("lin").await.script("payer", json!([])).await;
    let narrow = Client::agent(&house.server, "narrow").await;
    for (client, run) in [(&narrow, &*run), (&payer, &*lins), (&payer, "run_x"), (&payer, "")] {
        let uri = format!("chancery://calls/{run}");
        let said = client.ask("resources/read", json!({"uri": uri})).await;
        assert!(said.error().contains("there is no call"), "{said:?}");
        let said = client.call("chancery_result", json!({"run_id": run}), json!({})).await;
        assert!(said.error().contains("there is no call"), "{said:?}");
        let state = json!({"name": "note", "arguments": {"to": "b"}, "requestState": run});
        let said = client.ask("tools/call", state).await;
        assert!(said.error().contains("there is no call"), "{said:?}");
    }
    assert_eq!(payer.reads(&format!("chancery://calls/{run}")).await, *said.result());
    // One that is not at work any more has no tools and makes no calls.
    house.dismiss("payer").await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "note", "arguments": {"to": "b"}})),
    ] {
        let said = payer.ask(method, params).await;
        assert!(said.error().contains("no agent `payer`"), "{said:?}");
    }
    assert_eq!(house.ledger(), ["note a"]);
    house.close().await;
}

async fn what_a_call_asks_is_for_people_and_never_for_agents(on: On) {
    let house = House::open(on).await;
    let operator = house.server.operator();
    let narrow = Client::agent(&house.server, "narrow").await;
    let waits = narrow.calls("wire", json!({"to": "a"}), json!({}));
    let asked = question(&operator).await;
    assert_eq!(asked["ruling"], "require_human");
    // Neither the agent, nor a person of its name, nor somebody who has nothing to do with it.
    assert_eq!(narrow.0.grant(&asked).await.status, 403);
    for name in ["narrow", "lin"] {
        let person = house.server.human(name).await;
        assert_eq!(person.get("/api/permissions").await.json()["items"], json!([]));
        assert_eq!(person.grant(&asked).await.status, 404, "{name}");
    }
    let service = json!({"kind": "service", "name": "ci", "approve": true});
    let service = house.server.holder(service).await;
    assert_eq!(service.grant(&asked).await.status, 403);
    assert!(house.ledger().is_empty());
    assert_eq!(operator.grant(&asked).await.status, 200);
    assert_eq!(waits.await.unwrap().printed(), "wired a");
    house.close().await;
}

#[tokio::test]
async fn the_door_is_for_agents_with_a_token_under_a_name_that_is_ours() {
    let server = Server::start().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let ask = async |who: Caller, name: &str, value: &str| {
        answer(Client(who).request(&list).header(name, value)).await
    };
    let pa = Client::agent(&server, "pa").await.0;
    let refused = ask(server.nobody(), "x", "y").await;
    refused.problem(401, "unauthenticated");
    for who in [server.operator(), server.human("lin").await] {
        let said = ask(who, "x", "y").await.problem(403, "forbidden");
        assert!(said.contains("kind `agent`"), "{said}");
    }
    ask(pa.clone(), "host", "evil.example").await.problem(403, "protocol");
    ask(pa.clone(), "origin", "https://evil.example").await.problem(403, "protocol");
    assert_eq!(ask(pa.clone(), "host", "localhost:1").await.status, 200);
    // What is no request of the protocol is refused in its words, and breaks nothing.
    for body in ["", "{", "[]", "{\"jsonrpc\":\"2.0\"}", &"[".repeat(5000), "null"] {
        let request = Client(pa.clone()).request(&json!({})).body(body.to_owned());
        let refused = answer(request).await;
        assert!((400..500).contains(&refused.status), "{body}: {refused:?}");
    }
    assert_eq!(answer(pa.request(Method::GET, "/mcp")).await.status, 405);
    let huge = Client(pa.clone()).request(&json!({"a": "x".repeat(5 << 20)}));
    answer(huge).await.problem(413, "too_large");
    assert_eq!(ask(pa, "x", "y").await.status, 200);
    server.running.stop().await;
}

#[tokio::test]
async fn what_is_no_json_is_told_in_the_protocols_own_words() {
    let server = Server::start().await;
    let client = Client::agent(&server, "pa").await;
    for body in ["{", "", "\u{0}", "{\"jsonrpc\": \"2.0\"} x"] {
        let said = answer(client.request(&json!({})).body(body)).await;
        let error = &said.json()["error"]["code"];
        assert_eq!((said.status, error), (400, &json!(-32700)), "{body:?} {said:?}");
    }
}

#[tokio::test]
async fn an_agent_reads_its_own_inbox_and_contracts_and_reading_changes_nothing() {
    let server = Server::with(|config| config.mail.drives_work = false).await;
    let manager = Client::agent(&server, "it_manager").await;
    let made = manager.0.issue("backend_worker", json!({"title": "Fix it"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let worker = Client::agent(&server, "backend_worker").await;
    let listed = worker.ask("resources/list", json!({})).await;
    let uris: Vec<_> = listed.result()["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["uri"].clone())
        .collect();
    let uri = format!("chancery://contracts/{id}");
    assert_eq!(uris, [json!("chancery://inbox"), json!(uri)]);
    let inbox = worker.reads("chancery://inbox").await;
    assert_eq!(inbox["items"][0]["contract_ref"], json!(id), "{inbox}");
    assert_eq!(inbox["items"][0]["read_at"], Value::Null);
    let story = worker.reads(&uri).await;
    assert_eq!(
        (&story["title"], &story["state"]),
        (&json!("Fix it"), &json!("pending")),
        "{story}"
    );
    assert_eq!(worker.reads("chancery://inbox").await, inbox);
    // Another's are not there.
    let other = Client::agent(&server, "frontend_worker").await;
    assert_eq!(other.reads("chancery://inbox").await["items"], json!([]));
    for uri in [&*uri, "chancery://contracts/", "chancery://", "file:///etc/passwd"] {
        let said = other.ask("resources/read", json!({"uri": uri})).await;
        assert!(said.error().starts_with("there is no"), "{said:?}");
    }
    assert_eq!(other.ask("prompts/list", json!({})).await.result()["prompts"], json!([]));
    server.running.stop().await;
}
