//! The console in a real browser: Debian's Chromium, driven over the WebDriver protocol. Every
//! page is loaded in both languages and both lights; then the stories that need hands.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chancery_testkit::mcp_servers;
use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::{Caller, Server};
use crate::house::{House, On};

/// What a page may take to come or to change, on a machine that is busy.
const SOON: Duration = Duration::from_secs(20);

/// A tab of a browser of its own.
struct Tab {
    driver: Child,
    http: reqwest::Client,
    session: String,
    base: String,
}

impl Tab {
    async fn open(server: &Server) -> Tab {
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

    async fn call(&self, path: &str, body: Value) -> Value {
        let sent = self.http.post(format!("{}{path}", self.session)).json(&body).send().await;
        let answer: Value = sent.unwrap().json().await.unwrap();
        assert!(answer["value"]["error"].is_null(), "{path}: {answer}");
        answer["value"].clone()
    }

    async fn go(&self, path: &str) {
        self.call("/url", json!({"url": format!("{}{path}", self.base)})).await;
    }

    async fn eval(&self, script: &str) -> Value {
        self.call("/execute/sync", json!({"script": script, "args": []})).await
    }

    async fn cookie(&self, pair: &str) {
        let (name, value) = pair.split_once('=').unwrap();
        let cookie = json!({"cookie": {"name": name, "value": value, "path": "/"}});
        self.call("/cookie", cookie).await;
    }

    /// Signs in as the browser of the other tests is.
    async fn be(&self, browser: &Browser) {
        self.go("/signin").await;
        self.cookie(&browser.cookie).await;
    }

    async fn width(&self, width: u32) {
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        let body = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics});
        self.call("/goog/cdp/execute", body).await;
    }

    /// Presses keys, one after the other, as a person's fingers do.
    async fn press(&self, keys: &str) {
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

    /// Waits until a script answers `true`.
    async fn until(&self, script: &str) {
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
    async fn complaints(&self) -> Vec<String> {
        let said = self.call("/se/log", json!({"type": "browser"})).await;
        let said = said.as_array().cloned().unwrap_or_default();
        said.iter()
            .filter(|it| it["level"] == "SEVERE" || it["level"] == "WARNING")
            .map(|it| it["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// What axe has to say against the page.
    async fn axe(&self, source: &str) -> Value {
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

/// A house with something in every room.
async fn lived_in() -> (House, Caller, Vec<String>) {
    let house = House::open(On::Sqlite).await;
    let lin = house.lin().await;
    house.change("", "tools: {note: require_approval}\n").await;
    let batch =
        json!([[["note", {"to": "a\u{202e}b"}], ["pay", {"to": "b"}], ["burn", {"to": "c"}]]]);
    let body = json!({"agent": "pa", "input": batch.to_string(), "session_key": "talk"});
    let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "waiting").await;
    let asked = lin.asked(&run).await;
    let (done, decided) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    let answer = json!({"decision": "grant", "comment": "yes", "remember": "agent"});
    assert_eq!(lin.decide(&decided[0], answer).await.status, 200);
    lin.until(&done, "completed").await;
    let memory =
        json!({"content": "Lin wants it short.", "type": "core", "scope": {"user": "lin"}});
    assert_eq!(lin.post("/api/memories", &memory).await.status, 201);
    let entry = lin.get("/api/audit").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let pages = vec![
        "/inbox".to_owned(),
        "/inbox?show=decided".to_owned(),
        format!("/inbox/{}", asked[0]["id"].as_str().unwrap()),
        "/chat".to_owned(),
        "/chat/talk".to_owned(),
        "/runs".to_owned(),
        format!("/runs/{run}"),
        format!("/runs/{done}?only=trouble"),
        "/mail".to_owned(),
        "/mail?show=write".to_owned(),
        "/org".to_owned(),
        "/org?agent=pa&tool=pay".to_owned(),
        "/memory".to_owned(),
        "/memory?q=short".to_owned(),
        "/audit".to_owned(),
        format!("/audit/{entry}"),
        "/rules".to_owned(),
        "/settings".to_owned(),
        "/nowhere".to_owned(),
        "/signin".to_owned(),
    ];
    (house, lin, pages)
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_every_page_is_sound_in_both_languages_and_lights() {
    let axe = std::fs::read_to_string(mcp_servers::axe().unwrap()).unwrap();
    let (house, _, pages) = lived_in().await;
    let browser = Browser::of(&house.server, "lin").await;
    let tab = Tab::open(&house.server).await;
    tab.be(&browser).await;
    let mut wrong = Vec::new();
    for (language, theme) in [("en", "light"), ("zh", "dark"), ("en", "dark"), ("zh", "light")] {
        tab.cookie(&format!("chancery_language={language}")).await;
        tab.cookie(&format!("chancery_theme={theme}")).await;
        for page in &pages {
            tab.width(1280).await;
            tab.go(page).await;
            let of = format!("{language} {theme} {page}");
            let found = tab.axe(&axe).await;
            if found != json!([]) {
                wrong.push(format!("{of}: {found:#}"));
            }
            tab.width(320).await;
            let wide = tab.eval("return document.documentElement.scrollWidth").await;
            if wide.as_u64() > Some(320) {
                wrong.push(format!("{of}: {wide} wide at 320"));
            }
            let complaints = tab.complaints().await;
            // That a page is not there is what the browser is told.
            let own = complaints.iter().filter(|it| !it.contains("/nowhere"));
            wrong.extend(own.map(|it| format!("{of}: {it}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_card_appears_while_one_looks_and_is_approved_by_keys_alone() {
    const TAB: &str = "\u{e004}";
    let house = House::open(On::Sqlite).await;
    house.change("", "tools: {note: require_approval}\n").await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let tab = Tab::open(&house.server).await;
    tab.be(&browser).await;
    tab.go("/inbox").await;
    tab.until("return document.querySelector('#pulse').dataset.state === 'on'").await;
    assert_eq!(tab.eval("return document.querySelectorAll('[data-call]').length").await, 0);
    let (run, asked) = lin.asking("pa", json!([[["note", {"to": "live"}]]])).await;
    tab.until("return document.querySelectorAll('.row').length === 1").await;
    assert_eq!(tab.eval("return document.title.startsWith('(1) ')").await, true);
    let announced = tab.eval("return document.querySelector('#say').textContent").await;
    assert!(announced.as_str().unwrap().contains("note"), "{announced}");
    // Nobody took the focus from where it was.
    assert_eq!(tab.eval("return document.activeElement === document.body").await, true);
    tab.until("return document.querySelectorAll('[data-call]').length === 1").await;
    for _ in 0..40 {
        if tab.eval("return document.activeElement.matches('[data-call]')").await == true {
            break;
        }
        tab.press(TAB).await;
    }
    assert_eq!(tab.eval("return document.activeElement.matches('[data-call]')").await, true);
    // A card that has just come takes no answer for a moment; who means it presses again.
    let path = format!("/api/permissions/{}", asked[0]["id"].as_str().unwrap());
    let began = Instant::now();
    while lin.get(&path).await.json()["status"] == "pending" {
        assert!(began.elapsed() < SOON, "the key does nothing");
        tab.press("a").await;
    }
    lin.permission_until(&asked[0], "granted").await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note live"]);
    tab.until("return document.title.startsWith('(') === false").await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_typing_while_cards_arrive_decides_nothing_and_keeps_the_draft() {
    let house = House::open(On::Sqlite).await;
    house.change("", "tools: {note: require_approval}\n").await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let ask = async |n: usize| {
        let input = json!([[["note", {"to": n.to_string()}]]]).to_string();
        let body = json!({"agent": "pa", "input": input, "session_key": "talk"});
        lin.until(&crate::harness::id(&lin.post("/api/runs", &body).await.json()), "waiting").await;
    };
    ask(0).await;
    let tab = Tab::open(&house.server).await;
    tab.be(&browser).await;
    tab.go("/chat/talk").await;
    tab.until("return document.querySelector('#pulse').dataset.state === 'on'").await;
    tab.eval("document.querySelector('#text').focus()").await;
    let mut typed = String::new();
    for n in 1..=10 {
        tab.press("adewt").await;
        typed.push_str("adewt");
        ask(n).await;
    }
    tab.until("return document.querySelectorAll('.card').length >= 11").await;
    let text =
        tab.eval("return [document.activeElement.id, document.querySelector('#text').value]");
    assert_eq!(text.await, json!(["text", typed]));
    let decided = lin.get("/api/permissions?status=granted").await.json();
    assert_eq!(decided["items"], json!([]));
    assert_eq!(lin.get("/api/permissions?status=denied").await.json()["items"], json!([]));
    assert_eq!(house.ledger(), [""; 0]);
    // A draft outlives the page.
    tab.go("/inbox").await;
    tab.go("/chat/talk").await;
    assert_eq!(tab.eval("return document.querySelector('#text').value").await, json!(typed));
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}
