//! A whole server in this process, and callers of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chancery_server::config::{Config, IsolationMode, ModelConfig, Provider};
use chancery_server::{Running, start};
use chancery_testkit::fake_model::FakeModel;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Waits for a signal where it is asked to, and otherwise repeats what it was told.
pub const SCENARIO: &str = r#"
agents:
  pa:
    - when: {user_matches: "^wait briefly"}
      call: {tool: wait_for_signal, args: {correlation_key: go, timeout: 300ms}}
    - when: {user_matches: "^wait"}
      call: {tool: wait_for_signal, args: {correlation_key: go}}
    - when: {tool_result: wait_for_signal}
      say: "went on with {{result.note}}"
fallback: "heard: {{input}}"
"#;

pub struct Server {
    pub running: Running,
    pub data: TempDir,
    pub config: Config,
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub text: String,
}

/// Someone with a token, or without.
#[derive(Clone)]
pub struct Caller {
    base: String,
    token: Option<String>,
    http: reqwest::Client,
}

impl Server {
    /// On SQLite, with [`SCENARIO`].
    pub async fn start() -> Server {
        Server::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Config)) -> Server {
        Server::with_environment(change, &[]).await
    }

    pub async fn with_environment(
        change: impl FnOnce(&mut Config),
        environment: &[(&str, &str)],
    ) -> Server {
        let data = TempDir::new().unwrap();
        let scenario = data.path().join("scenario.yaml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        let mut config = Config {
            listen: ([127, 0, 0, 1], 0).into(),
            data: data.path().join("data"),
            ..Config::default()
        };
        config.limits.grace_seconds = 2;
        // This process is a test, and not the binary that puts up walls.
        config.isolation.mode = IsolationMode::Off;
        let scripted =
            ModelConfig { scenario: Some(scenario), ..ModelConfig::new(Provider::Scripted) };
        config.models.insert("default".to_owned(), scripted);
        change(&mut config);
        let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let running = start(&config, environment).await.unwrap();
        Server { running, data, config }
    }

    /// With a model that the test has in its hand.
    pub async fn with_model(model: &FakeModel) -> Server {
        let url = model.chat_url();
        Server::with(|config| {
            let fake = ModelConfig {
                base_url: Some(url),
                model: Some("fake".to_owned()),
                retries: Some(0),
                ..ModelConfig::new(Provider::Openai)
            };
            config.models.insert("default".to_owned(), fake);
        })
        .await
    }

    pub fn operator(&self) -> Caller {
        self.caller(Some(&self.running.local_token))
    }

    pub fn nobody(&self) -> Caller {
        self.caller(None)
    }

    pub fn caller(&self, token: Option<&str>) -> Caller {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Caller { base: self.running.url(), token: token.map(str::to_owned), http }
    }

    /// The same one, where this server is now.
    pub fn elsewhere(&self, caller: &Caller) -> Caller {
        self.caller(caller.token.as_deref())
    }

    /// Someone with a new token.
    pub async fn holder(&self, token: Value) -> Caller {
        let made = self.operator().post("/api/tokens", &token).await;
        assert_eq!(made.status, 201, "{made:?}");
        self.caller(Some(made.json()["token"].as_str().unwrap()))
    }

    pub async fn human(&self, name: &str) -> Caller {
        self.holder(json!({"kind": "human", "name": name})).await
    }
}

impl Caller {
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        answer(self.request(Method::POST, path).json(body)).await
    }

    pub async fn post_raw(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        answer(self.request(Method::POST, path).body(body)).await
    }

    /// A new run of `pa`.
    pub async fn run(&self, input: &str) -> Value {
        let made = self.post("/api/runs", &json!({"agent": "pa", "input": input})).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()
    }

    /// The run once it has that status.
    pub async fn until(&self, id: &str, status: &str) -> Value {
        let began = Instant::now();
        loop {
            let run = self.get(&format!("/api/runs/{id}")).await.json();
            if run["status"] == status {
                return run;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "not {status}: {run}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A run that waits for `go`.
    pub async fn waiting(&self) -> String {
        let id = id(&self.run("wait").await);
        self.until(&id, "waiting").await;
        id
    }
}

pub async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .map(|(name, it)| (name.to_string(), it.to_str().unwrap_or_default().to_owned()))
        .collect();
    Answer { status, headers, text: response.text().await.unwrap() }
}

pub fn id(run: &Value) -> String {
    run["id"].as_str().unwrap().to_owned()
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|it| panic!("{it}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Asserts that this is a problem, whole and as documented, and answers with its detail.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let title = reqwest::StatusCode::from_u16(status).unwrap().canonical_reason().unwrap();
        let said = self.json();
        let detail = said["detail"].as_str().unwrap_or_default().to_owned();
        let expected = json!({
            "type": "about:blank", "title": title, "status": status, "code": code, "detail": detail,
        });
        assert_eq!((self.status, said), (status, expected));
        assert!(!detail.is_empty() && detail.chars().count() <= 501, "{detail}");
        detail
    }
}
