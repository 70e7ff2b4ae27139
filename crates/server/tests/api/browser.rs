//! The console in a real browser: Debian's Chromium, driven over the WebDriver protocol. Every
//! page is loaded in both languages and both lights; then the stories that need hands.

use std::time::Instant;

use chancery_testkit::mcp_servers;
use serde_json::json;

use crate::console::Browser;
use crate::house::{House, On};
use crate::lived_in::{OPERATORS, lived_in};
use crate::tab::{SOON, Tab};

#[tokio::test(flavor = "multi_thread")]
async fn heavy_every_page_is_sound_in_both_languages_and_lights() {
    let axe = std::fs::read_to_string(mcp_servers::axe().unwrap()).unwrap();
    let (house, pages) = lived_in().await;
    let browser = Browser::of(&house.server, "lin").await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let tab = Tab::open(&house.server).await;
    tab.be(&browser).await;
    let mut wrong = Vec::new();
    let mut paints = Vec::new();
    for (language, theme) in [("en", "light"), ("zh", "dark"), ("en", "dark"), ("zh", "light")] {
        tab.cookie(&format!("chancery_language={language}")).await;
        tab.cookie(&format!("chancery_theme={theme}")).await;
        let own = pages.iter().map(|it| (&browser, it.as_str()));
        let operators = OPERATORS.iter().map(|it| (&boss, *it));
        let mut who = "";
        for (whose, page) in own.chain(operators) {
            if who != whose.cookie {
                tab.be(whose).await;
                who = &whose.cookie;
            }
            tab.width(1280).await;
            tab.go(page).await;
            paints.extend(tab.eval(PAINT).await.as_f64().map(|it| (it, page.to_owned())));
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
            // That a page is not there, or no longer, is what the browser is told.
            let gone = |it: &&String| it.contains("/nowhere") || it.contains("/setup?key=0");
            let own = complaints.iter().filter(|it| !gone(it));
            wrong.extend(own.map(|it| format!("{of}: {it}")));
        }
    }
    paints.sort_by(|a, b| a.0.total_cmp(&b.0));
    // A figure, not a promise: machines differ. The bar is 300 ms.
    if let (Some(middle), Some(last)) = (paints.get(paints.len() / 2), paints.last()) {
        let n = paints.len();
        eprintln!("first contentful paint of {n} loads: p50 {:.0} ms, longest {last:?}", middle.0);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    house.close().await;
}

const PAINT: &str = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime";

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_draft_is_written_tried_and_put_in_force() {
    let axe = std::fs::read_to_string(mcp_servers::axe().unwrap()).unwrap();
    let house = House::open(On::Sqlite).await;
    let lin = house.lin().await;
    let run = lin.script("pa", json!([[["note", {"to": "a"}]]])).await;
    lin.until(&run, "completed").await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let tab = Tab::open(&house.server).await;
    tab.be(&boss).await;
    tab.go("/org").await;
    tab.click("//a[@href='/org/draft']").await;
    tab.until("return document.querySelector('textarea[name=\"file:policy.yaml\"]') !== null")
        .await;
    let text = "risk: {low: require_approval}\n";
    tab.fill("//textarea[@name='file:policy.yaml']", text).await;
    // What was written in one file is there after a look at another.
    tab.click("//button[@value='groups.yaml']").await;
    tab.until("return document.querySelector('textarea').name === 'file:groups.yaml'").await;
    tab.click("//button[@value='policy.yaml']").await;
    tab.until("return document.querySelector('textarea').name === 'file:policy.yaml'").await;
    let kept = tab.eval("return document.querySelector('textarea').value").await;
    assert_eq!(kept, text);
    tab.click("//button[@value='check']").await;
    tab.until("return document.querySelector('#impact tbody tr') !== null").await;
    assert_eq!(tab.axe(&axe).await, json!([]));
    tab.width(320).await;
    let wide = tab.eval("return document.documentElement.scrollWidth").await;
    assert!(wide.as_u64() <= Some(320), "{wide} wide at 320");
    tab.width(1280).await;
    tab.click("//button[@value='apply']").await;
    tab.until("return location.pathname === '/org'").await;
    let (run, _) = lin.asking("pa", json!([[["note", {"to": "b"}]]])).await;
    assert_eq!(lin.get(&format!("/api/runs/{run}")).await.json()["waiting_for"], "permission");
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_card_appears_while_one_looks_and_is_approved_by_keys_alone() {
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
    tab.tab_to("it.matches('[data-call]')").await;
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
