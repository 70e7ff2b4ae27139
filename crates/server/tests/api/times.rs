//! Times are the reader's: in their zone and their language, and they go on by themselves. Those
//! without a script read how long ago it was when the page was drawn, and dates in UTC.

use std::collections::BTreeSet;

use serde_json::json;

use crate::console::Browser;
use crate::hands::PULSE;
use crate::house::{House, On, on_both};
use crate::keys::at_home;
use crate::tab::Tab;

on_both! {
    without_a_script_a_date_says_that_it_is_utc;
    what_goes_on_takes_longer_and_what_has_ended_does_not;
}

async fn without_a_script_a_date_says_that_it_is_utc(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}]]]).to_string();
    let body = json!({"agent": "pa", "input": batch, "session_key": "talk"});
    let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "waiting").await;
    let entry = lin.get("/api/audit").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let browser = Browser::of(&house.server, "lin").await;
    let mut said = BTreeSet::new();
    for page in ["/inbox", "/runs", "/chat/talk", "/audit", "/settings", &format!("/audit/{entry}")]
    {
        let text = browser.get(page).await.text;
        said.extend(text.split("<time ").skip(1).map(|it| shape(it.split("</time>").next())));
    }
    let expected = [
        "data-time=\"ago\" aria-live=\"off\">N s ago",
        "data-time=\"at\">N-N-N N:N UTC",
        "data-time=\"exact\">N-N-N N:N:N UTC",
        "data-time=\"hour\">N:N UTC",
        "data-time=\"left\" aria-live=\"off\">N h N min left",
        "data-time=\"taken\" data-before=\"N\" aria-live=\"off\">N s",
        "data-time=\"waited\" aria-live=\"off\">waiting N s",
    ];
    assert_eq!(said, expected.map(str::to_owned).into());
    house.close().await;
}

/// Those of a page that go on: what they say, without figures.
fn going(page: &str) -> Vec<String> {
    let times = page.split("<time ").skip(1).map(|it| shape(it.split("</time>").next()));
    times.filter(|it| it.contains("\"taken\"")).collect()
}

async fn what_goes_on_takes_longer_and_what_has_ended_does_not(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({
        "payer": {"say": "you pay"},
        "narrow": {"calls": [[["pay", {"to": "mei"}]]], "say": "paid"},
    });
    let goal = json!({"group_id": "grp_pay", "goal": lines.to_string()});
    let input = json!([[["escalate_to_group", goal]]]).to_string();
    let body = json!({"agent": "pa", "input": input, "session_key": "talk"});
    let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "waiting").await;
    let page = lin.get(&format!("/api/runs?parent={run}")).await.json();
    let group = page["items"][0]["id"].as_str().unwrap().to_owned();
    let asked = lin.asked_anew(&group).await;
    let browser = Browser::of(&house.server, "lin").await;
    let trace = format!("/runs/{run}");
    let going_in = async |page: &str| going(&browser.get(page).await.text);
    let one = "data-time=\"taken\" data-before=\"N\" aria-live=\"off\">N s";
    // The run; of its trace also its whole, the call, the group, the member's turn and the
    // question; the group's card in the talk.
    assert_eq!(going_in("/runs").await, [one]);
    assert_eq!(going_in("/chat/talk").await, [one]);
    let found = going_in(&trace).await;
    assert!(found.len() == 6 && found.iter().all(|it| it == one), "{found:?}");
    // Of the group's own trace also how long a person is waited for.
    assert_eq!(going_in(&format!("/runs/{group}")).await.len(), 5);
    // Pages that nobody is told on that a run has ended stand still.
    assert_eq!(going_in("/runs?before=run_ffffffffffffffffffffffffffffffff").await, [""; 0]);
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    for page in ["/runs", "/chat/talk", &trace] {
        assert_eq!(going_in(page).await, [""; 0], "{page}");
    }
    house.close().await;
}

/// A time without its figures.
fn shape(time: Option<&str>) -> String {
    let (_, rest) = time.unwrap().split_once("\" ").unwrap();
    let mut shape = String::new();
    for it in rest.replace("a moment", "0 s").chars() {
        match it.is_ascii_digit() {
            true if shape.ends_with('N') => {}
            true => shape.push('N'),
            false => shape.push(it),
        }
    }
    shape
}

/// The reader lives there, and the test moves their clock.
async fn live_in(tab: &Tab, zone: &str) {
    let clock = "const now = Date.now; window.later = 0; Date.now = () => now() + window.later;
        const every = window.setInterval; window.beats = {};
        window.setInterval = (then, pause) => { window.beats[pause] = then; return every(then, pause); }";
    for (cmd, params) in [
        ("Emulation.setTimezoneOverride", json!({"timezoneId": zone})),
        ("Page.addScriptToEvaluateOnNewDocument", json!({"source": clock})),
    ] {
        tab.call("/goog/cdp/execute", json!({"cmd": cmd, "params": params})).await;
    }
}

/// Keeps every text that was written into this part since, also for a moment.
fn kept(part: &str) -> String {
    format!(
        "window.texts = new Set(); const part = document.querySelector('{part}');
        new MutationObserver((all) => all.forEach(({{ type, target, addedNodes }}) => {{
            const written = type === 'characterData' ? [target] : target.matches('time') ? addedNodes : [];
            written.forEach(({{ data }}) => data.trim() && window.texts.add(data));
        }})).observe(part, {{subtree: true, childList: true, characterData: true}});"
    )
}

/// What a date says, what it should say to somebody in Shanghai, and what lies behind it.
const DATE: &str = "const it = document.querySelector('#visits time');
    const format = new Intl.DateTimeFormat(document.documentElement.lang,
        {dateStyle: 'medium', timeStyle: 'short', timeZone: 'Asia/Shanghai'});
    return [it.textContent, format.format(new Date(it.dateTime)), it.title]";

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_date_is_in_the_readers_zone_and_language_and_stays_so() {
    let (house, _, tab) = at_home().await;
    live_in(&tab, "Asia/Shanghai").await;
    for language in ["en", "zh"] {
        tab.cookie(&format!("chancery_language={language}")).await;
        tab.go("/settings").await;
        tab.until(PULSE).await;
        let shown = tab.eval(DATE).await;
        assert_eq!(shown[0], shown[1]);
        assert!(shown[2].as_str().unwrap().contains("GMT+8"), "{shown}");
        // A page that is drawn anew does not set back those that are there.
        tab.eval(&kept("#visits")).await;
        let rows = "document.querySelectorAll('#visits tbody tr').length";
        let before = tab.eval(&format!("return {rows}")).await.as_u64().unwrap();
        Browser::of(&house.server, "lin").await;
        tab.until(&format!("return {rows} === {}", before + 1)).await;
        let utc = "return [[...window.texts].filter((it) => it.includes('UTC')),
            document.querySelector('#main').innerText.includes('UTC')]";
        assert_eq!(tab.eval(utc).await, json!([[], false]));
    }
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_how_long_goes_on_by_itself_and_nobody_is_read_it() {
    let (house, lin, tab) = at_home().await;
    live_in(&tab, "Asia/Shanghai").await;
    for (language, texts) in [
        ("en", ["waiting 3 h", "20 h 59 min left", "waiting 5 h", "18 h 59 min left"]),
        ("zh", ["已等待 3 小时", "剩余 20 小时 59 分钟", "已等待 5 小时", "剩余 18 小时 59 分钟"]),
    ] {
        let (_, asked) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
        tab.cookie(&format!("chancery_language={language}")).await;
        tab.go("/inbox").await;
        tab.until(PULSE).await;
        let beat = "const row = document.querySelector('#rows .row');
            const say = document.querySelector('#say'); const said = say.textContent;
            window.times = [...row.querySelectorAll('time')];
            window.later = 3 * 3600 * 1000; window.beats[10000]();
            return [window.times.map((it) => it.textContent), say.textContent === said,
                window.times.every((it) => it.isConnected && it.ariaLive === 'off')]";
        let after = tab.eval(&format!("{} {beat}", kept("#rows"))).await;
        assert_eq!(after, json!([texts[..2], true, true]));
        // Nor does what is new set it back. Who comes back to a tab reads how it stands then.
        let (_, other) = lin.asking("pa", json!([[["note", {"to": "y"}]]])).await;
        tab.until("return document.querySelectorAll('#rows .row').length === 2").await;
        assert_eq!(tab.eval("return [...window.texts]").await, json!(texts[..2]));
        let back = "window.later = 5 * 3600 * 1000;
            document.dispatchEvent(new Event('visibilitychange'));
            return window.times.map((it) => it.textContent)";
        assert_eq!(tab.eval(back).await, json!(texts[2..]));
        for it in [&asked[0], &other[0]] {
            assert_eq!(lin.deny(it).await.status, 200);
        }
    }
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_how_long_a_run_takes_goes_on_until_it_ends() {
    let (house, lin, tab) = at_home().await;
    live_in(&tab, "Asia/Shanghai").await;
    for (language, texts) in [("en", ["3 h", "5 h"]), ("zh", ["3 小时", "5 小时"])] {
        let (run, asked) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
        tab.cookie(&format!("chancery_language={language}")).await;
        for page in ["/runs".to_owned(), format!("/runs/{run}")] {
            tab.go(&page).await;
            tab.until(PULSE).await;
            let beat = "const say = document.querySelector('#say'); const said = say.textContent;
                window.times = [...document.querySelectorAll('main time[data-time=taken]')];
                window.later = 3 * 3600 * 1000; window.beats[10000]();
                return [[...new Set(window.times.map((it) => it.textContent))], say.textContent === said,
                    window.times.every((it) => it.ariaLive === 'off')]";
            assert_eq!(tab.eval(beat).await, json!([[texts[0]], true, true]), "{page}");
            let back = "window.later = 5 * 3600 * 1000;
                document.dispatchEvent(new Event('visibilitychange'));
                return [...new Set(window.times.map((it) => it.textContent))]";
            assert_eq!(tab.eval(back).await, json!([texts[1]]), "{page}");
        }
        // It has ended, and stands still: what it took is said by the server alone.
        assert_eq!(lin.deny(&asked[0]).await.status, 200);
        lin.until(&run, "completed").await;
        tab.until("return document.querySelector('main time[data-time=taken]') === null").await;
    }
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}
