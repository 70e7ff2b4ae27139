//! Every page is alive: what happens while somebody looks is there without a reload, for those
//! whose it is, and leaves what is under their hands.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::console::Browser;
use crate::harness::{Caller, Server};
use crate::house::{House, On, on_both};
use crate::tab::Tab;

on_both! {
    who_looks_at_a_page_is_told_of_what_changes_on_it;
    nobody_is_told_of_what_is_not_theirs;
}

const SOON: Duration = Duration::from_secs(20);

/// What somebody's page is told.
struct Told {
    response: reqwest::Response,
    heard: String,
}

impl Told {
    async fn of(browser: &Browser, watch: &str) -> Told {
        let response = browser.request(Method::GET, &format!("/ui/events?watch={watch}"));
        let response = response.send().await.unwrap();
        assert_eq!(response.status(), 200, "{watch}");
        let mut told = Told { response, heard: String::new() };
        // The page may have been drawn before the last change: it is told so at first.
        told.until(1).await;
        told
    }

    fn times(&self) -> usize {
        self.heard.matches("event: stale").count()
    }

    async fn until(&mut self, times: usize) {
        let told = async {
            while self.times() < times {
                let chunk = self.response.chunk().await.unwrap().unwrap();
                self.heard.push_str(&String::from_utf8_lossy(&chunk));
            }
        };
        tokio::time::timeout(SOON, told).await.unwrap_or_else(|_| panic!("not {times} times"));
    }

    /// How often it was told until now.
    async fn so_far(&mut self) -> usize {
        while let Ok(chunk) = tokio::time::timeout(Duration::ZERO, self.response.chunk()).await {
            self.heard.push_str(&String::from_utf8_lossy(&chunk.unwrap().unwrap()));
        }
        self.times()
    }
}

/// Where mail is left lying.
async fn house(on: On) -> House {
    let house = House::with(on, |config| config.mail.drives_work = false).await;
    house.change("", "tools: {note: require_approval}\n").await;
    house
}

impl Caller {
    async fn writes(&self, subject: &str) -> String {
        let body = json!({"to": "ceo", "type": "info", "subject": subject, "body": "b"});
        let sent = self.post("/api/mail", &body).await;
        assert_eq!(sent.status, 201, "{sent:?}");
        sent.json()["id"].as_str().unwrap().to_owned()
    }

    async fn issues(&self) -> String {
        let issued = self.issue("ceo", json!({})).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        issued.json()["id"].as_str().unwrap().to_owned()
    }

    async fn keeps(&self, user: &str, content: &str) {
        let scope = json!({"user": user});
        let memory = json!({"content": content, "type": "core", "scope": scope});
        assert_eq!(self.post("/api/memories", &memory).await.status, 201);
    }

    /// Answers something once and for all.
    async fn settles(&self) {
        let (run, asked) = self.asking("pa", json!([[["note", {"to": "x"}]]])).await;
        let answer = json!({"decision": "grant", "remember": "agent"});
        assert_eq!(self.decide(&asked[0], answer).await.status, 200);
        self.until(&run, "completed").await;
    }
}

async fn who_looks_at_a_page_is_told_of_what_changes_on_it(on: On) {
    let house = house(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let ceo = house.server.holder(json!({"kind": "agent", "name": "ceo"})).await;
    let (letter, contract) = (lin.writes("first").await, lin.issues().await);
    let mut of_letter = Told::of(&browser, &letter).await;
    assert_eq!(ceo.get(&format!("/api/mail/{letter}")).await.status, 200);
    of_letter.until(2).await;
    let mut of_contract = Told::of(&browser, &contract).await;
    assert_eq!(ceo.step(&contract, "accepted").await.status, 200);
    of_contract.until(2).await;
    let mut of_mail = Told::of(&browser, "mail").await;
    lin.writes("second").await;
    of_mail.until(2).await;
    let mut of_memory = Told::of(&browser, "memory").await;
    lin.keeps("lin", "Lin wants it short.").await;
    of_memory.until(2).await;
    let mut of_settings = Told::of(&browser, "settings").await;
    Browser::of(&house.server, "lin").await;
    of_settings.until(2).await;
    let mut of_org = Told::of(&browser, "organisation").await;
    house.dismiss("payer").await;
    of_org.until(2).await;
    house.close().await;
}

async fn nobody_is_told_of_what_is_not_theirs(on: On) {
    let house = house(on).await;
    let (lin, lins) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let (mei, meis) = (house.server.human("mei").await, Browser::of(&house.server, "mei").await);
    let (letter, contract) = (lin.writes("first").await, lin.issues().await);
    let run = lin.script("pa", json!([])).await;
    // What is somebody else's is not there, no more than what there is not.
    for (theirs, nobodys) in [
        (letter, "MAIL-20260101000000-000000000000"),
        (contract, "CTR-20260101000000-000000000000"),
        (run, "run_00000000000000000000000000000000"),
    ] {
        for id in [&*theirs, nobodys] {
            let watch = format!("/ui/events?watch={id}");
            assert_eq!(meis.get(&watch).await.status, 404, "{id}");
        }
        assert_eq!(Told::of(&lins, &theirs).await.times(), 1);
    }
    let mut told = Vec::new();
    for watch in ["runs", "mail", "memory", "audit", "rules", "settings", "nonsense"] {
        told.push((watch, Told::of(&meis, watch).await));
    }
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let mut of_all = Told::of(&boss, "audit").await;
    lin.writes("second").await;
    lin.issues().await;
    lin.keeps("lin", "Lin wants it short.").await;
    Browser::of(&house.server, "lin").await;
    lin.settles().await;
    // Who sees all of it hears of it; by then the others were looked at as well.
    let before = of_all.so_far().await;
    lin.script("pa", json!([[["burn", {"to": "x"}]]])).await;
    of_all.until(before + 1).await;
    for (watch, told) in &mut told {
        assert_eq!(told.so_far().await, 1, "{watch}: {}", told.heard);
    }
    // What is her own is told.
    mei.writes("mine").await;
    mei.keeps("mei", "Mei wants it long.").await;
    Browser::of(&house.server, "mei").await;
    mei.settles().await;
    for (_, told) in told.iter_mut().filter(|(watch, _)| *watch != "nonsense") {
        told.until(2).await;
    }
    house.close().await;
}

#[tokio::test]
async fn a_page_hears_of_what_another_server_was_told() {
    let house = house(On::Postgres).await;
    let data = tempfile::TempDir::new().unwrap();
    let mut config = house.server.config.clone();
    config.workspace = Some(config.workspace());
    config.data = data.path().join("data");
    let running = chancery_server::start(&config, []).await.unwrap();
    let other = Server { running, data, config };
    let browser = Browser::of(&house.server, "lin").await;
    let lin = other.human("lin").await;
    let mut of_memory = Told::of(&browser, "memory").await;
    let mut of_mail = Told::of(&browser, "mail").await;
    lin.keeps("lin", "Lin wants it short.").await;
    lin.writes("there").await;
    of_memory.until(2).await;
    of_mail.until(2).await;
    other.running.stop().await;
    house.close().await;
}

/// Signed in, where mail is left lying.
async fn at_home(name: &str) -> (House, Caller, Tab) {
    let house = house(On::Sqlite).await;
    let lin = house.server.human(name).await;
    let tab = Tab::open(&house.server).await;
    tab.be(&Browser::of(&house.server, name).await).await;
    (house, lin, tab)
}

/// Opens a page and is in the middle of something there.
async fn look(tab: &Tab, page: &str, doing: &str) {
    tab.go(page).await;
    tab.until("return document.querySelector('#pulse')?.dataset.state === 'on'").await;
    tab.eval(&format!("window.same = true; {doing}")).await;
}

const TYPES: &str = "const it = document.querySelector('main form.filter input'); it.focus(); \
                     it.value = 'ha'";
const TYPED: &str = "const it = document.activeElement; return [window.same, it.name, it.value]";

fn shows(place: &str, text: &str) -> String {
    format!("return document.querySelector('{place}')?.textContent.includes('{text}') === true")
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_what_happens_meanwhile_appears_on_every_page_and_leaves_what_is_typed() {
    let (house, lin, tab) = at_home("lin").await;
    let ceo = house.server.holder(json!({"kind": "agent", "name": "ceo"})).await;
    let contract = lin.issues().await;
    let choose = "const it = document.querySelector('select[name=box]'); it.focus(); \
                  it.value = 'ceo'";
    look(&tab, "/mail?box=board&show=sent", choose).await;
    lin.writes("freshly sent").await;
    tab.until(&shows("#mails", "freshly sent")).await;
    assert_eq!(tab.eval(TYPED).await, json!([true, "box", "ceo"]));
    let write = "const it = document.querySelector('input[name=subject]'); it.focus(); \
                 it.value = 'half'";
    look(&tab, "/mail?show=write", write).await;
    let many = "return document.querySelector('#boxes').textContent.includes('Sent 3')";
    lin.writes("another").await;
    tab.until(many).await;
    assert_eq!(tab.eval(TYPED).await, json!([true, "subject", "half"]));
    look(&tab, "/mail?show=contracts", "").await;
    assert_eq!(ceo.step(&contract, "accepted").await.status, 200);
    tab.until(&shows("#mails", "accepted")).await;
    let note = "document.querySelector('details.act').open = true; \
                const it = document.querySelector('input[name=note]'); it.focus(); \
                it.value = 'half'";
    look(&tab, &format!("/contracts/{contract}"), note).await;
    assert_eq!(ceo.step(&contract, "in_progress").await.status, 200);
    tab.until(&shows("#states .here", "in_progress")).await;
    assert_eq!(tab.eval(TYPED).await, json!([true, "note", "half"]));
    assert_eq!(tab.eval("return document.querySelector('details.act').open").await, true);
    look(&tab, "/memory", TYPES).await;
    lin.keeps("lin", "Lin wants it short.").await;
    tab.until(&shows("#memories", "Lin wants it short.")).await;
    assert_eq!(tab.eval(TYPED).await, json!([true, "q", "ha"]));
    look(&tab, "/rules", "").await;
    lin.settles().await;
    tab.until(&shows("#rules", "note")).await;
    assert_eq!(tab.eval("return window.same").await, true);
    look(&tab, "/audit", TYPES).await;
    lin.script("pa", json!([[["burn", {"to": "x"}]]])).await;
    tab.until(&shows("#entries tbody tr", "burn")).await;
    assert_eq!(tab.eval(TYPED).await, json!([true, "agent", "ha"]));
    look(&tab, "/org", "document.querySelector('#chart details').open = true").await;
    house.dismiss("payer").await;
    tab.until("return !document.querySelector('#tools thead').textContent.includes('payer')").await;
    let open = "return [window.same, document.querySelector('#chart details').open]";
    assert_eq!(tab.eval(open).await, json!([true, true]));
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_an_operators_settings_are_alive_and_what_answers_a_form_stays() {
    let house = house(On::Sqlite).await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let tab = Tab::open(&house.server).await;
    tab.be(&boss).await;
    let name = "document.querySelector('#tokens details').open = true; \
                const it = document.querySelector('#tokens input[name=name]'); it.focus(); \
                it.value = 'half'";
    look(&tab, "/settings", name).await;
    house.server.human("zoe").await;
    tab.until(&shows("#tokens tbody", "zoe")).await;
    assert_eq!(tab.eval(TYPED).await, json!([true, "name", "half"]));
    assert_eq!(tab.eval("return document.querySelector('#tokens details').open").await, true);
    // A secret is shown once: nothing may take it away.
    tab.click("//section[@id='tokens']//button[@class='primary']").await;
    tab.until("return document.querySelector('.made pre') !== null").await;
    let secret = tab.eval("return document.querySelector('.made pre').textContent").await;
    assert_eq!(tab.eval("return document.querySelector('[data-live][id]')").await, json!(null));
    house.server.human("yan").await;
    house.lin().await.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    tab.until("return document.querySelector('#badge').textContent === '1'").await;
    let still = tab.eval("return document.querySelector('.made pre').textContent").await;
    assert_eq!(still, secret);
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_list_that_somebody_is_in_waits_and_an_older_page_stays() {
    let (house, lin, tab) = at_home("lin").await;
    lin.writes("first").await;
    look(&tab, "/mail?box=board&show=sent", "document.querySelector('#mails a').focus()").await;
    lin.writes("second").await;
    tab.until("return !document.querySelector('#fresh').hidden").await;
    let rows = "return document.querySelectorAll('#mails tbody tr').length";
    assert_eq!(tab.eval(rows).await, 1);
    tab.eval("document.activeElement.blur()").await;
    tab.until(&format!("{rows} === 2")).await;
    // An older page is not alive: it is what it was.
    let seq = lin.get("/api/audit").await.json()["items"][0]["seq"].clone();
    tab.go(&format!("/audit?cursor={seq}")).await;
    assert_eq!(tab.eval("return document.querySelector('[data-live][id]')").await, json!(null));
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_what_happened_while_the_stream_was_lost_is_seen_when_it_is_back() {
    let (house, lin, tab) = at_home("lin").await;
    let refused = "const Real = window.EventSource; window.broken = true;
        window.EventSource = class extends Real {
            constructor(address) { super(window.broken ? '/nowhere' : address); }
        }";
    let params = json!({"source": refused});
    let body = json!({"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": params});
    tab.call("/goog/cdp/execute", body).await;
    tab.go("/memory").await;
    tab.until("return document.querySelector('#pulse').dataset.state === 'lost'").await;
    lin.keeps("lin", "Lin wants it short.").await;
    assert_eq!(tab.eval(&shows("#memories", "short")).await, false);
    tab.eval("window.same = true; window.broken = false").await;
    tab.until(&shows("#memories", "short")).await;
    assert_eq!(tab.eval("return window.same").await, true);
    house.close().await;
}
