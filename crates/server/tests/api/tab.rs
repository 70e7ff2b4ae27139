//! A tab of a real browser, with hands: Debian's Chromium, driven over the WebDriver protocol.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::Server;

/// What a page may take to come or to change, on a machine that is busy.
pub const SOON: Duration = Duration::from_secs(20);

pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const CONTROL: &str = "\u{e009}";
pub const SHIFT: &str = "\u{e008}";
pub const ALT: &str = "\u{e00a}";
pub const ESCAPE: &str = "\u{e00c}";
pub const END: &str = "\u{e010}";
pub const HOME: &str = "\u{e011}";
pub const LEFT: &str = "\u{e012}";
pub const UP: &str = "\u{e013}";
pub const RIGHT: &str = "\u{e014}";
pub const DOWN: &str = "\u{e015}";

/// A tab of a browser of its own.
pub struct Tab {
    driver: Child,
    http: reqwest::Client,
    session: String,
    base: String,
}

impl Tab {
    pub async fn open(server: &Server) -> Tab {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        #[expect(clippy::disallowed_methods, reason = "the test's own browser")]
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is needed: install `chromium` and `chromium-driver`");
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let at = format!("http://127.0.0.1:{port}");
        let began = Instant::now();
        while http.get(format!("{at}/status")).send().await.is_err() {
            assert!(began.elapsed() < SOON, "chromedriver does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let args = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": args}, "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let made = http.post(format!("{at}/session")).json(&wanted).send().await.unwrap();
        let made: Value = made.json().await.unwrap();
        let id = made["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("{made}"));
        let session = format!("{at}/session/{id}");
        Tab { driver, http, session, base: server.running.url() }
    }

    pub async fn call(&self, path: &str, body: Value) -> Value {
        let sent = self.http.post(format!("{}{path}", self.session)).json(&body).send().await;
        let answer: Value = sent.unwrap().json().await.unwrap();
        assert!(answer["value"]["error"].is_null(), "{path}: {answer}");
        answer["value"].clone()
    }

    pub async fn go(&self, path: &str) {
        self.call("/url", json!({"url": format!("{}{path}", self.base)})).await;
    }

    pub async fn eval(&self, script: &str) -> Value {
        self.call("/execute/sync", json!({"script": script, "args": []})).await
    }

    pub async fn cookie(&self, pair: &str) {
        let (name, value) = pair.split_once('=').unwrap();
        let cookie = json!({"cookie": {"name": name, "value": value, "path": "/"}});
        self.call("/cookie", cookie).await;
    }

    /// Signs in as the browser of the other tests is.
    pub async fn be(&self, browser: &Browser) {
        self.go("/signin").await;
        self.cookie(&browser.cookie).await;
    }

    pub async fn width(&self, width: u32) {
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        let body = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics});
        self.call("/goog/cdp/execute", body).await;
    }

    /// Presses keys, one after the other, as a person's fingers do.
    pub async fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                let key = key.to_string();
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        let source = json!({"type": "key", "id": "keys", "actions": actions});
        self.call("/actions", json!({"actions": [source]})).await;
    }

    /// Holds one key while another is pressed.
    pub async fn chord(&self, held: &str, key: &str) {
        let actions = json!([
            {"type": "keyDown", "value": held}, {"type": "keyDown", "value": key},
            {"type": "keyUp", "value": key}, {"type": "keyUp", "value": held},
        ]);
        let source = json!({"type": "key", "id": "keys", "actions": actions});
        self.call("/actions", json!({"actions": [source]})).await;
    }

    /// Presses Tab until what has the focus is what the script says of `it`.
    pub async fn tab_to(&self, of_it: &str) {
        let script = format!("const it = document.activeElement; return Boolean({of_it})");
        for _ in 0..200 {
            if self.eval(&script).await == true {
                return;
            }
            self.press(TAB).await;
        }
        panic!("no Tab leads to {of_it}: {}", self.eval("return document.body.innerText").await);
    }

    /// The element that an XPath names.
    async fn element(&self, path: &str) -> String {
        let found = self.call("/element", json!({"using": "xpath", "value": path})).await;
        let id = found.as_object().and_then(|it| it.values().next()).and_then(Value::as_str);
        id.unwrap_or_else(|| panic!("{path}: {found}")).to_owned()
    }

    /// Clicks with the pointer, as often as it takes: a card that has just come takes no click.
    pub async fn click_until(&self, path: &str, script: &str) {
        let began = Instant::now();
        while self.eval(script).await != true {
            assert!(began.elapsed() < SOON, "a click on {path} never led to: {script}");
            let there = format!(
                "return document.evaluate({path:?}, document, null, 9, null).singleNodeValue !== null"
            );
            if self.eval(&there).await == true {
                let id = self.element(path).await;
                self.call(&format!("/element/{id}/click"), json!({})).await;
            }
            tokio::time::sleep(Duration::from_millis(120)).await;
        }
    }

    pub async fn click(&self, path: &str) {
        let id = self.element(path).await;
        self.call(&format!("/element/{id}/click"), json!({})).await;
    }

    /// Writes into a field in place of what was there.
    pub async fn fill(&self, path: &str, text: &str) {
        let id = self.element(path).await;
        self.call(&format!("/element/{id}/clear"), json!({})).await;
        self.call(&format!("/element/{id}/value"), json!({"text": text})).await;
    }

    pub async fn text(&self) -> String {
        let text = self.eval("return document.body.innerText").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a script answers `true`.
    pub async fn until(&self, script: &str) {
        let began = Instant::now();
        while self.eval(script).await != true {
            if began.elapsed() > SOON {
                let page = self.eval("return document.body.innerText").await;
                panic!("never: {script}\n{page}\n{:?}", self.complaints().await);
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// What the browser has said against the page since it was last asked.
    pub async fn complaints(&self) -> Vec<String> {
        let said = self.call("/se/log", json!({"type": "browser"})).await;
        let said = said.as_array().cloned().unwrap_or_default();
        said.iter()
            .filter(|it| it["level"] == "SEVERE" || it["level"] == "WARNING")
            .map(|it| it["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// What axe has to say against the page.
    pub async fn axe(&self, source: &str) -> Value {
        self.eval(source).await;
        let run = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']})
            .then((it) => done(it.violations.map((v) => [v.id, v.nodes.slice(0, 4).map((n) => n.html.slice(0, 200) + ' | ' + n.failureSummary)])),
                  (it) => done(String(it)));";
        self.call("/execute/async", json!({"script": run, "args": []})).await
    }
}

impl Drop for Tab {
    /// A driver that is killed leaves its browser behind: it is told first.
    fn drop(&mut self) {
        use std::io::{Read as _, Write as _};
        let (host, path) = self.session["http://".len()..].split_once('/').unwrap_or_default();
        if let Ok(mut stream) = std::net::TcpStream::connect(host) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let request = format!("DELETE /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let _ = stream.write_all(request.as_bytes());
            // The first byte of the answer comes when the browser has gone.
            let _ = stream.read(&mut [0]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
