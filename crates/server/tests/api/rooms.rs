//! The other rooms of the console: each shows what the JSON routes know, and changes things
//! through them.

use chancery_testkit::fake_model::Behaviour;
use serde_json::json;

use crate::console::{Browser, form_of};
use crate::house::{House, On, on_both};

on_both! {
    a_trace_says_why_a_call_was_refused_and_for_whom_a_run_waits;
    a_run_above_says_for_whom_the_group_beneath_it_waits;
    a_thread_is_begun_and_gone_on_with;
    whoever_calls_in_a_room_is_named_though_it_says_nothing;
    a_run_is_steered_from_its_page;
    what_is_remembered_and_ruled_can_be_taken_back;
    a_token_is_shown_once_and_only_operators_make_one;
    what_signs_somebody_out_is_asked_first;
    a_cell_of_the_organisation_says_what_rules_it;
    the_audit_is_read_and_checked;
    what_is_somebody_elses_is_not_there;
    who_looks_is_told_when_something_waits;
    an_expired_question_can_be_asked_again_and_nothing_is_approved_by_that;
    only_what_is_alike_and_of_no_high_risk_is_answered_together;
    jumping_finds_what_its_own_page_would_show_and_no_more;
    what_has_an_id_is_jumped_to_by_it;
    a_run_is_exported_with_all_beneath_it;
    a_reader_of_chinese_reads_why_in_chinese_and_the_record_stays_english;
    a_model_is_tried_before_the_first_talk;
    a_reader_of_chinese_reads_no_bare_word_of_the_record;
}

async fn a_trace_says_why_a_call_was_refused_and_for_whom_a_run_waits(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let batch = json!([[["burn", {"to": "<i>"}]], [["pay", {"to": "b"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    let page = browser.get(&format!("/runs/{run}")).await.text;
    for part in [
        "PERMISSION_DENIED",
        "capabilities.arson",
        "policy.yaml:",
        "waits for a person",
        "class=\"person\"",
        "&lt;i&gt;",
        &format!("/inbox/{}", asked[0]["id"].as_str().unwrap()),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<i>"));
    let list = browser.get("/runs?status=waiting").await.text;
    assert!(list.contains(&run), "{list}");
    assert!(!browser.get("/runs?status=completed").await.text.contains(&run));
    house.close().await;
}

async fn a_run_above_says_for_whom_the_group_beneath_it_waits(on: On) {
    let house = House::open(on).await;
    house.change("", "tools: {note: require_approval}\n").await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let asks = json!({"payer": {"calls": [[["note", {"to": "a"}]]], "say": "done"},
        "narrow": {"say": "fine"}});
    let rests = json!({"payer": {"calls": [[["wait_for_signal", {"correlation_key": "k"}]]],
        "say": "done"}, "narrow": {"say": "fine"}});
    for (lines, class, word, zh) in [
        (asks, "waits-person", "which waits for a person", "等待小组，小组正等待人决定"),
        (rests, "waits-signal", "which waits for a signal", "等待小组，小组正等待信号"),
    ] {
        let goal = json!({"group_id": "grp_pay", "goal": lines.to_string()});
        let input = json!([[["escalate_to_group", goal]]]).to_string();
        let body = json!({"agent": "pa", "input": input, "session_key": class});
        let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
        let above = lin.until(&run, "waiting").await;
        let beneath = lin.get(&format!("/api/runs?parent={run}")).await.json()["items"][0].clone();
        let beneath = crate::harness::id(&beneath);
        lin.until(&beneath, "waiting").await;
        let said = format!("class=\"state waiting {class}\">waits for a group, {word}");
        for page in ["/runs".to_owned(), format!("/runs/{run}"), format!("/chat/{class}")] {
            let page = browser.get(&page).await.text;
            assert!(page.contains(&said), "{said}: {page}");
        }
        let cookie = format!("{}; chancery_language=zh", browser.cookie);
        let page = Browser::with(&house.server, cookie).get("/runs").await.text;
        assert!(page.contains(zh), "{page}");
        // The room itself waits for no group, and what programs read is as it was.
        let room = browser.get(&format!("/runs/{beneath}")).await.text;
        assert!(!room.contains("waits for a group, which"), "{room}");
        assert_eq!(above["waiting_for"], "child");
    }
    house.close().await;
}

async fn a_thread_is_begun_and_gone_on_with(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let home = browser.get("/").await;
    assert_eq!((home.status, home.header("location")), (303, "/chat"));
    let script = json!([[["pay", {"to": "a"}]]]).to_string();
    let begun = browser.fill("/chat", "/chat", &[("to", "agent:pa"), ("text", &script)]).await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let thread = begun.header("location").to_owned();
    let run = lin.get("/api/runs").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    lin.until(&run, "waiting").await;
    let page = browser.get(&thread).await.text;
    // Of high risk: it is decided where it is read in full.
    assert!(page.contains("class=\"card\"") && !page.contains("name=\"confirmed\""), "{page}");
    let spoken = browser.fill(&thread, &thread, &[("text", "be **quick** <b>")]).await;
    assert_eq!((spoken.status, spoken.header("location")), (303, &*thread), "{spoken:?}");
    let asked = lin.asked(&run).await;
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    let page = browser.get(&thread).await.text;
    assert!(page.contains("done be <strong>quick</strong> &lt;b&gt;"), "{page}");
    // What is said after the end begins the next run of the same thread.
    assert_eq!(browser.fill(&thread, &thread, &[("text", "[]")]).await.status, 303);
    let runs = lin.get("/api/runs").await.json();
    let keys: Vec<_> =
        runs["items"].as_array().unwrap().iter().map(|it| &it["session_key"]).collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{runs}");
    assert_eq!(
        browser.fill("/chat", "/chat", &[("to", "agent:nobody"), ("text", "x")]).await.status,
        400
    );
    house.close().await;
}

async fn whoever_calls_in_a_room_is_named_though_it_says_nothing(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let acts = |to: &str| json!({"calls": [[["note", {"to": to}]]], "say": "done"});
    let lines = json!({"payer": acts("a"), "narrow": acts("b")}).to_string();
    let begun = browser.fill("/chat", "/chat", &[("to", "group:grp_pay"), ("text", &lines)]).await;
    let run = lin.get("/api/runs").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    lin.until(&run, "completed").await;
    let page = browser.get(begun.header("location")).await.text;
    let drawn = page.split_once("class=\"room-said\"").unwrap().1;
    // A name stands after its mark, a tool after the rest of its tag.
    let marks = drawn.split("class=\"").filter_map(|it| {
        let (mark, rest) = it.split_once('"')?;
        let named = matches!(mark, "by" | "tool").then(|| rest.split_once('>'))??.1;
        named.split(['<', ' ']).next()
    });
    assert_eq!(marks.collect::<Vec<_>>(), ["payer", "note", "payer", "narrow", "note", "narrow"]);
    house.close().await;
}

async fn a_run_is_steered_from_its_page(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let (run, _) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let (page, act) = (format!("/runs/{run}"), format!("/runs/{run}/act"));
    let spoken = [("act", "speak"), ("text", "hurry")];
    assert_eq!(browser.fill(&page, &act, &spoken).await.status, 303);
    assert!(lin.kinds(&run).await.contains(&"message.user".to_owned()));
    assert_eq!(browser.fill(&page, &act, &[("act", "explode")]).await.status, 404);
    assert_eq!(browser.fill(&page, &act, &[("act", "cancel")]).await.status, 303);
    lin.until(&run, "cancelled").await;
    assert!(!browser.get(&page).await.text.contains("value=\"cancel\""));
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}

async fn what_is_remembered_and_ruled_can_be_taken_back(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    house.change("", "tools: {note: require_approval}\n").await;
    let (run, asked) = lin.asking("pa", json!([[["note", {"to": "a"}]]])).await;
    let page = format!("/inbox/{}", asked[0]["id"].as_str().unwrap());
    let remember = [("decision", "grant"), ("remember", "agent"), ("expires_after", "1h")];
    assert_eq!(browser.fill(&page, &format!("{page}/decide"), &remember).await.status, 303);
    lin.until(&run, "completed").await;
    let rule = lin.get("/api/rules").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    assert!(browser.get("/rules").await.text.contains("none yet"));
    // What it covers is not asked again, and that is counted.
    let again = lin.script("pa", json!([[["note", {"to": "a"}]]])).await;
    lin.until(&again, "completed").await;
    assert!(browser.get("/rules").await.text.contains("<td>1 · "));
    // It is offered less, and only less is done.
    let narrow = format!("/rules/{rule}/narrow");
    let page = browser.get("/rules").await.text;
    assert!(page.contains("<option value=\"run\">") && !page.contains("<option value=\"always\">"));
    assert!(!page.contains("<option value=\"1h\">"), "it holds for less than an hour more");
    let more = [("scope", "always"), ("expires_after", "")];
    assert_eq!(browser.fill("/rules", &narrow, &more).await.status, 409);
    let less = browser.fill("/rules", &narrow, &[("scope", "run"), ("expires_after", "5m")]).await;
    assert_eq!((less.status, less.header("location")), (303, &*format!("/rules?did={rule}")));
    let said = browser.get(less.header("location")).await.text;
    assert!(said.contains("holds for this run, 4 min"), "{said}");
    assert_eq!(lin.get(&format!("/api/rules/{rule}")).await.json()["scope"], "run");
    let revoke = format!("/rules/{rule}/revoke");
    let revoked = browser.fill("/rules", &revoke, &[]).await;
    let said = browser.get(revoked.header("location")).await.text;
    assert!(said.contains("Taken back: <code>note</code>"), "{said}");
    assert!(!lin.get("/api/rules").await.json()["items"][0]["revoked_at"].is_null());
    let wish = json!({"content": "Short, please.", "type": "core", "scope": {"user": "lin"}});
    let kept = lin.post("/api/memories", &wish).await.json();
    let forget = format!("/memory/{}/forget", kept["id"].as_str().unwrap());
    assert!(browser.get("/memory?q=short").await.text.contains("Short, please."));
    assert_eq!(browser.fill("/memory", &forget, &[]).await.status, 303);
    assert!(!browser.get("/memory").await.text.contains("Short, please."));
    house.close().await;
}

async fn a_token_is_shown_once_and_only_operators_make_one(on: On) {
    let house = House::open(on).await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let wanted = [("kind", "human"), ("name", "mei")];
    let form = form_of(&boss.get("/settings").await.text, "/settings/tokens");
    let form = form.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let form: Vec<(&str, &str)> = form.chain(wanted).collect();
    let sent = boss.post("/settings/tokens", &form).await;
    assert_eq!((sent.status, sent.header("location")), (303, "/settings/tokens/made#made"));
    let carried = sent.header("set-cookie").to_owned();
    for part in ["; Max-Age=60;", "; HttpOnly", "; SameSite=Strict"] {
        assert!(carried.contains(part), "{carried}");
    }
    let (pair, _) = carried.split_once(';').unwrap();
    let mut looks = boss.clone();
    looks.cookie = format!("{}; {pair}", boss.cookie);
    let made = looks.get("/settings/tokens/made").await;
    let secret = made.text.split("chy_").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert!(made.header("set-cookie").starts_with("chancery_made=;"), "{made:?}");
    assert_eq!(made.header("cache-control"), "no-store");
    // Loaded again, and sent again: it is not shown, and there is one token.
    let again = boss.get("/settings/tokens/made").await.text;
    assert!(again.contains("its secret was shown once") && !again.contains(&secret), "{again}");
    let twice = boss.post("/settings/tokens", &form).await;
    assert_eq!((twice.status, twice.header("set-cookie")), (303, ""), "{twice:?}");
    let all = house.server.operator().get("/api/tokens").await.json();
    let of_mei = all["items"].as_array().unwrap().iter().filter(|it| it["name"] == "mei");
    assert_eq!(of_mei.count(), 1);
    let audit = house.server.operator().get("/api/audit?kind=token.made").await.json();
    let of_mei = audit["items"].as_array().unwrap().iter().filter(|it| it["user"] == "mei");
    assert_eq!(of_mei.count(), 1, "{audit}");
    assert!(!boss.get("/settings").await.text.contains(&secret));
    let mut mei = Browser::at(&house.server);
    assert_eq!(mei.sign_in(&format!("chy_{secret}")).await.status, 303);
    let page = mei.get("/settings").await.text;
    assert!(!page.contains("/settings/tokens"), "{page}");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let forbidden = [("csrf", csrf), ("kind", "human"), ("name", "x"), ("operator", "yes")];
    assert_eq!(mei.post("/settings/tokens", &forbidden).await.status, 403);
    assert_eq!(mei.get("/audit/verify").await.status, 403);
    house.close().await;
}

async fn what_signs_somebody_out_is_asked_first(on: On) {
    let house = House::open(on).await;
    let wanted = json!({"kind": "human", "name": "boss", "operator": true});
    let token = house.server.operator().post("/api/tokens", &wanted).await.json();
    let mut boss = Browser::at(&house.server);
    boss.sign_in(token["token"].as_str().unwrap()).await;
    let mut other = Browser::at(&house.server);
    other.sign_in(token["token"].as_str().unwrap()).await;
    // The visit that asks: its row has the mark.
    let page = other.get("/settings").await.text;
    let row = page.split("<tr>").find(|it| it.contains("this one")).unwrap();
    let end = row.split_once("action=\"").unwrap().1.split('"').next().unwrap();
    let asked = other.fill("/settings", end, &[]).await;
    assert!(asked.status == 200 && asked.text.contains("you will be signed out"), "{asked:?}");
    assert_eq!(other.get("/inbox").await.status, 200);
    let sure = form_of(&asked.text, end);
    let sure: Vec<(&str, &str)> = sure.iter().map(|it| (&*it.0, &*it.1)).collect();
    let out = other.post(end, &sure).await;
    assert_eq!((out.status, out.header("location")), (303, "/signin"));
    assert_eq!(other.get("/inbox").await.status, 303);
    // The token that the visit stands on.
    let revoke = format!("/settings/tokens/{}/revoke", token["id"].as_str().unwrap());
    let asked = boss.fill("/settings", &revoke, &[]).await;
    assert!(asked.status == 200 && asked.text.contains("you will be signed out"), "{asked:?}");
    assert_eq!(boss.get("/inbox").await.status, 200);
    let sure = form_of(&asked.text, &revoke);
    let sure: Vec<(&str, &str)> = sure.iter().map(|it| (&*it.0, &*it.1)).collect();
    assert_eq!(boss.post(&revoke, &sure).await.status, 303);
    assert_eq!(boss.get("/inbox").await.status, 303);
    house.close().await;
}

async fn a_reader_of_chinese_reads_no_bare_word_of_the_record(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let run = lin.script("pa", json!([[["burn", {"to": "c"}]]])).await;
    lin.until(&run, "completed").await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    boss.cookie = format!("{}; chancery_language=zh", boss.cookie);
    let audit = boss.get("/audit").await.text;
    let rows = audit.split_once("<tbody data-hold>").unwrap().1.split("</tbody>").next().unwrap();
    for (chinese, wire) in
        [("裁定", ">ruling<"), ("令牌已创建", ">token.made<"), ("登录", ">sign_in<")]
    {
        assert!(rows.contains(chinese) && !rows.contains(wire), "{wire}: {rows}");
    }
    assert!(rows.contains("<td>系统</td>") && rows.contains("<td>智能体:pa</td>"), "{rows}");
    // What is chosen is still the word that the route knows.
    assert!(audit.contains("<option value=\"deny\">拒绝</option>"), "{audit}");
    let write = boss.get("/mail?show=write").await.text;
    assert!(write.contains("<option value=\"info\" selected>通知</option>"), "{write}");
    let settings = boss.get("/settings").await.text;
    assert!(settings.contains("<td>人员</td>") && !settings.contains("<td>human</td>"));
    house.close().await;
}

async fn a_cell_of_the_organisation_says_what_rules_it(on: On) {
    let house = House::open(on).await;
    let browser = Browser::of(&house.server, "lin").await;
    let page = browser.get("/org?agent=narrow&tool=deploy").await.text;
    for part in ["id=\"cell\"", "roles.yaml:", "ruling deny", "<svg class=\"chart\"", "Payroll"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(browser.get("/org?from=board&to=pa").await.text.contains("id=\"cell\""));
    let odd = browser.get("/org?agent=%3Cscript%3E&tool=%3Cscript%3E").await;
    assert!(odd.status == 200 && !odd.text.contains("<script>"), "{odd:?}");
    house.close().await;
}

async fn the_audit_is_read_and_checked(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let run = lin.script("pa", json!([[["burn", {"to": "c"}]]])).await;
    lin.until(&run, "completed").await;
    let denied = lin.get("/api/audit?ruling=deny").await.json();
    let entry = denied["items"][0]["id"].as_str().unwrap().to_owned();
    let list = browser.get("/audit?ruling=deny&agent=&tool=").await.text;
    assert!(list.contains(&entry), "{list}");
    let page = browser.get(&format!("/audit/{entry}")).await.text;
    assert!(
        page.contains("capabilities.arson") && page.contains("/org?agent=pa&#38;tool=burn"),
        "{page}"
    );
    let export = browser.get("/audit/export?ruling=deny").await;
    assert_eq!(export.header("content-type"), "application/x-ndjson");
    assert!(export.text.contains(&entry));
    assert_eq!(browser.get("/audit?ruling=perhaps").await.status, 400);
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    assert!(boss.get("/audit/verify").await.text.contains("The chain holds."));
    house.close().await;
}

async fn what_is_somebody_elses_is_not_there(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let mei = Browser::of(&house.server, "mei").await;
    for path in [format!("/runs/{run}"), format!("/inbox/{}", asked[0]["id"].as_str().unwrap())] {
        assert_eq!(mei.get(&path).await.status, 404, "{path}");
    }
    assert!(!mei.get("/inbox").await.text.contains("pay"));
    assert!(!mei.get("/runs").await.text.contains(&run));
    let csrf = mei.get("/inbox").await.text;
    let csrf = csrf.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let act = [("csrf", csrf), ("act", "cancel")];
    assert_eq!(mei.post(&format!("/runs/{run}/act"), &act).await.status, 404);
    assert_eq!(lin.get(&format!("/api/runs/{run}")).await.json()["status"], "waiting");
    house.close().await;
}

async fn who_looks_is_told_when_something_waits(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let stream = browser.request(reqwest::Method::GET, "/ui/events?watch=inbox");
    let mut stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let mut heard = String::new();
    let mut until = async |wanted: &str| {
        while !heard.contains(wanted) {
            let chunk = tokio::time::timeout(std::time::Duration::from_secs(20), stream.chunk());
            let chunk = chunk.await.unwrap().unwrap().unwrap();
            heard.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    until("event: stale\ndata: 0").await;
    let (_, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    until("event: stale\ndata: 1").await;
    lin.deny(&asked[0]).await;
    until("data: 1\n\nevent: stale\ndata: 0").await;
    // Strangers hear nothing.
    assert_ne!(Browser::at(&house.server).get("/ui/events").await.status, 200);
    house.close().await;
}

async fn an_expired_question_can_be_asked_again_and_nothing_is_approved_by_that(on: On) {
    let soon = json!({"expire_after": "300ms"});
    let house = House::with(on, |config| {
        config.permissions = serde_json::from_value(soon).unwrap();
    })
    .await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let input = json!([[["pay", {"to": "a"}]]]).to_string();
    let body = json!({"agent": "pa", "input": input, "session_key": "talk"});
    let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "completed").await;
    let asked = lin.get(&format!("/api/permissions?run={run}")).await.json()["items"][0].clone();
    assert_eq!(asked["status"], "expired");
    let id = asked["id"].as_str().unwrap();
    assert!(browser.get("/inbox?show=expired").await.text.contains(id));
    assert!(!browser.get("/inbox?show=decided").await.text.contains(id));
    let (page, again) = (format!("/inbox/{id}"), format!("/inbox/{id}/again"));
    let told = browser.fill(&page, &again, &[]).await;
    assert_eq!((told.status, told.header("location")), (303, "/chat/talk"));
    let runs = lin.get("/api/runs").await.json();
    let newest = &runs["items"][0];
    assert!(newest["input"].as_str().unwrap().contains("`pay` expired"), "{runs}");
    assert_eq!(house.ledger(), [""; 0]);
    // Somebody else's is not there, and what waits has not expired.
    let mei = Browser::of(&house.server, "mei").await;
    let csrf = mei.get("/inbox").await.text;
    let csrf = csrf.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(mei.post(&again, &[("csrf", csrf)]).await.status, 404);
    house.close().await;
}

async fn only_what_is_alike_and_of_no_high_risk_is_answered_together(on: On) {
    let house = House::open(on).await;
    house.change("", "tools: {note: require_approval}\n").await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let ask = async |agent: &str, tool: &str, to: &str| {
        let (run, asked) = lin.asking(agent, json!([[[tool, {"to": to}]]])).await;
        (run, asked[0].clone())
    };
    let first = ask("pa", "note", "a").await;
    let second = ask("pa", "note", "b").await;
    let others = [ask("payer", "note", "c").await, ask("pa", "pay", "d").await];
    let page = browser.get("/inbox").await.text;
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let picks = |asked: &[&serde_json::Value]| -> Vec<(String, String)> {
        let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
        asked.iter().map(|it| (text(&it["id"]), text(&it["arguments_sha256"]))).collect()
    };
    let post = async |picks: Vec<(String, String)>, more: &[(&str, &str)]| {
        let mut form = vec![("csrf", csrf)];
        form.extend(picks.iter().map(|(a, b)| (&**a, &**b)));
        form.extend(more);
        browser.post("/inbox/bulk", &form).await
    };
    let grant = [("decision", "grant")];
    for other in &others {
        let mixed = post(picks(&[&first.1, &other.1]), &grant).await;
        assert_eq!(mixed.status, 400, "{mixed:?}");
    }
    let mut forged = picks(&[&first.1, &second.1]);
    forged[1].1 = "0".repeat(64);
    assert_eq!(post(forged, &grant).await.status, 409);
    assert_eq!(post(Vec::new(), &grant).await.status, 400);
    let shown = post(picks(&[&first.1, &second.1]), &[]).await;
    assert!(shown.status == 200 && shown.text.contains("Approve these 2"), "{shown:?}");
    assert_eq!(house.ledger(), [""; 0]);
    assert_eq!(post(picks(&[&first.1, &second.1]), &grant).await.status, 303);
    for (run, _) in [&first, &second] {
        lin.until(run, "completed").await;
    }
    // One that was answered meanwhile holds up the others.
    let third = ask("pa", "note", "e").await;
    assert_eq!(post(picks(&[&first.1, &third.1]), &grant).await.status, 409);
    assert_eq!(lin.get(&format!("/api/runs/{}", third.0)).await.json()["status"], "waiting");
    house.close().await;
}

async fn jumping_finds_what_its_own_page_would_show_and_no_more(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "aardvark"}]]])).await;
    let question = asked[0]["id"].as_str().unwrap();
    let found = browser.get("/jump?q=PAY").await.text;
    assert!(found.contains(&format!("/inbox/{question}")), "{found}");
    assert!(found.contains("/chat?to=payer"), "{found}");
    assert!(browser.get("/jump?q=aardvark").await.text.contains(&format!("/runs/{run}")));
    let page = browser.get("/jump?q=audit").await.text;
    let found = page.split("id=\"found\"").nth(1).unwrap();
    assert!(found.contains("href=\"/audit\"") && !found.contains("href=\"/rules\""), "{found}");
    let mei = Browser::of(&house.server, "mei").await;
    for q in ["aardvark", &run, question] {
        let found = mei.get(&format!("/jump?q={q}")).await.text;
        assert!(!found.contains(&format!("href=\"/runs/{run}\"")), "{q}: {found}");
        assert!(!found.contains(&format!("href=\"/inbox/{question}\"")), "{q}: {found}");
    }
    let odd = browser.get("/jump?q=%3Cscript%3E%00%E2%80%AE").await;
    assert!(odd.status == 200 && !odd.text.contains("<script>"), "{odd:?}");
    house.close().await;
}

async fn what_has_an_id_is_jumped_to_by_it(on: On) {
    let house = House::open(on).await;
    let (lin, mei) =
        (Browser::of(&house.server, "lin").await, Browser::of(&house.server, "mei").await);
    let (run, _) = house.lin().await.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let audit = house.server.operator().get(&format!("/api/audit?run={run}")).await.json();
    let id = audit["items"][0]["id"].as_str().unwrap();
    let (path, href) = (format!("/jump?q={id}"), format!("/audit/{id}"));
    assert!(lin.get(&path).await.text.contains(&href), "{id}");
    assert!(!mei.get(&path).await.text.contains(&href), "it is not hers");
    assert_eq!(lin.get("/contracts").await.header("location"), "/mail?show=contracts");
    house.close().await;
}

async fn a_run_is_exported_with_all_beneath_it(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let run = lin.script("pa", json!([[["note", {"to": "a"}]]])).await;
    lin.until(&run, "completed").await;
    let export = browser.get(&format!("/runs/{run}/export")).await;
    assert!(export.header("content-disposition").contains(&run), "{export:?}");
    let events = lin.get(&format!("/api/runs/{run}/events")).await.json();
    assert_eq!(export.json()["events"][&run], events["items"]);
    assert_eq!(export.json()["run"]["id"], run);
    let mei = Browser::of(&house.server, "mei").await;
    assert_eq!(mei.get(&format!("/runs/{run}/export")).await.status, 404);
    house.close().await;
}

async fn a_reader_of_chinese_reads_why_in_chinese_and_the_record_stays_english(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let (run, asked) =
        lin.asking("pa", json!([[["burn", {"to": "c"}], ["pay", {"to": "b"}]]])).await;
    let mut reader = browser.clone();
    reader.cookie = format!("{}; chancery_language=zh", browser.cookie);
    let english = "`burn` has the capability `arson`: denied";
    for page in [format!("/runs/{run}"), format!("/inbox/{}", asked[0]["id"].as_str().unwrap())] {
        let chinese = reader.get(&page).await.text;
        assert!(chinese.contains("<code>pay</code> 为高风险"), "{page}: {chinese}");
        assert!(chinese.contains("须批准"), "{page}: {chinese}");
        assert!(browser.get(&page).await.text.contains("<code>pay</code> is of high risk"));
    }
    assert!(
        reader
            .get(&format!("/runs/{run}"))
            .await
            .text
            .contains("<code>burn</code> 具有能力 <code>arson</code>：拒绝")
    );
    let kept = lin.get("/api/audit?ruling=deny").await.json();
    assert_eq!(kept["items"][0]["reasons"][0]["detail"], english);
    house.close().await;
}

async fn a_model_is_tried_before_the_first_talk(on: On) {
    let house = House::open(on).await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    let tried = boss.fill("/settings", "/settings/models/default/test", &[]).await;
    assert_eq!(tried.status, 200);
    assert!(tried.text.contains("id=\"tried\""), "{tried:?}");
    assert!(tried.text.contains("class=\"made\""), "{tried:?}");
    let page = boss.get("/settings").await.text;
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(boss.post("/settings/models/none/test", &[("csrf", csrf)]).await.status, 404);
    house.model.otherwise(|_, _| Behaviour::status(401, "bad key"));
    let failed = boss.fill("/settings", "/settings/models/default/test", &[]).await;
    assert!(failed.text.contains("id=\"tried\" class=\"problem\""), "{failed:?}");
    let lin = Browser::of(&house.server, "lin").await;
    let page = lin.get("/settings").await.text;
    assert!(!page.contains("/settings/models/default/test"), "{page}");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(lin.post("/settings/models/default/test", &[("csrf", csrf)]).await.status, 403);
    house.close().await;
}
