//! From lines of standard input to `POST /mcp`, and back. Rules on nothing, keeps nothing.
//!
//! A server that is restarted while a call waits is not the client's affair: the call is made
//! again with its key, which finds it where it stands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chancery_api::client::{Client, ClientError};
use chancery_runtime::clock;
use chancery_runtime::model::sse::Decoder;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// The key by which a call is known again.
const KEY: &str = "chancery/idempotency_key";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Larger than any answer of ours.
const EVENT_MAX: usize = 64 * 1024 * 1024;
/// How long a server may be away before a call is given up here; it stands there all the same.
const AWAY_MAX: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(500);

/// Until standard input ends and what was asked is answered.
pub async fn serve(client: Client) -> anyhow::Result<()> {
    let (out, lines) = mpsc::channel(64);
    let writer = tokio::spawn(write(lines));
    let bridge = Bridge { client, out, version: Arc::default() };
    let mut asked: JoinSet<()> = JoinSet::new();
    let mut under_way: HashMap<String, AbortHandle> = HashMap::new();
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = input.next_line().await? {
        if line.trim().is_empty() {
            continue;
        }
        under_way.retain(|_, it| !it.is_finished());
        match serde_json::from_str::<Value>(&line) {
            Err(error) => bridge.fail(&Value::Null, -32700, &format!("not JSON: {error}")).await,
            Ok(message) if message["method"] == "notifications/cancelled" => {
                // Nobody waits here any longer. The call itself stands.
                if let Some(it) = under_way.remove(&message["params"]["requestId"].to_string()) {
                    it.abort();
                }
            }
            Ok(message) if message["method"].is_string() && !message["id"].is_null() => {
                let (bridge, id) = (bridge.clone(), message["id"].to_string());
                let task = asked.spawn(async move { bridge.relay(message).await });
                under_way.insert(id, task);
            }
            // Without sessions there is nothing that the server would do about the others.
            Ok(_) => {}
        }
    }
    while asked.join_next().await.is_some() {}
    drop(bridge);
    writer.await?
}

async fn write(mut lines: mpsc::Receiver<String>) -> anyhow::Result<()> {
    let mut out = tokio::io::stdout();
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        out.write_all(line.as_bytes()).await?;
        out.flush().await?;
    }
    Ok(())
}

#[derive(Debug, Clone)]
struct Bridge {
    client: Client,
    out: mpsc::Sender<String>,
    /// As it was agreed on when the client began.
    version: Arc<Mutex<Option<String>>>,
}

/// Why a request has no answer yet.
enum Unanswered {
    /// It may have one when it is asked again.
    Away(String),
    Refused(String),
}

impl Bridge {
    async fn relay(&self, mut request: Value) {
        let (id, method) = (request["id"].clone(), text(&request["method"]));
        if method == "tools/call" && request["params"].is_object() {
            let meta = &mut request["params"]["_meta"];
            if meta.is_null() {
                *meta = json!({});
            }
            if let Some(meta) = meta.as_object_mut() {
                meta.entry(KEY)
                    .or_insert_with(|| json!(format!("stdio-{}", clock::new_message_id())));
            }
        }
        let began = Instant::now();
        let mut away_since = None;
        loop {
            match self.ask(&request, &method).await {
                Ok(()) => return,
                Err(Unanswered::Refused(why)) => return self.fail(&id, -32600, &why).await,
                Err(Unanswered::Away(why)) => {
                    let since = *away_since.get_or_insert_with(Instant::now);
                    // Whoever begins is told at once that nobody is there.
                    let waits = method != "initialize" && method != "server/discover";
                    if !waits || since.elapsed() > AWAY_MAX {
                        let why = format!("{why} (asked for {:?})", began.elapsed());
                        return self.fail(&id, -32000, &why).await;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Asks once, and passes on all that is said.
    async fn ask(&self, request: &Value, method: &str) -> Result<(), Unanswered> {
        let away = |it: String| Unanswered::Away(it);
        let headers = self.headers(request, method);
        let mut response = match self.client.mcp(request.to_string(), &headers).await {
            Ok(response) => response,
            Err(ClientError::Problem(it)) if it.status < 500 => {
                return Err(Unanswered::Refused(it.detail));
            }
            Err(error) => return Err(away(error.to_string())),
        };
        let kind = response.headers().get("content-type").and_then(|it| it.to_str().ok());
        if !kind.is_some_and(|it| it.starts_with("text/event-stream")) {
            let body = response.bytes().await.map_err(|it| away(it.to_string()))?;
            let message = serde_json::from_slice(&body);
            let message = message.map_err(|it| Unanswered::Refused(it.to_string()))?;
            return self
                .pass(method, message)
                .await
                .then_some(())
                .ok_or_else(|| Unanswered::Refused("the server's answer is none".to_owned()));
        }
        let mut decoder = Decoder::new(EVENT_MAX);
        while let Some(bytes) = response.chunk().await.map_err(|it| away(it.to_string()))? {
            decoder.push(&bytes);
            while let Some(event) =
                decoder.next_event().map_err(|it| Unanswered::Refused(it.to_string()))?
            {
                if let Ok(message) = serde_json::from_str(&event.data)
                    && self.pass(method, message).await
                {
                    return Ok(());
                }
            }
        }
        Err(away("the server broke off".to_owned()))
    }

    /// Passes a message on; answers whether it is the last.
    async fn pass(&self, method: &str, message: Value) -> bool {
        let ends = message.get("result").is_some() || message.get("error").is_some();
        if let Some(version) = message["result"]["protocolVersion"].as_str()
            && method == "initialize"
        {
            let mut agreed = self.version.lock().unwrap_or_else(PoisonError::into_inner);
            *agreed = Some(version.to_owned());
        }
        // Who does not listen any more has gone.
        let _ = self.out.send(message.to_string()).await;
        ends
    }

    async fn fail(&self, id: &Value, code: i32, why: &str) {
        let error = json!({"code": code, "message": why});
        let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
        let _ = self.out.send(message.to_string()).await;
    }

    /// What streamable HTTP says beside the message.
    fn headers(&self, request: &Value, method: &str) -> Vec<(&'static str, String)> {
        let params = &request["params"];
        let agreed = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let version = params["_meta"][VERSION].as_str().map(str::to_owned).or(agreed);
        let version = version.filter(|_| method != "initialize");
        let name = if method == "resources/read" { &params["uri"] } else { &params["name"] };
        let mut headers = vec![("mcp-method", method.to_owned())];
        headers.extend(version.map(|it| ("mcp-protocol-version", it)));
        headers.extend(name.as_str().map(|it| ("mcp-name", it.to_owned())));
        headers
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
