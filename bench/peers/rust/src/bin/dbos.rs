//! DBOS for Rust on PostgreSQL, in this process as it is in its users'.
//!
//! `dbos --url URL` does the work that is measured; `dbos --url URL --effects FILE --runs N
//! [--recover]` does the work that is killed.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use dbos::{Config, DBOS, Error, step};
use peers::{MODEL, argument, clients, effect, number, say, say_end, tool, until_let_go};
use serde_json::json;

static NEXT: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Default::default);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = argument("--url").ok_or("--url")?;
    let config =
        Config { app_version: Some("1".into()), max_connections: 32, ..Config::new("peer", url) };
    let dbos = DBOS::new(config);
    match argument("--effects") {
        Some(file) => effects(dbos, file).await,
        None => work(dbos).await,
    }
}

async fn work(dbos: DBOS) -> Result<(), Box<dyn std::error::Error>> {
    let agent = dbos.register_workflow("agent", |calls: u32| async move {
        for _ in 0..calls {
            let _: String = step("model", || async { Ok::<_, Error>(MODEL.to_owned()) }).await?;
            let _: String = step("tool", || async { Ok::<_, Error>(tool()) }).await?;
        }
        Ok::<_, Error>(calls)
    })?;
    let approval = dbos.register_workflow("approval", |name: String| async move {
        let _: String = step("model", || async { Ok::<_, Error>(MODEL.to_owned()) }).await?;
        let _: Option<String> = dbos::recv(None, Duration::from_secs(60)).await?;
        let next = || {
            let name = name.clone();
            async move {
                NEXT.lock().unwrap().insert(name, Instant::now());
                Ok::<_, Error>(tool())
            }
        };
        let _: String = step("next", next).await?;
        Ok::<_, Error>(())
    })?;
    dbos.launch().await?;
    agent.start(5).await?.result().await?;
    say(json!({ "said": "ready" }));
    let (agent, seconds) = (Arc::new(agent), number("--seconds", 3.0));
    for clients in clients() {
        say(json!({ "said": "begin", "clients": clients }));
        let began = Instant::now();
        let tasks: Vec<_> = (0..clients)
            .map(|_| {
                let agent = agent.clone();
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    while began.elapsed().as_secs_f64() < seconds {
                        let asked = Instant::now();
                        agent.start(5).await.unwrap().result().await.unwrap();
                        latencies.push(asked.elapsed());
                    }
                    latencies
                })
            })
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await?);
        }
        say_end(clients, latencies, began.elapsed());
    }
    let mut approvals = Vec::new();
    for n in 0..number("--approvals", 50.0) as usize {
        let name = format!("approval-{n}");
        let handle = approval.start(name.clone()).await?;
        // It cannot be asked whether it waits yet.
        tokio::time::sleep(Duration::from_millis(40)).await;
        let sent = Instant::now();
        dbos.send(handle.workflow_id(), &"yes").await?;
        handle.result().await?;
        let next = NEXT.lock().unwrap()[&name];
        approvals.push(next.duration_since(sent).as_secs_f64() * 1e3);
    }
    say(json!({ "said": "approvals", "ms": approvals }));
    until_let_go()
}

async fn effects(dbos: DBOS, file: String) -> Result<(), Box<dyn std::error::Error>> {
    let agent = dbos.register_workflow("agent", move |name: String| {
        let file = file.clone();
        async move {
            for n in 0..10 {
                let (file, name) = (file.clone(), name.clone());
                let call = || {
                    let (file, name) = (file.clone(), name.clone());
                    async move {
                        effect(&file, &name, n).await.unwrap();
                        Ok::<_, Error>(tool())
                    }
                };
                let _: String = step("tool", call).await?;
            }
            Ok::<_, Error>(())
        }
    })?;
    dbos.launch().await?;
    if !std::env::args().any(|it| it == "--recover") {
        let mut handles = Vec::new();
        for n in 0..number("--runs", 40.0) as u32 {
            handles.push(agent.start(format!("run-{n}")).await?);
        }
        say(json!({ "said": "made" }));
        for handle in handles {
            handle.result().await?;
        }
    }
    // What was left is taken up by the launch.
    say(json!({ "said": "made" }));
    until_let_go()
}
