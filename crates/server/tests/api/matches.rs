//! What a remembered answer would have matched, said before it is given.

use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::Caller;
use crate::house::{House, On, on_both};
use crate::keys::at_home;
use crate::tab::Tab;

on_both! {
    an_answer_says_what_it_would_have_matched_before_it_is_given;
    a_page_says_what_would_have_been_matched_and_keeps_what_was_chosen;
    what_is_asked_each_time_matches_nothing_and_is_refused;
    only_the_newest_questions_are_looked_at_and_that_is_said;
}

/// Asks, and answers at once.
async fn answered(lin: &Caller, who: &Caller, agent: &str, to: &str, decision: &str) {
    let (run, asked) = lin.asking(agent, json!([[["pay", {"to": to}]]])).await;
    assert_eq!(who.decide(&asked[0], json!({"decision": decision})).await.status, 200);
    lin.until(&run, "completed").await;
}

/// Four questions of lin's that were answered, one of them by an operator; one that is open, and
/// some that have nothing to do with it.
async fn asked(house: &House, lin: &Caller) -> (String, Value) {
    let boss = house.server.operator();
    answered(lin, lin, "pa", "a", "grant").await;
    answered(lin, lin, "pa", "b", "deny").await;
    answered(lin, &boss, "pa", "c", "grant").await;
    answered(lin, lin, "patterns", "d", "deny").await;
    let mei = house.server.human("mei").await;
    answered(&mei, &mei, "pa", "a", "deny").await;
    let (run, deploys) = lin.asking("pa", json!([[["deploy", {"to": "x"}]]])).await;
    assert_eq!(lin.deny(&deploys[0]).await.status, 200);
    lin.until(&run, "completed").await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "e"}]]])).await;
    (run, asked[0].clone())
}

fn figures(found: &Value) -> Value {
    let of = |name: &str| found[name].clone();
    json!([of("asked"), of("granted"), of("denied"), of("granted_by_you"), of("denied_by_you")])
}

async fn an_answer_says_what_it_would_have_matched_before_it_is_given(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, open) = asked(&house, &lin).await;
    let path = format!("/api/permissions/{}/matches", open["id"].as_str().unwrap());
    for (scope, expected) in [
        ("run", json!([0, 0, 0, 0, 0])),
        ("agent", json!([3, 2, 1, 1, 1])),
        ("always", json!([4, 2, 2, 1, 2])),
    ] {
        let found = lin.get(&format!("{path}?scope={scope}")).await.json();
        assert_eq!(figures(&found), expected, "{scope}");
        assert_eq!((&found["scope"], &found["looked_at"]), (&json!(scope), &json!(5)));
        assert_eq!(found["cut_off"], false);
    }
    let found = lin.get(&format!("{path}?scope=agent")).await.json();
    let said = |it: &Value| json!([it["arguments"]["to"], it["status"], it["decided_by"]]);
    let shown: Vec<Value> = found["questions"].as_array().unwrap().iter().map(said).collect();
    let by = &found["questions"][0]["decided_by"];
    assert_eq!(
        shown,
        [
            json!(["c", "granted", by]),
            json!(["b", "denied", "lin"]),
            json!(["a", "granted", "lin"]),
        ]
    );
    // It decides nothing, and is nobody else's to see.
    assert_eq!(lin.get(&format!("/api/runs/{run}")).await.json()["status"], "waiting");
    for odd in ["", "?scope=", "?scope=once", "?scope=x"] {
        lin.get(&format!("{path}{odd}")).await.problem(400, "bad_request");
    }
    let mei = house.server.human("max").await;
    mei.get(&format!("{path}?scope=agent")).await.problem(404, "not_found");
    // What it would have matched is what the rule then answers.
    let always = json!({"decision": "grant", "remember": "always"});
    assert_eq!(lin.decide(&open, always).await.status, 200);
    lin.until(&run, "completed").await;
    let again = lin.script("patterns", json!([[["pay", {"to": "d"}]]])).await;
    lin.until(&again, "completed").await;
    // A rule that is to be narrowed says the same, of what it would still cover.
    let rule = lin.get("/api/rules").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/rules/{rule}/matches");
    for (scope, expected) in [
        ("", json!([5, 3, 2, 2, 2])),
        ("?scope=agent", json!([4, 3, 1, 2, 1])),
        ("?scope=run", json!([1, 1, 0, 1, 0])),
    ] {
        assert_eq!(figures(&lin.get(&format!("{path}{scope}")).await.json()), expected, "{scope}");
    }
    let narrowed = format!("/api/rules/{rule}/narrow");
    assert_eq!(lin.post(&narrowed, &json!({"scope": "run"})).await.status, 200);
    lin.get(&format!("{path}?scope=agent")).await.problem(409, "not_narrower");
    lin.get(&format!("{path}?scope=all")).await.problem(400, "bad_request");
    mei.get(&path).await.problem(404, "not_found");
    house.close().await;
}

async fn what_is_asked_each_time_matches_nothing_and_is_refused(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (_, asked) = lin.asking("pa", json!([[["wire", {"to": "a"}]]])).await;
    let id = asked[0]["id"].as_str().unwrap();
    let path = format!("/api/permissions/{id}/matches?scope=agent");
    lin.get(&path).await.problem(422, "not_rememberable");
    let browser = Browser::of(&house.server, "lin").await;
    let csrf = browser.mark("/inbox").await;
    let form = [("csrf", csrf.as_str()), ("remember", "agent")];
    let told = browser.post(&format!("/inbox/{id}/matches"), &form).await;
    assert_eq!(told.status, 422);
    assert!(told.text.contains("not_rememberable"), "{}", told.text);
    house.close().await;
}

async fn only_the_newest_questions_are_looked_at_and_that_is_said(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    // More than one model asks for at once.
    let mut first = Value::Null;
    for _ in 0..4 {
        let calls: Vec<Value> = (0..126).map(|n| json!(["pay", {"to": n.to_string()}])).collect();
        let (_, asked) = lin.asking("pa", json!([calls])).await;
        first = if first.is_null() { asked[0]["id"].clone() } else { first };
    }
    let path = format!("/api/permissions/{}/matches?scope=agent", first.as_str().unwrap());
    let found = lin.get(&path).await.json();
    assert_eq!(
        json!([found["asked"], found["looked_at"], found["cut_off"]]),
        json!([500, 500, true])
    );
    assert_eq!(found["questions"].as_array().unwrap().len(), 50);
    house.close().await;
}

async fn a_page_says_what_would_have_been_matched_and_keeps_what_was_chosen(on: On) {
    let house = House::open(on).await;
    house.change("", "tools: {note: require_approval}\n").await;
    let lin = house.lin().await;
    for (agent, to, decision) in [("pa", "a", "deny"), ("patterns", "b<b>", "grant")] {
        let (run, asked) = lin.asking(agent, json!([[["note", {"to": to}]]])).await;
        assert_eq!(lin.decide(&asked[0], json!({"decision": decision})).await.status, 200);
        lin.until(&run, "completed").await;
    }
    let (run, asked) = lin.asking("pa", json!([[["note", {"to": "c"}]]])).await;
    let id = asked[0]["id"].as_str().unwrap();
    let browser = Browser::of(&house.server, "lin").await;
    let card = browser.get(&format!("/inbox/{id}")).await.text;
    let see = format!("formaction=\"/inbox/{id}/matches\"");
    assert!(card.contains(&see), "{card}");
    let mut fields = crate::console::form_of(&card, &format!("/inbox/{id}/decide"));
    fields.extend([("remember", "always"), ("expires_after", "7d")].map(owned));
    let form: Vec<(&str, &str)> = fields.iter().map(|(name, it)| (&**name, &**it)).collect();
    let page = browser.post(&format!("/inbox/{id}/matches"), &form).await;
    assert_eq!(page.status, 200, "{page:?}");
    let said = "Would have matched 2 asked in 30 days: 1 approved (1 by you), 1 denied (1 by you).";
    assert!(page.text.contains(said), "{}", page.text);
    assert!(page.text.contains("{&quot;to&quot;:&quot;b&lt;b&gt;&quot;}"), "{}", page.text);
    for chosen in ["<option value=\"always\" selected>", "<option value=\"7d\" selected>"] {
        assert!(page.text.contains(chosen), "{chosen}: {}", page.text);
    }
    // Nothing was decided by that; its form does, as the card's would have.
    assert_eq!(lin.get(&format!("/api/runs/{run}")).await.json()["status"], "waiting");
    let hidden = crate::console::form_of(&page.text, &format!("/inbox/{id}/decide"));
    let mut form: Vec<(&str, &str)> = hidden.iter().map(|(name, it)| (&**name, &**it)).collect();
    form.extend([("decision", "grant"), ("remember", "always"), ("expires_after", "7d")]);
    assert_eq!(browser.post(&format!("/inbox/{id}/decide"), &form).await.status, 303);
    lin.until(&run, "completed").await;
    // The same where a rule is narrowed, and in Chinese.
    let rule = lin.get("/api/rules").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let csrf = browser.mark("/rules").await;
    let form = [("csrf", csrf.as_str()), ("scope", "agent"), ("expires_after", "1h")];
    let path = format!("/rules/{rule}/matches");
    let request = browser.request(reqwest::Method::POST, &path).header("accept-language", "zh");
    let page = crate::harness::answer(crate::console::filled(request, &form)).await;
    let said = "过去 30 天内会匹配 2 次询问：批准 1 次（你 1 次），拒绝 1 次（你 1 次）。";
    assert!(page.text.contains(said), "{}", page.text);
    for chosen in ["<option value=\"agent\" selected>", "<option value=\"1h\" selected>"] {
        assert!(page.text.contains(chosen), "{chosen}: {}", page.text);
    }
    assert_eq!(lin.get("/api/rules").await.json()["items"][0]["scope"], "always");
    assert_eq!(browser.post(&path, &[("scope", "agent")]).await.status, 403);
    house.close().await;
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Chooses another scope, as a person does, with what the page then says.
async fn choose(tab: &Tab, scope: &str) {
    let choose = format!(
        "const field = document.querySelector('select[name=remember]');
         field.focus(); field.value = '{scope}';
         field.dispatchEvent(new Event('change', {{bubbles: true}}))"
    );
    tab.eval(&choose).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_what_would_have_been_matched_is_said_while_one_chooses() {
    let (house, lin, tab) = at_home().await;
    for decision in ["deny", "grant"] {
        let (run, asked) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
        assert_eq!(lin.decide(&asked[0], json!({"decision": decision})).await.status, 200);
        lin.until(&run, "completed").await;
    }
    let (run, asked) = lin.asking("pa", json!([[["note", {"to": "y"}]]])).await;
    tab.go(&format!("/inbox/{}", asked[0]["id"].as_str().unwrap())).await;
    tab.until("return performance.now() > 1200").await;
    tab.click("//details[.//select[@name='remember']]/summary").await;
    let told = "const it = document.querySelector('form:has([data-matches]) [data-told]');";
    tab.until(&format!("{told} return it?.textContent.includes('nothing else')")).await;
    let focus = "return document.activeElement.matches('summary')";
    assert_eq!(tab.eval(focus).await, true);
    choose(&tab, "agent").await;
    tab.until(&format!("{told} return it.textContent.includes('1 denied (1 by you)')")).await;
    let state = format!(
        "{told} return [it.ariaLive, it.className, document.activeElement.name,
            document.querySelector('select[name=remember]').value]"
    );
    assert_eq!(tab.eval(&state).await, json!(["polite", "soon", "remember", "agent"]));
    // What comes in meanwhile takes nothing of it away.
    lin.asking("pa", json!([[["note", {"to": "z"}]]])).await;
    tab.until("return document.querySelectorAll('#rows .row').length === 2").await;
    assert_eq!(tab.eval(&state).await, json!(["polite", "soon", "remember", "agent"]));
    // Whoever wants to see them is led there, and nothing is sent by it.
    tab.click("//button[@data-matches]").await;
    tab.until("return document.querySelectorAll('table tbody tr').length === 3").await;
    let chosen = "return document.querySelector('select[name=remember]').value";
    assert_eq!(tab.eval(chosen).await, "agent");
    assert_eq!(lin.get(&format!("/api/runs/{run}")).await.json()["status"], "waiting");
    let axe = std::fs::read_to_string(chancery_testkit::mcp_servers::axe().unwrap()).unwrap();
    assert_eq!(tab.axe(&axe).await, json!([]));
    tab.width(320).await;
    let wide = tab.eval("return document.documentElement.scrollWidth").await;
    assert!(wide.as_u64() <= Some(320), "{wide} wide at 320");
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}
