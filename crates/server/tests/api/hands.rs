//! What is under somebody's hands stays there: cards, focus, typed words, and what was pressed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::Caller;
use crate::house::{House, On};
use crate::keys::at_home;
use crate::tab::{ENTER, Tab};

pub const PULSE: &str = "return document.querySelector('#pulse')?.dataset.state === 'on'";
/// A card that has just come takes no answer.
const GROWN: &str = "return performance.now() > 1200";
/// Longer than a page takes that is asked for again, or a call that has just moved.
const A_MOMENT: Duration = Duration::from_millis(800);
/// From now on what is posted takes its time, and is counted.
const SLOWLY: &str = "const real = window.fetch;
    window.posted = 0;
    window.fetch = async (address, options) => {
        if (options?.method === 'POST') {
            window.posted += 1;
            await new Promise((done) => setTimeout(done, 600));
        }
        return real(address, options);
    }";

/// The inbox, with the focus on the first call, once it takes answers.
async fn on_a_call(tab: &Tab) {
    tab.go("/inbox").await;
    tab.until(PULSE).await;
    tab.tab_to("it.matches('[data-call]')").await;
    tab.until(GROWN).await;
}

async fn status(lin: &Caller, permission: &Value) -> Value {
    let path = format!("/api/permissions/{}", permission["id"].as_str().unwrap());
    lin.get(&path).await.json()["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_an_open_card_stays_while_a_riskier_one_comes() {
    let (house, lin, tab) = at_home().await;
    let (_, first) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    on_a_call(&tab).await;
    tab.press("d").await;
    tab.until("return document.activeElement.matches('#open input[name=comment]')").await;
    tab.press("not that").await;
    let (_, second) = lin.asking("pa", json!([[["pay", {"to": "y"}]]])).await;
    tab.until("return document.querySelectorAll('#rows .row').length === 2").await;
    let here = "const it = document.activeElement;
        return [it.name, it.value, document.querySelector('#open h2').innerText,
            document.querySelector('#rows [aria-current] .tool').innerText]";
    assert_eq!(tab.eval(here).await, json!(["comment", "not that", "note", "note"]));
    // Nor does it go when it was answered elsewhere while somebody is at it.
    assert_eq!(lin.deny(&first[0]).await.status, 200);
    tab.until("return document.querySelector('#open .call.denied') !== null").await;
    let here = "return document.querySelector('#open h2').innerText";
    assert_eq!(tab.eval(here).await, "note");
    lin.asking("pa", json!([[["note", {"to": "z"}]]])).await;
    tab.until("return document.querySelectorAll('#rows .row').length === 2").await;
    assert_eq!(tab.eval(here).await, "note");
    assert_eq!(status(&lin, &second[0]).await, "pending");
    // Once nobody is, what is most urgent is shown again.
    tab.eval("document.activeElement.blur()").await;
    lin.asking("pa", json!([[["note", {"to": "w"}]]])).await;
    tab.until("return document.querySelector('#open h2').innerText === 'pay'").await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_g_and_a_letter_lead_away_from_a_call_and_answer_nothing() {
    let (house, lin, tab) = at_home().await;
    let (_, asked) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    for (keys, room) in [("ga", "/audit"), ("gr", "/runs")] {
        on_a_call(&tab).await;
        tab.press(keys).await;
        tab.until(&format!("return location.pathname === '{room}'")).await;
    }
    // A letter that leads nowhere does nothing else either.
    on_a_call(&tab).await;
    tab.press("gd").await;
    assert_eq!(tab.eval("return document.querySelector('details.act[open]') === null").await, true);
    tab.press("d").await;
    tab.until("return document.activeElement.matches('input[name=comment]')").await;
    assert_eq!(status(&lin, &asked[0]).await, "pending");
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_stream_that_was_refused_is_opened_again() {
    let (house, lin, tab) = at_home().await;
    let refused = "const Real = window.EventSource; let opened = 0;
        window.EventSource = class extends Real {
            constructor(address) { super(opened++ === 0 ? '/nowhere' : address); }
        }";
    let params = json!({"source": refused});
    let body = json!({"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": params});
    tab.call("/goog/cdp/execute", body).await;
    tab.go("/inbox").await;
    tab.until("return document.querySelector('#pulse').dataset.state === 'lost'").await;
    tab.until(PULSE).await;
    lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    tab.until("return document.querySelectorAll('#rows .row').length === 1").await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_the_skip_link_leaves_what_was_typed() {
    let (house, lin, tab) = at_home().await;
    lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    on_a_call(&tab).await;
    tab.press("d").await;
    tab.until("return document.activeElement.matches('input[name=comment]')").await;
    tab.press("not that").await;
    tab.eval("window.same = true; document.querySelector('.skip').focus()").await;
    tab.press(ENTER).await;
    tab.until("return location.hash === '#main'").await;
    let here = "return [window.same ?? null, document.activeElement.id,
        document.querySelector('input[name=comment]').value]";
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(tab.eval(here).await, json!([true, "main", "not that"]));
    tab.eval("history.back()").await;
    tab.until("return location.hash === ''").await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(tab.eval("return window.same ?? null").await, true);
    // Another page of the history is read anew.
    tab.eval("document.querySelector('[data-key=a]').click()").await;
    tab.until("return location.pathname.startsWith('/inbox/perm_')").await;
    tab.eval("history.back()").await;
    tab.until("return location.pathname === '/inbox' && window.same === undefined").await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_after_an_answer_by_keys_the_next_call_has_the_focus_and_then_the_list() {
    let (house, lin, tab) = at_home().await;
    let batch = json!([[["pay", {"to": "x"}], ["note", {"to": "y"}], ["note", {"to": "z"}]]]);
    let (_, asked) = lin.asking("pa", batch).await;
    let (_, other) = lin.asking("payer", json!([[["note", {"to": "o"}]]])).await;
    let on = |to: &str| {
        format!(
            "const it = document.activeElement;
             return it.matches('[data-call]') && it.querySelector('.value').innerText === '{to}'"
        )
    };
    on_a_call(&tab).await;
    tab.until(&on("x")).await;
    tab.press("A").await;
    tab.until("return document.activeElement.matches('details.strong textarea')").await;
    tab.press("right").await;
    tab.tab_to("it.matches('input[name=confirmed]')").await;
    tab.press(" ").await;
    tab.tab_to("it.matches('details.strong button')").await;
    tab.press(ENTER).await;
    tab.until(&on("y")).await;
    // The same key once more, by mistake, is not an answer to the next one.
    tab.press("a").await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(status(&lin, &asked[1]).await, "pending");
    tab.press("a").await;
    tab.until(&on("z")).await;
    tokio::time::sleep(A_MOMENT).await;
    tab.press("d").await;
    tab.until("return document.activeElement.matches('input[name=comment]')").await;
    tab.press("no").await;
    tab.press(ENTER).await;
    tab.until("return document.activeElement.matches('#rows a.row')").await;
    let mut answers = Vec::new();
    for it in asked.iter().chain(&other) {
        answers.push(status(&lin, it).await);
    }
    assert_eq!(answers, ["granted", "granted", "denied", "pending"]);
    // Where nothing else waits, it is the head of the card.
    tab.press(ENTER).await;
    tab.until("return document.querySelector('#open .value')?.innerText === 'o'").await;
    tab.tab_to("it.matches('[data-call]')").await;
    tab.until(GROWN).await;
    tab.press("a").await;
    tab.until("return document.activeElement.matches('.card-head')").await;
    // It stays there when the page is refreshed.
    lin.asking("pa", json!([[["note", {"to": "new"}]]])).await;
    tab.until("return document.querySelectorAll('#rows .row').length === 1").await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(tab.eval("return document.activeElement.matches('.card-head')").await, true);
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_an_answer_takes_no_focus_from_a_field_that_is_typed_in() {
    let (house, lin, tab) = at_home().await;
    let batch = json!([[["note", {"to": "x"}], ["note", {"to": "y"}], ["note", {"to": "z"}]]]);
    let (_, asked) = lin.asking("pa", batch).await;
    on_a_call(&tab).await;
    tab.eval(SLOWLY).await;
    tab.press("a").await;
    tab.eval(
        "const last = [...document.querySelectorAll('[data-key=d]')].pop();
         last.open = true; last.querySelector('input[name=comment]').focus()",
    )
    .await;
    tab.press("aad").await;
    lin.permission_until(&asked[0], "granted").await;
    tab.until("return document.querySelectorAll('[data-call]').length === 2").await;
    tokio::time::sleep(A_MOMENT).await;
    tab.press("dea").await;
    let here = "const it = document.activeElement; return [it.name ?? null, it.value ?? null]";
    assert_eq!(tab.eval(here).await, json!(["comment", "aaddea"]));
    assert_eq!(status(&lin, &asked[1]).await, "pending");
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_enter_pressed_twice_or_held_sends_once() {
    let (house, lin, tab) = at_home().await;
    let body = json!({"agent": "pa", "input": "[]", "session_key": "talk"});
    let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "completed").await;
    tab.go("/chat/talk").await;
    tab.until(PULSE).await;
    tab.eval(SLOWLY).await;
    tab.eval("document.querySelector('#text').focus()").await;
    tab.press("once").await;
    // A key that is still down from before sends nothing.
    let held = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown',
        {key: 'Enter', repeat: true, bubbles: true, cancelable: true}));
        return window.posted";
    assert_eq!(tab.eval(held).await, 0);
    tab.press(&format!("{ENTER}{ENTER}")).await;
    tab.press(ENTER).await;
    tab.until("return document.querySelector('#text').value === ''").await;
    let said = "return [...document.querySelectorAll('.said.person .text')]
        .filter((it) => it.innerText === 'once').length";
    tab.until(&said.replace("length", "length > 0")).await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(
        (tab.eval("return window.posted").await, tab.eval(said).await),
        (1.into(), 1.into())
    );
    // What was sent does not keep the next from being sent.
    tab.press("twice").await;
    tab.press(ENTER).await;
    tab.until("return window.posted === 2").await;
    // Where a form leads to another page it is the same.
    let threads = "return document.querySelectorAll('#threads .row').length";
    tab.go("/chat").await;
    let before = tab.eval(threads).await.as_u64().unwrap();
    tab.eval("document.querySelector('textarea[data-enter]').focus()").await;
    tab.press(&format!("[]{ENTER}{ENTER}{ENTER}")).await;
    tab.until("return location.pathname.startsWith('/chat/')").await;
    tokio::time::sleep(A_MOMENT).await;
    tab.go("/chat").await;
    assert_eq!(tab.eval(threads).await, before + 1);
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_draft_that_was_changed_after_the_check_cannot_be_put_in_force() {
    let house = House::open(On::Sqlite).await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let tab = Tab::open(&house.server).await;
    tab.be(&boss).await;
    tab.go("/org/draft?file=policy.yaml").await;
    let field = "//textarea[@name='file:policy.yaml']";
    let checked = "risk: {low: require_approval}\n";
    tab.fill(field, checked).await;
    tab.click("//button[@value='check']").await;
    tab.until("return document.querySelector('button[value=apply]') !== null").await;
    let state = "const it = document.querySelector('button[value=apply]');
        return [it.disabled, it.title !== '', document.querySelector('#stale') !== null]";
    assert_eq!(tab.eval(state).await, json!([false, false, false]));
    tab.fill(field, "risk: {low: deny}\n").await;
    assert_eq!(tab.eval(state).await, json!([true, true, true]));
    // What was checked may be put in force once it is what is there.
    tab.fill(field, checked).await;
    assert_eq!(tab.eval(state).await, json!([false, false, false]));
    tab.click("//button[@value='apply']").await;
    tab.until("return location.pathname === '/org'").await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_on_a_narrow_screen_a_tapped_row_leads_to_its_card() {
    let (house, lin, tab) = at_home().await;
    for to in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        lin.asking("pa", json!([[["note", {"to": to}]]])).await;
    }
    tab.width(360).await;
    tab.go("/inbox").await;
    assert_eq!(tab.eval("return window.scrollY").await, 0);
    tab.click("(//a[contains(@class,'row')])[3]").await;
    tab.until("return location.pathname.startsWith('/inbox/perm_')").await;
    let there = "const top = document.querySelector('#open .card').getBoundingClientRect().top;
        return top >= 0 && top < 60 && document.activeElement === document.body";
    tab.until(there).await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_that_high_risk_takes_another_key_can_be_seen() {
    let (house, lin, tab) = at_home().await;
    let (_, asked) = lin.asking("pa", json!([[["pay", {"to": "x"}]]])).await;
    on_a_call(&tab).await;
    tab.press("a").await;
    let seen = "return [...document.querySelectorAll('#say, #alert')].some((it) => {
        const box = it.getBoundingClientRect();
        return it.innerText.includes('Shift A') && box.width > 100 && box.height > 15;
    })";
    assert_eq!(tab.eval(seen).await, true);
    assert_eq!(status(&lin, &asked[0]).await, "pending");
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}
