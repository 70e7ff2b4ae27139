//! The door for OpenAI's clients: chat completions, threads, the pause, and commands.

use chancery_testkit::fake_model::{Answer as Said, Behaviour};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Caller, answer};
use crate::house::{House, On, on_both};

on_both! {
    a_thread_goes_on_where_it_was;
    a_pause_is_readable_and_the_next_message_is_no_approval;
    a_command_decides_and_the_run_goes_on;
    where_a_person_must_look_a_chat_decides_nothing_however_harmless_it_is;
    what_waits_for_others_beneath_is_decided_from_above;
    who_decides_in_time_is_not_noticed;
    a_client_that_goes_away_cancels_nothing;
}

pub const ASKS: &str = "tools: {note: require_approval}\n";

/// With nobody waited for, and a harmless tool that asks.
pub async fn house(on: On) -> House {
    let house = House::with(on, |config| config.openai.pause_hold_seconds = 0).await;
    house.change("", ASKS).await;
    house
}

fn chat(text: &str) -> Value {
    json!({"model": "agent/pa", "messages": [{"role": "user", "content": text}]})
}

fn in_thread(text: &str, thread: &str) -> Value {
    let mut body = chat(text);
    body["metadata"] = json!({"thread_id": thread});
    body
}

impl Caller {
    async fn complete(&self, body: &Value) -> Value {
        let answered = self.post("/v1/chat/completions", body).await;
        assert_eq!(answered.status, 200, "{answered:?}");
        answered.json()
    }

    /// What is answered in a thread, and what is said beside it.
    async fn say(&self, text: &str, thread: &str) -> (String, Value) {
        let answered = self.complete(&in_thread(text, thread)).await;
        (content(&answered), answered["chancery"].clone())
    }
}

fn content(completion: &Value) -> String {
    completion["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

/// The data of every event of a stream.
pub fn frames(answered: &Answer) -> Vec<String> {
    assert_eq!(answered.header("content-type"), "text/event-stream", "{answered:?}");
    let data = answered.text.lines().filter_map(|it| it.strip_prefix("data: "));
    data.map(str::to_owned).collect()
}

#[track_caller]
pub fn refused(answered: &Answer, status: u16, kind: &str, code: &str) -> String {
    assert_eq!(answered.status, status, "{answered:?}");
    assert_eq!(answered.header("content-type"), "application/json");
    let error = &answered.json()["error"];
    assert_eq!((&error["type"], &error["code"]), (&json!(kind), &json!(code)), "{error}");
    assert!(error.as_object().unwrap().contains_key("param"), "{error}");
    let message = error["message"].as_str().unwrap().to_owned();
    assert!(!message.is_empty());
    message
}

#[tokio::test]
async fn models_are_those_whom_the_caller_may_address() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    let listed = async |who: &Caller| -> Vec<String> {
        let page = who.get("/v1/models").await.json();
        assert_eq!(page["object"], "list");
        let ids = page["data"].as_array().unwrap().iter();
        ids.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let lins = listed(&lin).await;
    for id in ["agent/pa", "agent/payer", "group/grp_pay"] {
        assert!(lins.iter().any(|it| it == id), "{id}: {lins:?}");
    }
    for id in ["agent/gone", "group/grp_gone", "pa/bo"] {
        assert!(!lins.iter().any(|it| it == id), "{id}: {lins:?}");
        let body = json!({"model": id, "messages": [{"role": "user", "content": "x"}]});
        let unknown = lin.post("/v1/chat/completions", &body).await;
        refused(&unknown, 404, "invalid_request_error", "model_not_found");
        assert_eq!(unknown.json()["error"]["param"], "model");
    }
    assert_eq!(lin.get("/v1/models/agent/pa").await.json()["id"], "agent/pa");
    let unknown = lin.get("/v1/models/agent/gone").await;
    refused(&unknown, 404, "invalid_request_error", "model_not_found");
    // What is listed can be talked with: the list and the talk ask the same question.
    for id in &lins {
        let body = json!({"model": id, "messages": [{"role": "user", "content": "/status"}]});
        assert_eq!(lin.post("/v1/chat/completions", &body).await.status, 200, "{id}");
    }
    let agent = house.server.holder(json!({"kind": "agent", "name": "pa"})).await;
    refused(&agent.get("/v1/models").await, 403, "permission_error", "forbidden");
    let nobody = house.server.nobody().get("/v1/models").await;
    refused(&nobody, 401, "authentication_error", "invalid_api_key");
    house.close().await;
}

#[tokio::test]
async fn a_personal_agent_is_talked_with_by_its_person_and_by_operators() {
    let server = crate::harness::Server::start().await;
    let lin = server.human("lin").await;
    let listed = lin.get("/v1/models").await.text;
    assert!(listed.contains("\"pa/lin\"") && !listed.contains("\"pa/bo\""), "{listed}");
    let body = |user: &str| {
        let messages = json!([{"role": "user", "content": "hello"}]);
        json!({"model": format!("pa/{user}"), "messages": messages, "metadata": {"thread_id": "t"}})
    };
    assert_eq!(content(&lin.complete(&body("lin")).await), "heard: hello");
    let others = lin.post("/v1/chat/completions", &body("bo")).await;
    refused(&others, 404, "invalid_request_error", "model_not_found");
    let made = server.operator().complete(&body("bo")).await;
    let run = made["chancery"]["run_id"].as_str().unwrap();
    assert_eq!(server.operator().get(&format!("/api/runs/{run}")).await.json()["user"], "bo");
    server.running.stop().await;
}

#[tokio::test]
async fn an_answer_is_the_same_whole_and_in_pieces() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    let script = json!([[["wire_room", {}]]]).to_string();
    let whole = lin.complete(&in_thread(&script, "a")).await;
    assert_eq!(content(&whole), "I shall\n\ndone");
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert_eq!(whole["chancery"]["status"], "completed");
    assert!(whole["usage"]["total_tokens"].as_u64().unwrap() > 0, "{whole}");
    let mut body = in_thread(&script, "b");
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let streamed = lin.post("/v1/chat/completions", &body).await;
    let mut frames = frames(&streamed);
    assert_eq!(frames.pop().unwrap(), "[DONE]");
    let chunks: Vec<Value> = frames.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    let deltas = chunks.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    assert_eq!(deltas.collect::<String>(), content(&whole));
    assert!(chunks.iter().all(|it| it["object"] == "chat.completion.chunk"));
    let [.., last, counted] = &chunks[..] else { panic!("{chunks:?}") };
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["chancery"]["status"], "completed");
    assert_eq!((&counted["choices"], &counted["usage"]), (&json!([]), &whole["usage"]));
    // Where no usage was asked for, none is sent.
    body["stream_options"] = Value::Null;
    body["metadata"]["thread_id"] = json!("c");
    assert!(!lin.post("/v1/chat/completions", &body).await.text.contains("usage"));
    house.close().await;
}

#[tokio::test]
async fn without_a_thread_every_request_is_a_run_of_its_own_and_says_so() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    let (first, second) = (lin.complete(&chat("one")).await, lin.complete(&chat("one")).await);
    assert_ne!(first["chancery"]["run_id"], second["chancery"]["run_id"]);
    let run = first["chancery"]["run_id"].as_str().unwrap();
    let said = content(&first);
    let (line, rest) = said.split_once('\n').unwrap();
    assert!(line.starts_with(&format!("[{run}: this request names no thread")), "{said}");
    assert_eq!(rest.trim(), "done");
    house.close().await;
}

async fn a_thread_goes_on_where_it_was(on: On) {
    let house = house(on).await;
    let lin = house.lin().await;
    lin.say("the first thing", "t").await;
    // The same thread by another name for it; another thread; another person.
    let request = lin.request(Method::POST, "/v1/chat/completions").json(&chat("the second"));
    let headers = [("x-chancery-thread-id", "t"), ("x-openwebui-chat-id", "other")];
    let request = headers.into_iter().fold(request, |it, (name, value)| it.header(name, value));
    assert_eq!(content(&answer(request).await.json()), "done the second");
    let heard = house.model.requests().last().unwrap().body["messages"].to_string();
    assert!(heard.contains("the first thing"), "{heard}");
    house.server.human("bo").await.say("the third", "t").await;
    let heard = house.model.requests().last().unwrap().body["messages"].to_string();
    assert!(!heard.contains("the first thing"), "{heard}");
    house.close().await;
}

async fn a_pause_is_readable_and_the_next_message_is_no_approval(on: On) {
    let house = house(on).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "x"}], ["pay", {"to": "a b"}], ["list_agents", {}]]]);
    let (said, beside) = lin.say(&script.to_string(), "t").await;
    let run = beside["run_id"].as_str().unwrap().to_owned();
    let asked = lin.asked(&run).await;
    let (note, pay) = (asked[0]["id"].as_str().unwrap(), asked[1]["id"].as_str().unwrap());
    let batch = asked[0]["message_id"].as_str().unwrap();
    let url = house.server.running.url();
    let expected = format!(
        "I shall\n\nWaiting for approval (batch {batch}, 2 of 3 calls undecided)\n\n\
         ```text\nnote  to=x   LOW\n```\nDecide here: {url}/inbox/{note}\n\
         or reply exactly:  `/approve {note}`  |  `/deny {note} <reason>`  |  `/why {note}`\n\n\
         ```text\npay  to=\"a b\"   HIGH\n```\nDecide here: {url}/inbox/{pay}\n\
         (not in this chat: its risk is high; `/why {pay}` says who asks for it)\n\n\
         Your message will not be treated as approval unless it is one of these commands."
    );
    assert_eq!(said, expected);
    assert_eq!(
        (&beside["status"], &beside["batch_id"]),
        (&json!("waiting_approval"), &json!(batch))
    );
    let approvals = beside["approvals"].as_array().unwrap();
    assert_eq!(approvals.len(), 2);
    assert_eq!(approvals[0]["arguments"], json!({"to": "x"}));
    let here: Vec<&Value> = approvals.iter().map(|it| &it["decidable_here"]).collect();
    assert_eq!(here, [&json!(true), &json!(false)]);
    // Words that sound like approval, and commands that are not one.
    for words in ["I approve", "yes, /approve all", &format!("> /approve {note}"), "/approve"] {
        lin.say(words, "t").await;
    }
    let (again, _) = lin.say("what now?", "t").await;
    assert!(again.contains(&format!("/approve {note}")), "{again}");
    assert!(again.ends_with("send it again once this is decided."), "{again}");
    assert_eq!(lin.asked(&run).await.len(), 2);
    assert!(!lin.kinds(&run).await.contains(&"message.user".to_owned()));
    // Decided elsewhere, it has gone on; whoever last heard that it waits hears how it ended.
    lin.grant(&asked[0]).await;
    lin.deny(&asked[1]).await;
    lin.until(&run, "completed").await;
    let mut next = in_thread("and then?", "t");
    next["messages"] =
        json!([{"role": "assistant", "content": said}, {"role": "user", "content": "and then?"}]);
    let told = content(&lin.complete(&next).await);
    assert!(told.starts_with(&format!("[What waited has gone on: {run}.]\n\ndone")), "{told}");
    // And the message is answered, by a run that has read all this: here, the script once more.
    assert!(told.contains("---\n\nI shall\n\nWaiting"), "{told}");
    let heard = house.model.requests().last().unwrap().body["messages"].to_string();
    assert!(heard.contains("and then?"), "{heard}");
    assert_eq!(house.ledger(), ["note x"]);
    house.close().await;
}

async fn a_command_decides_and_the_run_goes_on(on: On) {
    let house = house(on).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "x"}], ["note", {"to": "y"}], ["pay", {"to": "z"}]]]);
    let (_, beside) = lin.say(&script.to_string(), "t").await;
    let run = beside["run_id"].as_str().unwrap().to_owned();
    let id = |n: usize| beside["approvals"][n]["id"].as_str().unwrap().to_owned();
    let status = async |n: usize| -> Value {
        lin.get(&format!("/api/permissions/{}", id(n))).await.json()["status"].clone()
    };
    // Whose it is not: others do not know of it, and programs do not decide here.
    let bo = house.server.human("bo").await;
    let (said, _) = bo.say(&format!("/approve {}", id(0)), "t").await;
    assert!(said.starts_with("Nothing was done: there is no permission"), "{said}");
    let ci = house.server.holder(json!({"kind": "service", "name": "ci", "approve": true})).await;
    let (said, _) = ci.say(&format!("/approve {}", id(0)), "t").await;
    assert!(said.starts_with("Not decided: through this door only a person"), "{said}");
    // What is high is decided behind the link alone, either way.
    for verb in ["approve", "deny"] {
        let (said, _) = lin.say(&format!("/{verb} {}", id(2)), "t").await;
        let link = format!("{}/inbox/{}", house.server.running.url(), id(2));
        let refusal = format!("Not decided in this chat: its risk is high. Decide here: {link}");
        assert!(said.starts_with(&refusal), "{said}");
    }
    assert_eq!((status(0).await, status(2).await), (json!("pending"), json!("pending")));
    for why in [format!("/why {}", id(0)), "/why".to_owned()] {
        let (said, _) = lin.say(&why, "t").await;
        assert!(said.starts_with("note, asked for by pa") && said.contains(&id(0)), "{said}");
    }
    let (said, _) = lin.say("/help", "t").await;
    assert!(said.contains("Commands: `/approve perm_…`, `/deny"), "{said}");
    let (said, _) = lin.say(&format!("/why {}", id(0)), "t").await;
    assert!(said.contains("require_approval") && said.contains("policy.yaml"), "{said}");
    let (said, beside) = lin.say(&format!("/approve {}\nthank you", id(0)), "t").await;
    assert!(said.starts_with(&format!("Approved: note ({}).", id(0))), "{said}");
    assert!(said.contains("2 of 3 calls undecided"), "{said}");
    assert_eq!(beside["status"], "waiting_approval");
    let (said, _) = lin.say(&format!("/deny {}", id(0)), "t").await;
    assert!(said.starts_with("Nothing was done: ") && said.contains("granted"), "{said}");
    let denial = format!("/deny {} not this one", id(1));
    let (said, _) = lin.say(&denial, "t").await;
    assert!(said.contains("1 of 3 calls undecided"), "{said}");
    let denied = lin.get(&format!("/api/permissions/{}", id(1))).await.json();
    assert_eq!((&denied["status"], &denied["comment"]), (&json!("denied"), &json!("not this one")));
    let (said, _) = lin.say("/status", "t").await;
    assert!(said.starts_with(&format!("{run} is waiting.\n\nWaiting for approval")), "{said}");
    assert_eq!(house.ledger(), [""; 0], "while one is open, nothing has run");
    lin.deny(&json!({"id": id(2)})).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note x"]);
    // The same command again, by a client that did not hear: decided stays decided.
    let (said, beside) = lin.say(&format!("/approve {}", id(0)), "t").await;
    assert!(said.starts_with("Approved: note") && said.ends_with("done"), "{said}");
    assert_eq!((beside["run_id"].as_str(), &beside["status"]), (Some(&*run), &json!("completed")));
    house.close().await;
}

async fn where_a_person_must_look_a_chat_decides_nothing_however_harmless_it_is(on: On) {
    let house = house(on).await;
    house.change("", "tools: {note: require_human}\n").await;
    let lin = house.lin().await;
    let (_, beside) = lin.say(&json!([[["note", {"to": "x"}]]]).to_string(), "t").await;
    let asked = &beside["approvals"][0];
    assert_ne!(asked["risk"], "high", "{asked}");
    let (said, _) = lin.say(&format!("/approve {}", asked["id"].as_str().unwrap()), "t").await;
    assert!(said.starts_with("Not decided in this chat: a person must look at it."), "{said}");
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}

async fn what_waits_for_others_beneath_is_decided_from_above(on: On) {
    let house = house(on).await;
    let lin = house.lin().await;
    let calls = json!({"payer": {"calls": [[["note", {"to": "x"}]]], "say": "noted"},
        "narrow": {"say": "seen"}});
    let goal = json!({"group_id": "grp_pay", "goal": calls.to_string()});
    let (said, beside) = lin.say(&json!([[["escalate_to_group", goal]]]).to_string(), "t").await;
    assert!(said.contains("1 of 1 calls undecided"), "{said}");
    let (run, approval) = (&beside["run_id"], &beside["approvals"][0]);
    assert_ne!(approval["run_id"], *run);
    assert_eq!(approval["agent"], "payer");
    let command = format!("/approve {}", approval["id"].as_str().unwrap());
    // Without naming the thread: the question knows its run.
    let went_on = lin.complete(&chat(&command)).await;
    assert!(content(&went_on).starts_with("Approved: note"), "{went_on}");
    assert_eq!(went_on["chancery"], json!({"run_id": run, "status": "completed"}));
    assert_eq!(house.ledger(), ["note x"]);
    house.close().await;
}

async fn who_decides_in_time_is_not_noticed(on: On) {
    let house = House::with(on, |config| config.openai.pause_hold_seconds = 60).await;
    house.change("", ASKS).await;
    let lin = house.lin().await;
    let body = in_thread(&json!([[["note", {"to": "x"}]]]).to_string(), "t");
    let asked = async {
        loop {
            let pending = lin.get("/api/permissions?status=pending").await.json();
            if let Some(asked) = pending["items"].as_array().unwrap().first() {
                return lin.grant(asked).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let (answered, decided) = tokio::join!(lin.complete(&body), asked);
    assert_eq!(decided.status, 200);
    assert_eq!(content(&answered), "I shall\n\ndone");
    house.close().await;
}

async fn a_client_that_goes_away_cancels_nothing(on: On) {
    let house = House::with(on, |config| config.openai.pause_hold_seconds = 60).await;
    house.change("", ASKS).await;
    let lin = house.lin().await;
    let script = json!([[["note", {"to": "x"}]]]).to_string();
    for (thread, stream) in [("whole", false), ("stream", true)] {
        let mut body = in_thread(&script, thread);
        body["stream"] = json!(stream);
        let request = lin.request(Method::POST, "/v1/chat/completions").json(&body);
        let gone = tokio::spawn(answer(request));
        let asked = loop {
            let pending = lin.get("/api/permissions?status=pending").await.json();
            match pending["items"].as_array().unwrap().first() {
                Some(asked) => break asked.clone(),
                None => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            }
        };
        gone.abort();
        let run = asked["run_id"].as_str().unwrap();
        assert_eq!(lin.grant(&asked).await.status, 200);
        assert_eq!(lin.until(run, "completed").await["output"], "done");
    }
    house.close().await;
}

#[tokio::test]
async fn a_client_that_asks_again_while_its_run_is_under_way_makes_no_second_one() {
    let house = House::with(On::Sqlite, |config| config.openai.pause_hold_seconds = 1).await;
    let lin = house.lin().await;
    let script = json!([[["wait_for_signal", {"correlation_key": "go"}]]]).to_string();
    let (said, beside) = lin.say(&script, "t").await;
    assert!(said.contains("waits for a signal") && beside["status"] == "waiting", "{said}");
    let (_, again) = lin.say(&script, "t").await;
    assert_eq!(again["run_id"], beside["run_id"]);
    let run = beside["run_id"].as_str().unwrap();
    // Something else is said into it.
    let (_, spoken) = lin.say("hurry up", "t").await;
    assert_eq!(spoken["run_id"], beside["run_id"]);
    lin.post(&format!("/api/runs/{run}/signal"), &json!({"correlation_key": "go"})).await;
    assert_eq!(lin.until(run, "completed").await["output"], "done hurry up");
    house.close().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_openais_form_and_makes_no_run() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    let picture = json!([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}]);
    let message = |content: Value| json!([{"role": "user", "content": content}]);
    for (body, code) in [
        (json!({}), "bad_request"),
        (json!({"model": "agent/pa"}), "bad_request"),
        (json!({"model": "agent/pa", "messages": "hello"}), "bad_request"),
        (json!({"model": "agent/pa", "messages": []}), "no_user_message"),
        (
            json!({"model": "agent/pa", "messages": [{"role": "system", "content": "x"}]}),
            "no_user_message",
        ),
        (json!({"model": "agent/pa", "messages": message(json!(" "))}), "bad_request"),
        (json!({"model": "agent/pa", "messages": message(picture)}), "unsupported_content"),
        (
            json!({"model": "agent/pa", "messages": message(json!("x")), "metadata": {"thread_id": ""}}),
            "bad_request",
        ),
        (
            json!({"model": "agent/pa", "messages": message(json!("x")), "n": 2}),
            "unsupported_parameter",
        ),
        (
            json!({"model": "agent/pa", "messages": message(json!("x")), "tools": [{}], "tool_choice": "required"}),
            "unsupported_parameter",
        ),
        (
            json!({"model": "agent/pa", "messages": message(json!("x")), "function_call": {"name": "f"}}),
            "unsupported_parameter",
        ),
    ] {
        let answered = lin.post("/v1/chat/completions", &body).await;
        refused(&answered, 400, "invalid_request_error", code);
    }
    let broken = lin.post_raw("/v1/chat/completions", "{").await;
    refused(&broken, 400, "invalid_request_error", "bad_request");
    let huge = lin.post("/v1/chat/completions", &chat(&"x".repeat(5 << 20))).await;
    refused(&huge, 413, "invalid_request_error", "too_large");
    refused(
        &lin.get("/v1/chat/completions").await,
        405,
        "invalid_request_error",
        "method_not_allowed",
    );
    refused(&lin.get("/v1/engines").await, 404, "invalid_request_error", "not_found");
    assert_eq!(lin.get("/api/runs").await.json()["items"], json!([]));
    // Elsewhere it is a problem as before.
    lin.get("/api/nowhere").await.problem(404, "not_found");
    // What clients send beside all this is none of ours.
    let mut body = in_thread("hello", "t");
    body["temperature"] = json!(0.3);
    // Chat programs offer tools of their own with every message; an agent calls its own alone.
    body["tools"] = json!([{"type": "function", "function": {"name": "pay", "parameters": {}}}]);
    body["tool_choice"] = json!("auto");
    body["messages"] = json!([{"role": "system", "content": [{"type": "input_audio"}]},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]}]);
    assert_eq!(content(&lin.complete(&body).await), "done");
    house.close().await;
}

#[tokio::test]
async fn a_run_that_fails_is_an_error_that_is_not_asked_for_twice() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    house.model.otherwise(|_, _| Behaviour::status(400, "no such luck"));
    let failed = lin.post("/v1/chat/completions", &in_thread("x", "t")).await;
    let message = refused(&failed, 502, "server_error", "run_failed");
    assert!(message.starts_with("run_") && message.contains("no such luck"), "{message}");
    assert_eq!(failed.header("x-should-retry"), "false");
    let mut body = in_thread("x", "t");
    body["stream"] = json!(true);
    let streamed = frames(&lin.post("/v1/chat/completions", &body).await);
    let last: Value = serde_json::from_str(streamed.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "run_failed");
    house.close().await;
}

#[tokio::test]
async fn what_a_chat_program_asks_for_itself_is_answered_by_the_model_and_is_no_run() {
    let house = house(On::Sqlite).await;
    let lin = house.lin().await;
    house.model.will(Behaviour::Stream(Said::text("A title")));
    let task = "### Task:\nGenerate a concise, 3-5 word title";
    let request = lin.request(Method::POST, "/v1/chat/completions").json(&chat(task));
    let titled = answer(request.header("x-openwebui-chat-id", "c")).await.json();
    assert_eq!(content(&titled), "A title");
    assert_eq!(titled["chancery"], json!({"run_id": null, "status": "said"}));
    let asked = house.model.requests().pop().unwrap();
    assert!(asked.body.get("tools").is_none(), "{}", asked.body);
    assert!(!asked.headers.contains_key("x-chancery-run"));
    assert_eq!(lin.get("/api/runs").await.json()["items"], json!([]));
    // Whoever names a thread of ours means it.
    let (_, beside) = lin.say(task, "t").await;
    assert!(beside["run_id"].is_string());
    house.close().await;
}
