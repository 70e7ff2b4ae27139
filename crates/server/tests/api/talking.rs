//! Commands in the console's talk, what waits above its composer, and who stands how in a room.

use serde_json::json;

use crate::console::{Browser, form_of};
use crate::harness::{Answer, Caller};
use crate::house::{House, On, on_both};
use crate::keys::at_home;
use crate::tab::{ENTER, ESCAPE};

on_both! {
    a_command_in_a_talk_is_obeyed_and_no_agent_reads_it;
    what_looks_like_a_command_is_not_sent_and_two_slashes_say_one;
    a_command_reaches_the_group_that_works_for_the_talk;
    a_talk_says_what_waits_beneath_it_and_how_members_stand;
    a_refused_form_leads_back_and_gives_back_what_was_typed;
}

const DOWN: &str = "\u{e015}";

/// What the system said last on a page.
fn told(page: &Answer) -> String {
    assert_eq!(page.status, 200, "{page:?}");
    let (_, rest) =
        page.text.split_once("class=\"said system\"").unwrap_or_else(|| panic!("{page:?}"));
    rest.split("</div></div>").next().unwrap().to_owned()
}

/// Begins a talk, and waits until its run waits.
async fn talk(lin: &Caller, browser: &Browser, text: &str) -> (String, String) {
    let begun = browser.fill("/chat", "/chat", &[("to", "agent:pa"), ("text", text)]).await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let runs = lin.get("/api/runs").await.json();
    // A group that it called may be there already, and newer.
    let all = runs["items"].as_array().unwrap();
    let own = all.iter().find(|it| it["parent_run_id"].is_null()).unwrap();
    let run = own["id"].as_str().unwrap().to_owned();
    lin.until(&run, "waiting").await;
    (begun.header("location").to_owned(), run)
}

async fn a_command_in_a_talk_is_obeyed_and_no_agent_reads_it(on: On) {
    let house = House::open(on).await;
    house.change("", "tools: {note: require_approval}\n").await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let calls = json!([[["note", {"to": "x"}], ["note", {"to": "y"}], ["pay", {"to": "z"}]]]);
    let (thread, run) = talk(&lin, &browser, &calls.to_string()).await;
    let asked = lin.asked(&run).await;
    let id = |n: usize| asked[n]["id"].as_str().unwrap().to_owned();
    let say = async |text: &str| browser.fill(&thread, &thread, &[("text", text)]).await;
    let status = async || -> Vec<String> {
        let mut all = Vec::new();
        for n in 0..3 {
            let it = lin.get(&format!("/api/permissions/{}", id(n))).await.json();
            all.push(it["status"].as_str().unwrap().to_owned());
        }
        all
    };
    // Those that may be answered here can be picked, and the one that may not cannot.
    let page = browser.get(&thread).await.text;
    assert!(page.contains(&format!("data-text=\"/approve {}\"", id(0))), "{page}");
    assert!(!page.contains(&format!("data-text=\"/approve {}\"", id(2))));
    let said = told(&say("/status").await);
    assert!(said.contains(&format!("/approve {}", id(1))), "{said}");
    assert!(said.contains("its risk is high"), "{said}");
    assert!(told(&say("/why").await).contains("policy.yaml"));
    for verb in ["approve", "deny"] {
        let said = told(&say(&format!("/{verb} {}", id(2))).await);
        assert!(said.contains("Not decided in a talk: its risk is high."), "{said}");
        assert!(said.contains(&format!("href=\"/inbox/{}\"", id(2))), "{said}");
    }
    assert!(told(&say("/approve all").await).contains("written exactly like this"));
    assert_eq!(status().await, ["pending"; 3]);
    assert!(told(&say(&format!("/approve {}\nthanks", id(0))).await).contains("Approved:"));
    assert!(told(&say(&format!("/deny {} not this", id(1))).await).contains("Denied:"));
    assert_eq!(status().await, ["granted", "denied", "pending"]);
    let late = told(&say(&format!("/approve {}", id(1))).await);
    assert!(late.contains("Nothing was done:") && late.contains("denied"), "{late}");
    // Somebody else's question is not there, in anybody's talk.
    let mei = Browser::of(&house.server, "mei").await;
    let asks = [("to", "agent:pa"), ("text", &*format!("/approve {}", id(2)))];
    assert!(told(&mei.fill("/chat", "/chat", &asks).await).contains("there is no permission"));
    lin.deny(&asked[2]).await;
    lin.until(&run, "completed").await;
    assert!(!lin.kinds(&run).await.contains(&"message.user".to_owned()));
    assert_eq!(house.ledger(), ["note x"]);
    // What the system said is not kept.
    assert!(!browser.get(&thread).await.text.contains("said system"));
    house.close().await;
}

async fn what_looks_like_a_command_is_not_sent_and_two_slashes_say_one(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let wish = json!({"content": "Short, please.", "type": "core", "scope": {"user": "lin"}});
    let memory = lin.post("/api/memories", &wish).await.json();
    let begin = [("to", "agent:pa"), ("text", "/aprove all")];
    let said = told(&browser.fill("/chat", "/chat", &begin).await);
    assert!(said.contains("nothing was sent") && said.contains("/wrapup"), "{said}");
    assert_eq!(lin.get("/api/runs").await.json()["items"], json!([]));
    let waits = json!([[["wait_for_signal", {"correlation_key": "go"}]]]).to_string();
    let (thread, run) = talk(&lin, &browser, &waits).await;
    let say = async |text: &str| browser.fill(&thread, &thread, &[("text", text)]).await;
    assert!(told(&say("/Status").await).contains("There is no such command"));
    assert!(told(&say("/room hello").await).contains("nobody works for this thread"));
    let forget = format!("/forget {}", memory["id"].as_str().unwrap());
    assert!(told(&say(&forget).await).contains("Forgotten:"));
    assert_eq!(lin.get("/api/memories").await.json()["items"], json!([]));
    assert!(!lin.kinds(&run).await.contains(&"message.user".to_owned()));
    for (text, heard) in [("//status", "/status"), ("/etc/passwd is gone", "/etc/passwd is gone")] {
        assert_eq!(say(text).await.status, 303);
        let events = lin.get(&format!("/api/runs/{run}/events")).await.json();
        let words =
            events["items"].as_array().unwrap().iter().rfind(|it| it["type"] == "message.user");
        assert_eq!(words.unwrap()["data"]["text"], heard);
    }
    let zh = say("/lang zh").await;
    assert_eq!((zh.status, zh.header("location")), (303, &*thread));
    assert!(zh.header("set-cookie").starts_with("chancery_language=zh;"), "{zh:?}");
    house.close().await;
}

async fn a_command_reaches_the_group_that_works_for_the_talk(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let waits = json!({"calls": [[["wait_for_signal", {"correlation_key": "go"}]]], "say": "paid"});
    let goal = json!({"group_id": "grp_pay", "goal": json!({"payer": waits}).to_string()});
    let script = json!([[["escalate_to_group", goal]]]).to_string();
    let (thread, run) = talk(&lin, &browser, &script).await;
    let page = lin.get(&format!("/api/runs?parent={run}")).await.json();
    let group = page["items"][0]["id"].as_str().unwrap().to_owned();
    lin.until(&group, "waiting").await;
    let say = async |text: &str| browser.fill(&thread, &thread, &[("text", text)]).await;
    let spoken = say("/room use canary\nten percent").await;
    assert_eq!((spoken.status, spoken.header("location")), (303, &*thread), "{spoken:?}");
    assert!(browser.get(&thread).await.text.contains("use canary\nten percent"));
    let paused = told(&say("/pause").await);
    assert!(paused.contains(&format!("<a href=\"/runs/{group}\">grp_pay</a> rests")), "{paused}");
    let closing = told(&say("/wrapup").await);
    assert!(closing.contains("grp_pay</a> comes to an end"), "{closing}");
    let kinds = lin.kinds(&group).await;
    let steered = ["message.user", "pause.requested", "wrapup.requested"];
    let found: Vec<&String> = kinds.iter().filter(|it| steered.contains(&&***it)).collect();
    assert_eq!(found, steered);
    house.close().await;
}

async fn a_talk_says_what_waits_beneath_it_and_how_members_stand(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let lines = json!({
        "payer": {"say": "you pay"},
        "narrow": {"calls": [[["pay", {"to": "mei"}]]], "say": "paid"},
    });
    let goal = json!({"group_id": "grp_pay", "goal": lines.to_string()});
    let (thread, run) =
        talk(&lin, &browser, &json!([[["escalate_to_group", goal]]]).to_string()).await;
    let page = lin.get(&format!("/api/runs?parent={run}")).await.json();
    let group = page["items"][0]["id"].as_str().unwrap().to_owned();
    let asked = lin.asked_anew(&group).await;
    let seated = |page: &str| -> Vec<String> {
        let list =
            page.split_once("<ul class=\"members\"").unwrap().1.split("</ul>").next().unwrap();
        let members = list.split("<li class=\"").skip(1);
        members.map(|it| it.split('"').next().unwrap().to_owned()).collect()
    };
    let page = browser.get(&thread).await.text;
    assert_eq!(seated(&page), ["spoken", "waits"]);
    let dock = page.split_once("<p class=\"dock\">").unwrap().1.split("</p>").next().unwrap();
    let message = asked[0]["message_id"].as_str().unwrap();
    for part in ["1 permission waiting:", &format!("href=\"#card-{message}\""), ">pay<", ">HIGH<"] {
        assert!(dock.contains(part), "{part}: {dock}");
    }
    assert!(page.contains(&format!("id=\"card-{message}\"")), "the link leads to it");
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    let page = browser.get(&thread).await.text;
    assert_eq!(seated(&page), ["spoken", "spoken"]);
    assert!(!page.contains("class=\"dock\""));
    house.close().await;
}

async fn a_refused_form_leads_back_and_gives_back_what_was_typed(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let words = format!("{}\n<b>for the record</b>", "why ".repeat(30));
    let refused = |answer: &Answer, status: u16, back: &str| {
        assert_eq!(answer.status, status, "{answer:?}");
        let page = &answer.text;
        assert!(page.contains(&format!("<a class=\"button primary\" href=\"{back}\">")), "{page}");
        assert!(page.contains("id=\"rooms\"") && page.contains("data-person=\"lin\""), "{page}");
    };
    let typed = |answer: &Answer| {
        let escaped = words.replace('<', "&#60;").replace('>', "&#62;");
        let field = format!("<textarea rows=\"6\" readonly>{escaped}</textarea>");
        assert!(answer.text.contains(&field), "{answer:?}");
    };
    // A mark of another visit.
    let act = format!("/runs/{run}/act");
    let stale = [("csrf", "0"), ("act", "speak"), ("text", &*words), ("back", "/chat/talk-1")];
    let answer = browser.post(&act, &stale).await;
    refused(&answer, 403, "/chat/talk-1");
    typed(&answer);
    // Nobody is led to another site.
    let mark = browser.mark("/inbox").await;
    let away = [("csrf", &*mark), ("act", "explode"), ("back", "//evil.example")];
    let answer = browser.post(&act, &away).await;
    refused(&answer, 404, &format!("/runs/{run}"));
    assert!(!answer.text.contains("evil.example"), "{answer:?}");
    // A second answer: who gave the first, and when.
    let id = asked[0]["id"].as_str().unwrap();
    let page = format!("/inbox/{id}");
    let answers = browser.get(&page).await.text;
    let form = form_of(&answers, &format!("{page}/decide"));
    assert_eq!(lin.deny(&asked[0]).await.status, 200);
    let mut fields: Vec<(&str, &str)> = form.iter().map(|it| (&*it.0, &*it.1)).collect();
    fields.extend([("decision", "grant"), ("confirmed", "yes"), ("comment", &*words)]);
    let answer = browser.post(&format!("{page}/decide"), &fields).await;
    refused(&answer, 409, &page);
    typed(&answer);
    let decided = lin.get(&format!("/api/permissions/{id}")).await.json();
    let day = decided["decided_at"].as_str().unwrap().split('.').next().unwrap();
    assert!(answer.text.contains("denied, by lin at "), "{answer:?}");
    assert!(answer.text.contains(day.trim_end_matches('Z')), "{day}: {answer:?}");
    // A page that is not there, for somebody who is signed in, and for a stranger.
    let nowhere = browser.get("/nowhere").await;
    assert!(nowhere.status == 404 && nowhere.text.contains("id=\"rooms\""), "{nowhere:?}");
    let stranger = Browser::at(&house.server).get("/nowhere").await;
    assert!(stranger.status == 404 && !stranger.text.contains("id=\"rooms\""), "{stranger:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_commands_are_listed_while_one_is_typed_and_the_focus_stays() {
    let (house, lin, tab) = at_home().await;
    tab.go("/chat").await;
    let script = json!([[["note", {"to": "x"}]]]).to_string();
    tab.fill("//form[@class='stack']//textarea", &script).await;
    tab.press(ENTER).await;
    tab.until("return document.querySelector('#dock a') !== null").await;
    let listed = "return [...document.querySelectorAll('#commands li')]
        .filter((it) => it.checkVisibility()).map((it) => it.dataset.text)";
    assert_eq!(tab.eval(listed).await, json!([]));
    tab.eval("document.querySelector('#text').focus()").await;
    tab.press("/w").await;
    assert_eq!(tab.eval(listed).await, json!(["/why ", "/wrapup"]));
    let axe = std::fs::read_to_string(chancery_testkit::mcp_servers::axe().unwrap()).unwrap();
    assert_eq!(tab.axe(&axe).await, json!([]));
    // Nothing is chosen on arrival; what the arrow keys choose is put into the field, not sent.
    tab.press(DOWN).await;
    tab.press(DOWN).await;
    let chosen = "const it = document.activeElement;
        return [it.id, it.getAttribute('aria-activedescendant'), it.value]";
    assert_eq!(tab.eval(chosen).await, json!(["text", "command-wrapup", "/w"]));
    tab.press(ENTER).await;
    assert_eq!(tab.eval(chosen).await, json!(["text", null, "/wrapup"]));
    tab.press(ESCAPE).await;
    assert_eq!(tab.eval(listed).await, json!([]));
    // An input method that composes is left alone.
    tab.eval(
        "const it = document.activeElement; it.value = '/s';
        it.dispatchEvent(new InputEvent('input', {bubbles: true, isComposing: true}))",
    )
    .await;
    assert_eq!(tab.eval(listed).await, json!([]));
    tab.eval("document.activeElement.dispatchEvent(new CompositionEvent('compositionend', {bubbles: true}))").await;
    assert_eq!(tab.eval(listed).await, json!(["/status"]));
    // The answer is a line of the system's, on the same page, and stays while the talk goes on.
    tab.eval("window.same = true").await;
    tab.press("tatus").await;
    tab.press(ENTER).await;
    tab.until("return document.querySelectorAll('#log .said.system').length === 1").await;
    let asked = lin.get("/api/permissions?status=pending").await.json();
    let id = asked["items"][0]["id"].as_str().unwrap().to_owned();
    tab.press("/approve").await;
    tab.press(DOWN).await;
    tab.press(ENTER).await;
    assert_eq!(tab.eval("return document.activeElement.value").await, format!("/approve {id}"));
    tab.press(ENTER).await;
    tab.until("return document.querySelector('#log').innerText.includes('done')").await;
    let shown = "return [window.same, document.activeElement.id, document.activeElement.value,
        document.querySelectorAll('#log .said.system').length, document.querySelector('#dock a')]";
    assert_eq!(tab.eval(shown).await, json!([true, "text", "", 2, null]));
    // What was said after it stands after it.
    let order = "return [...document.querySelectorAll('#log > .said')]
        .slice(0, 4).map((it) => it.classList[1]).join(' ')";
    let order = tab.eval(order).await;
    assert!(
        order == "person agent system agent" || order == "person agent system system",
        "{order}"
    );
    tab.width(320).await;
    tab.press("/").await;
    let wide = "return document.documentElement.scrollWidth <= 320";
    assert_eq!(tab.eval(wide).await, true);
    // Another language is another page.
    tab.press("lang zh").await;
    tab.press(ENTER).await;
    tab.until("return document.documentElement.lang === 'zh-Hans'").await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}
