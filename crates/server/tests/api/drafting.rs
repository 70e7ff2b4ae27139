//! Drafts of the organisation in the console: checked, tried on what happened, and put in force by
//! those who may.

use serde_json::json;

use crate::console::{Browser, form_of, plain};
use crate::house::{House, On, on_both};

on_both! {
    a_draft_says_what_it_would_have_meant_and_changes_nothing;
    a_draft_with_a_mistake_is_shown_with_its_place_and_cannot_be_applied;
    what_is_applied_rules_the_next_call;
    a_draft_of_a_version_that_is_gone_is_not_applied;
    what_was_changed_after_the_check_is_checked_again_and_not_put_in_force;
    an_earlier_version_comes_back_as_a_draft;
    a_draft_is_tried_on_the_mail_that_was_sent;
    only_operators_draft;
    a_first_visit_leads_through_four_steps_and_can_be_left;
}

async fn boss(house: &House) -> Browser {
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    boss
}

const POLICY: &str = "risk: {low: allow, medium: allow, high: require_approval}\n\
    capabilities: {transfer: require_human, arson: deny}\ntools: {note: deny}\n";

/// The draft page, after `act` with this policy.
async fn drafted(boss: &Browser, policy: &str) -> crate::harness::Answer {
    let more = [("file:policy.yaml", policy), ("open", "policy.yaml"), ("act", "check")];
    boss.fill("/org/draft?file=policy.yaml", "/org/draft", &more).await
}

/// Presses the button that puts in force what a page has checked, with this in its field.
async fn applied(boss: &Browser, page: &str, policy: &str) -> crate::harness::Answer {
    // The button stands beneath what was found, and belongs to the one form that there is.
    assert!(page.contains("form=\"draft\" name=\"act\" value=\"apply\""), "{page}");
    assert_eq!(page.matches("action=\"/org/draft\"").count(), 1, "{page}");
    let fields = form_of(page, "/org/draft");
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
    fields.extend([("file:policy.yaml", policy), ("act", "apply")]);
    boss.post("/org/draft", &fields).await
}

async fn a_draft_says_what_it_would_have_meant_and_changes_nothing(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    for to in ["a", "b"] {
        let run = lin.script("pa", json!([[["note", {"to": to}], ["burn", {"to": "x"}]]])).await;
        lin.until(&run, "completed").await;
    }
    let version = house.server.operator().get("/api/org").await.json()["version"].clone();
    let boss = boss(&house).await;
    let page = drafted(&boss, POLICY).await;
    assert_eq!(page.status, 200, "{page:?}");
    for part in [
        "Of 4 calls in 2 runs, 2 would be ruled on more strictly, 0 less.",
        "<span class=\"ruling allow\">allow</span>",
        "<span class=\"ruling deny\">deny</span>",
        "the policy says of <code>note</code>: denied",
        "class=\"effect narrower\"",
        "value=\"apply\"",
        "class=\"plus\"",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let looser = "risk: {low: allow, medium: allow, high: require_approval}\ncapabilities: {}\n";
    let page = drafted(&boss, looser).await;
    assert!(page.text.contains("0 would be ruled on more strictly, 2 less."), "{}", page.text);
    // The same words mean the same, and there is nothing to apply.
    let same = boss.get("/org/draft?file=policy.yaml").await.text;
    assert!(same.contains("arson: deny"), "{same}");
    assert_eq!(house.server.operator().get("/api/org").await.json()["version"], version);
    let run = lin.script("pa", json!([[["note", {"to": "c"}]]])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "note b", "note c"]);
    house.close().await;
}

async fn a_draft_with_a_mistake_is_shown_with_its_place_and_cannot_be_applied(on: On) {
    let house = House::open(on).await;
    let boss = boss(&house).await;
    let page = drafted(&boss, "risk: {low: perhaps}\n").await;
    assert_eq!(page.status, 422);
    assert!(page.text.contains("policy.yaml:1"), "{}", page.text);
    assert!(!page.text.contains("value=\"apply\""));
    // What was written is still there to be put right.
    assert!(page.text.contains("perhaps"));
    let forced = [("file:policy.yaml", "risk: {low: perhaps}\n"), ("act", "apply")];
    let forced = boss.fill("/org/draft", "/org/draft", &forced).await;
    assert_eq!(forced.status, 422, "{forced:?}");
    house.close().await;
}

async fn what_is_applied_rules_the_next_call(on: On) {
    let house = House::open(on).await;
    let (lin, boss) = (house.lin().await, boss(&house).await);
    let page = drafted(&boss, POLICY).await;
    assert_eq!(applied(&boss, &page.text, POLICY).await.status, 303);
    let run = lin.script("pa", json!([[["note", {"to": "a"}]]])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), [""; 0]);
    let kept = house.server.operator().get("/api/audit?kind=org.changed").await.json();
    assert_eq!(kept["items"][0]["actor"]["kind"], "user", "{kept}");
    // The other files stayed as they were.
    assert!(boss.get("/org").await.text.contains("Payroll"));
    house.close().await;
}

async fn a_draft_of_a_version_that_is_gone_is_not_applied(on: On) {
    let house = House::open(on).await;
    let (lin, boss) = (house.lin().await, boss(&house).await);
    let page = drafted(&boss, POLICY).await;
    house.change("", "tools: {pay: deny}\n").await;
    let late = applied(&boss, &page.text, POLICY).await;
    assert_eq!(late.status, 409, "{late:?}");
    let run = lin.script("pa", json!([[["note", {"to": "a"}]]])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a"]);
    house.close().await;
}

async fn what_was_changed_after_the_check_is_checked_again_and_not_put_in_force(on: On) {
    let house = House::open(on).await;
    let boss = boss(&house).await;
    let version = async || house.server.operator().get("/api/org").await.json()["version"].clone();
    let before = version().await;
    let page = drafted(&boss, POLICY).await;
    let other = "risk: {low: deny}\n";
    let again = applied(&boss, &page.text, other).await;
    assert_eq!(again.status, 409, "{again:?}");
    for part in [
        "The text was changed after it was checked. Nothing was put in force",
        "risk: {low: deny}",
        "risk.low becomes deny",
    ] {
        assert!(again.text.contains(part), "{part}: {}", again.text);
    }
    assert_eq!(version().await, before);
    // What is shown now was checked now; a browser's ends of lines are no change.
    let meant = applied(&boss, &again.text, "risk: {low: deny}\r\n").await;
    assert_eq!(meant.status, 303, "{meant:?}");
    assert_ne!(version().await, before);
    let kept = house.server.operator().get("/api/org").await.json();
    assert_eq!(kept["files"]["policy.yaml"], other);
    // With a mistake in it there is nothing to confirm.
    let wrong = applied(&boss, &drafted(&boss, POLICY).await.text, "risk: {low: perhaps}\n").await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    house.close().await;
}

async fn an_earlier_version_comes_back_as_a_draft(on: On) {
    let house = House::open(on).await;
    let (lin, boss) = (house.lin().await, boss(&house).await);
    let first = house.server.operator().get("/api/org").await.json();
    let old = first["version"].as_u64().unwrap();
    house.change("", "tools: {note: deny}\n").await;
    let list = boss.get("/org/history").await.text;
    for part in [
        &*format!("<b>v{}</b> <span class=\"tag\">in force</span>", old + 1),
        "tools.note becomes deny (was allow)",
        &format!("/org/draft?from={old}"),
        "the first",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let path = format!("/org/history/compare?from={old}&to={}", old + 1);
    let two = boss.get(&path).await.text;
    assert!(two.contains("tools.note becomes deny") && two.contains("class=\"plus\""), "{two}");
    assert_eq!(boss.get("/org/history/compare?from=1&to=999").await.status, 404);
    // To look at a draft changes nothing, and it is put in force like any other.
    let begun = boss.get(&format!("/org/draft?from={old}&file=policy.yaml")).await;
    assert!(begun.text.contains(&format!("Begun from v{old}.")), "{begun:?}");
    let carried = form_of(&begun.text, "/org/draft");
    let mut fields: Vec<(&str, &str)> = carried.iter().map(|(a, b)| (&**a, &**b)).collect();
    // The page has the old text in its field, and is sent as it came.
    let (_, field) = begun.text.split_once("<textarea name=\"file:policy.yaml\"").unwrap();
    let (_, field) = field.split_once(">\n").unwrap();
    let policy = &*plain(field.split("</textarea>").next().unwrap());
    fields.extend([("file:policy.yaml", policy), ("act", "check")]);
    let checked = boss.post("/org/draft", &fields).await;
    assert!(checked.text.contains("tools.note becomes allow (was deny)"), "{checked:?}");
    assert_eq!(applied(&boss, &checked.text, policy).await.status, 303);
    let back = house.server.operator().get("/api/org").await.json();
    assert_eq!((&back["digest"], &back["version"]), (&first["digest"], &json!(old + 2)));
    let run = lin.script("pa", json!([[["note", {"to": "a"}]]])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a"]);
    for path in ["/org/history".to_owned(), path, format!("/org/draft?from={old}")] {
        assert_eq!(Browser::of(&house.server, "lin").await.get(&path).await.status, 403, "{path}");
    }
    house.close().await;
}

async fn a_draft_is_tried_on_the_mail_that_was_sent(on: On) {
    let house = House::open(on).await;
    let boss = boss(&house).await;
    let worker = house.server.holder(json!({"kind": "agent", "name": "backend_worker"})).await;
    for (to, status) in [("ceo", 403), ("ceo", 403), ("it_manager", 201)] {
        let mail = json!({"to": to, "type": "info", "subject": "s", "body": "b"});
        let sent = worker.post("/api/mail", &mail).await;
        assert_eq!(sent.status, status, "{sent:?}");
    }
    let kept = house.server.operator().get("/api/org").await.json();
    let contacts = "{ceo: {types: [info]}, it_manager: {types: [report]}}";
    let worker = &format!("roles:\n  backend_worker: {{contacts: {contacts}}}\n");
    let roles = kept["files"]["roles.yaml"].as_str().unwrap().replacen("roles:\n", worker, 1);
    let more = [("file:roles.yaml", &*roles), ("open", "roles.yaml"), ("act", "check")];
    let page = boss.fill("/org/draft?file=roles.yaml", "/org/draft", &more).await;
    for part in [
        "Of 3 mails, 2 blocked ones would have passed, 1 delivered ones would have been blocked.",
        "<code>backend_worker</code> may not write to <code>ceo</code>: it writes to it_manager",
        "<code>info</code> may not be sent to <code>it_manager</code>: only report",
    ] {
        assert!(page.text.contains(part), "{part}: {page:?}");
    }
    // The same for programs, which is what `policy diff` tells.
    let mut files = kept["files"].clone();
    files["roles.yaml"] = json!(roles);
    let asked = house.server.operator().post("/api/org/impact", &json!({"files": files})).await;
    let found = asked.json();
    let change = |to: &str, before: &str, after: &str, because: &str, times: u64| {
        json!({"from": "backend_worker", "to": to, "type": "info", "before": before, "after": after,
            "because": because, "times": times, "run_id": null})
    };
    let wrote = "`backend_worker` may not write to `ceo`: it writes to it_manager";
    let only = "`info` may not be sent to `it_manager`: only report";
    let changes =
        [change("ceo", "deny", "allow", wrote, 2), change("it_manager", "allow", "deny", only, 1)];
    assert_eq!(
        found,
        json!({"mails": 3, "cut_off": false, "passed": 2, "blocked": 1, "changes": changes})
    );
    let since = "/api/org/impact?since=2099-01-01T00:00:00Z";
    let none = house.server.operator().post(since, &json!({"files": files})).await.json();
    assert_eq!((&none["mails"], &none["changes"]), (&json!(0), &json!([])));
    let person = house.lin().await;
    assert_eq!(person.post("/api/org/impact", &json!({"files": files})).await.status, 403);
    let bad = json!({"files": {"roles.yaml": "roles: 7"}});
    assert_eq!(house.server.operator().post("/api/org/impact", &bad).await.status, 422);
    // Nothing was sent by that, and the matrix counts what was.
    let cell = boss.get("/org?from=backend_worker&to=ceo").await.text;
    assert!(cell.contains("30 days: 2 sent, 2 blocked"), "{cell}");
    let cell = boss.get("/org?from=backend_worker&to=it_manager").await.text;
    assert!(cell.contains("30 days: 1 sent, 0 blocked"), "{cell}");
    // Somebody else's are not counted.
    let lin = Browser::of(&house.server, "lin").await;
    let cell = lin.get("/org?from=backend_worker&to=ceo").await.text;
    assert!(cell.contains("30 days: 0 sent, 0 blocked"), "{cell}");
    house.close().await;
}

async fn only_operators_draft(on: On) {
    let house = House::open(on).await;
    let lin = Browser::of(&house.server, "lin").await;
    assert_eq!(lin.get("/org/draft").await.status, 403);
    let page = lin.get("/org").await.text;
    assert!(!page.contains("/org/draft"));
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    for act in ["check", "apply"] {
        let form = [("csrf", csrf), ("act", act), ("file:policy.yaml", POLICY)];
        assert_eq!(lin.post("/org/draft", &form).await.status, 403);
    }
    house.close().await;
}

async fn a_first_visit_leads_through_four_steps_and_can_be_left(on: On) {
    let house = House::open(on).await;
    let boss = boss(&house).await;
    let home = async |browser: &Browser| browser.get("/").await.header("location").to_owned();
    assert_eq!(home(&boss).await, "/welcome");
    let lin = Browser::of(&house.server, "lin").await;
    assert_eq!((home(&lin).await.as_str(), lin.get("/welcome").await.status), ("/chat", 403));
    let page = boss.get("/welcome").await.text;
    assert!(page.contains("The organisation in force asks nothing before a note."), "{page}");
    assert_eq!(boss.fill("/welcome", "/welcome", &[("starter", "nothing")]).await.status, 404);
    // What one has of one's own is not replaced by a slip.
    let slip = boss.fill("/welcome", "/welcome", &[("starter", "small_team")]).await;
    assert_eq!(slip.status, 400, "{slip:?}");
    let meant = [("starter", "small_team"), ("replace", "yes")];
    let small = boss.fill("/welcome", "/welcome", &meant).await;
    assert_eq!(small.status, 303, "{small:?}");
    let page = boss.get("/welcome").await.text;
    assert!(page.contains("Write a note that says: the rules hold."), "{page}");
    assert!(boss.get("/org").await.text.contains("researcher"));
    let over = boss.fill("/welcome", "/welcome", &[("starter", "")]).await;
    let cookie = over.header("set-cookie").split(';').next().unwrap().to_owned();
    let mut boss = boss;
    boss.cookie = format!("{}; {cookie}", boss.cookie);
    assert_eq!(home(&boss).await, "/chat");
    house.close().await;
}
