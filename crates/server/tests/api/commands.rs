//! What is done to a run from outside: cancel, speak, signal, resume.

use std::time::{Duration, Instant};

use chancery_testkit::fake_model::{Answer as Said, Behaviour, FakeModel};
use serde_json::{Value, json};

use crate::harness::{Caller, Server, id};

async fn command(caller: &Caller, run: &str, what: &str, body: Value) -> crate::harness::Answer {
    caller.post(&format!("/api/runs/{run}/{what}"), &body).await
}

#[tokio::test]
async fn a_cancelled_run_stays_so_and_an_ended_one_is_a_conflict() {
    let server = Server::start().await;
    let operator = server.operator();
    let waiting = operator.waiting().await;
    for _ in 0..2 {
        let cancelled = command(&operator, &waiting, "cancel", json!({})).await;
        assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("cancelled")));
    }
    // No body at all is fine too.
    let bare = operator.post_raw(&format!("/api/runs/{waiting}/cancel"), "").await;
    assert_eq!(bare.status, 200);
    let done = id(&operator.run("x").await);
    operator.until(&done, "completed").await;
    command(&operator, &done, "cancel", json!({})).await.problem(409, "run_ended");
    for ended in [&done, &waiting] {
        let message = json!({"text": "still there?"});
        command(&operator, ended, "messages", message).await.problem(409, "run_ended");
        command(&operator, ended, "resume", json!({})).await.problem(409, "not_resumable");
    }
    let key = json!({"correlation_key": "go"});
    command(&operator, &waiting, "signal", key).await.problem(404, "not_found");
    server.running.stop().await;
}

#[tokio::test]
async fn a_cancel_stops_a_model_call_in_flight() {
    let model = FakeModel::start().await.unwrap();
    model.will(Behaviour::Silence);
    let server = Server::with_model(&model).await;
    let operator = server.operator();
    let run = id(&operator.run("x").await);
    until(|| model.requests().len() == 1).await;
    assert_eq!(operator.until(&run, "running").await["attempt"], 1);
    let cancelled = command(&operator, &run, "cancel", json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("cancelled")));
    // The worker has let go of it: nothing is in flight when the server stops.
    let began = Instant::now();
    server.running.stop().await;
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_pending_run_can_be_cancelled() {
    let model = FakeModel::start().await.unwrap();
    model.otherwise(|_, _| Behaviour::Silence);
    let url = model.chat_url();
    let server = Server::with(|config| {
        config.workers = 1;
        let fake = chancery_server::config::ModelConfig {
            base_url: Some(url),
            ..chancery_server::config::ModelConfig::new(chancery_server::config::Provider::Openai)
        };
        config.models.insert("default".to_owned(), fake);
    })
    .await;
    let operator = server.operator();
    let first = id(&operator.run("x").await);
    operator.until(&first, "running").await;
    let second = operator.run("y").await;
    assert_eq!(second["status"], "pending");
    let cancelled = command(&operator, &id(&second), "cancel", json!({})).await.json();
    let shown = (&cancelled["status"], &cancelled["started_at"], cancelled["ended_at"].is_string());
    assert_eq!(shown, (&json!("cancelled"), &json!(null), true));
    command(&operator, &first, "cancel", json!({})).await;
    server.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_given_before_a_message_was_heard_is_not_the_last() {
    let model = FakeModel::start().await.unwrap();
    let (ready, release) =
        (std::sync::Arc::new(tokio::sync::Notify::new()), std::sync::mpsc::channel::<()>());
    let (told, asked) = (ready.clone(), std::sync::Mutex::new(release.1));
    model.otherwise(move |number, _| {
        if number == 1 {
            told.notify_one();
            let _ = asked.lock().unwrap().recv_timeout(Duration::from_secs(10));
            return Behaviour::Stream(Said::text("too early"));
        }
        Behaviour::Stream(Said::text("with the message"))
    });
    let server = Server::with_model(&model).await;
    let operator = server.operator();
    let run = id(&operator.run("x").await);
    ready.notified().await;
    let spoken = command(&operator, &run, "messages", json!({"text": "one more thing"})).await;
    assert_eq!(spoken.status, 200, "{spoken:?}");
    release.0.send(()).unwrap();
    let done = operator.until(&run, "completed").await;
    assert_eq!(done["output"], "with the message");
    let heard = &model.requests()[1].body["messages"];
    assert!(heard.to_string().contains("one more thing"), "{heard}");
    server.running.stop().await;
}

#[tokio::test]
async fn a_message_to_a_waiting_run_is_heard_when_it_goes_on() {
    let model = FakeModel::start().await.unwrap();
    model.will(Behaviour::Stream(Said::call("wait_for_signal", r#"{"correlation_key": "go"}"#)));
    model.otherwise(|_, _| Behaviour::Stream(Said::text("done")));
    let server = Server::with_model(&model).await;
    let operator = server.operator();
    let run = operator.waiting().await;
    for path in ["messages", "message"] {
        let door = if path == "messages" { "runs" } else { "jobs" };
        let body = json!({"text": format!("through {door}"), "to": "pa"});
        let spoken = operator.post(&format!("/api/{door}/{run}/{path}"), &body).await;
        assert_eq!((spoken.status, &spoken.json()["status"]), (200, &json!("waiting")));
    }
    command(&operator, &run, "signal", json!({"correlation_key": "go"})).await;
    operator.until(&run, "completed").await;
    let heard = model.requests().last().unwrap().body["messages"].to_string();
    assert!(heard.contains("through runs") && heard.contains("through jobs"), "{heard}");
    server.running.stop().await;
}

#[tokio::test]
async fn a_signal_is_the_same_under_both_names_and_twice() {
    let server = Server::start().await;
    let operator = server.operator();
    for doors in [["runs", "jobs"], ["jobs", "runs"]] {
        let run = operator.waiting().await;
        let shown = operator.get(&format!("/api/runs/{run}")).await.json();
        assert_eq!(shown["waiting_for"], "signal");
        assert_eq!(shown["wait"], json!({"correlation_keys": ["go"]}));
        let unknown = json!({"correlation_key": "stop"});
        for door in doors {
            let path = format!("/api/{door}/{run}/signal");
            operator.post(&path, &unknown).await.problem(404, "not_found");
        }
        for door in doors {
            let body = json!({"correlation_key": "go", "payload": {"note": "vigour"}});
            let signalled = operator.post(&format!("/api/{door}/{run}/signal"), &body).await;
            assert_eq!(signalled.status, 200, "{signalled:?}");
        }
        assert_eq!(operator.until(&run, "completed").await["output"], "went on with vigour");
        let again = json!({"correlation_key": "go", "payload": {"note": "other"}});
        assert_eq!(command(&operator, &run, "signal", again).await.status, 200);
        command(&operator, &run, "signal", unknown).await.problem(404, "not_found");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn many_signals_at_once_are_one() {
    let server = Server::start().await;
    let run = server.operator().waiting().await;
    let mut sent = tokio::task::JoinSet::new();
    for n in 0..12 {
        let (caller, run) = (server.operator(), run.clone());
        sent.spawn(async move {
            let body = json!({"correlation_key": "go", "payload": {"note": n.to_string()}});
            command(&caller, &run, "signal", body).await.status
        });
    }
    assert_eq!(sent.join_all().await, [200; 12]);
    server.operator().until(&run, "completed").await;
    let events = server.operator().get(&format!("/api/runs/{run}/events")).await.json();
    let received = |it: &&Value| it["type"] == "signal.received";
    assert_eq!(events["items"].as_array().unwrap().iter().filter(received).count(), 1);
    server.running.stop().await;
}

#[tokio::test]
async fn a_wait_ends_by_itself_when_its_time_is_up() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = id(&operator.run("wait briefly").await);
    let waiting = operator.until(&run, "waiting").await;
    assert!(waiting["wait"]["until"].is_string(), "{waiting}");
    operator.until(&run, "completed").await;
    let events = operator.get(&format!("/api/runs/{run}/events")).await.text;
    assert!(events.contains("wait.expired"), "{events}");
    let late = json!({"correlation_key": "go"});
    command(&operator, &run, "signal", late).await.problem(404, "not_found");
    server.running.stop().await;
}

#[tokio::test]
async fn a_run_that_failed_at_the_model_goes_on() {
    let model = FakeModel::start().await.unwrap();
    model.will(Behaviour::status(400, "no such model"));
    model.otherwise(|_, _| Behaviour::Stream(Said::text("better now")));
    let server = Server::with_model(&model).await;
    let operator = server.operator();
    let run = id(&operator.run("x").await);
    let failed = operator.until(&run, "failed").await;
    assert!(failed["error"].as_str().unwrap().contains("no such model"), "{failed}");
    let resumed = command(&operator, &run, "resume", json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let done = operator.until(&run, "completed").await;
    assert_eq!((&done["output"], &done["error"]), (&json!("better now"), &json!(null)));
    command(&operator, &run, "resume", json!({})).await.problem(409, "not_resumable");
    server.running.stop().await;
}

pub async fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
