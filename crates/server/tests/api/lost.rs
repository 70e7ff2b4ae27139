//! What somebody sent after their visit had ended is given back to them, and to nobody else.

use serde_json::{Value, json};

use crate::console::{Browser, form_of};
use crate::harness::{Answer, Caller};
use crate::house::{House, On, on_both};
use crate::tab::{ENTER, Tab};

on_both! {
    what_was_typed_when_a_visit_had_ended_is_given_back_and_sent_when_asked_for;
    what_somebody_typed_is_never_given_to_another;
    a_decision_is_given_back_to_be_read_and_made_anew;
    what_opens_something_or_is_too_long_is_not_given_back;
}

async fn token(house: &House, name: &str) -> String {
    let wanted = json!({"kind": "human", "name": name});
    let made = house.server.operator().post("/api/tokens", &wanted).await.json();
    made["token"].as_str().unwrap().to_owned()
}

/// A browser whose visit ends in another tab: what it still sends has the marks of that visit.
async fn ended(house: &House, name: &str) -> (Browser, String) {
    let browser = Browser::of(&house.server, name).await;
    let mark = browser.mark("/inbox").await;
    assert_eq!(browser.fill("/inbox", "/signout", &[]).await.status, 303);
    (browser, mark)
}

/// Signs in on the page that says that the visit has ended.
async fn sign_in(browser: &Browser, page: &str, token: &str) -> Answer {
    let kept = form_of(page, "/signin");
    let mut form: Vec<(&str, &str)> = kept.iter().map(|(name, it)| (&**name, &**it)).collect();
    form.push(("token", token));
    browser.post("/signin", &form).await
}

fn signed_in(house: &House, told: &Answer) -> Browser {
    let (cookie, _) = told.header("set-cookie").split_once(';').unwrap();
    Browser::with(&house.server, cookie)
}

/// Begins the talk.
async fn talks(house: &House) -> Caller {
    let lin = house.lin().await;
    let body = json!({"agent": "pa", "input": "[]", "session_key": "talk"});
    let run = crate::harness::id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "completed").await;
    lin
}

async fn runs(lin: &Caller) -> usize {
    lin.get("/api/runs").await.json()["items"].as_array().unwrap().len()
}

async fn what_was_typed_when_a_visit_had_ended_is_given_back_and_sent_when_asked_for(on: On) {
    let house = House::open(on).await;
    let lin = talks(&house).await;
    let (browser, mark) = ended(&house, "lin").await;
    let form = [("csrf", &*mark), ("text", "say <this>"), ("to", "pa"), ("back", "/chat/talk")];
    let told = browser.post("/chat/talk", &form).await;
    assert_eq!(told.status, 401, "{told:?}");
    assert!(told.text.contains("Your visit has ended"), "{}", told.text);
    assert!(told.text.contains("readonly>say &#60;this&#62;</textarea>"), "{}", told.text);
    assert_eq!(told.header("set-cookie"), "");
    assert!(!told.text.contains(mark.split_once('.').unwrap().0), "{}", told.text);
    // A slip of the hand at the door loses nothing of it.
    let wrong = sign_in(&browser, &told.text, "no such token").await;
    assert_eq!(wrong.status, 401);
    let given = sign_in(&browser, &wrong.text, &token(&house, "lin").await).await;
    assert_eq!(given.status, 200, "{given:?}");
    assert!(
        given.text.contains("name=\"text\" rows=\"4\">say &#60;this&#62;</textarea>"),
        "{given:?}"
    );
    // Nothing is sent by itself. Who asks for it sends it, with the mark of the new visit.
    assert_eq!(runs(&lin).await, 1);
    let browser = signed_in(&house, &given);
    let mark = form_of(&given.text, "/chat/talk").into_iter().find(|it| it.0 == "csrf").unwrap().1;
    let form = [("csrf", &*mark), ("text", "say <this>"), ("to", "pa")];
    assert_eq!(browser.post("/chat/talk", &form).await.status, 303);
    assert_eq!(runs(&lin).await, 2);
    // Whoever has signed in in another tab goes on without a token.
    let kept = form_of(&told.text, "/signin");
    let kept: Vec<(&str, &str)> = kept.iter().map(|(name, it)| (&**name, &**it)).collect();
    let given = browser.post("/signin", &kept).await;
    assert!(given.status == 200 && given.text.contains("say &#60;this&#62;"), "{given:?}");
    // Who had typed nothing is led back to where they were.
    let (browser, mark) = ended(&house, "lin").await;
    let told = browser.post("/runs/run_1/act", &[("csrf", &mark), ("act", "pause")]).await;
    assert_eq!(told.status, 401);
    let led = sign_in(&browser, &told.text, &token(&house, "lin").await).await;
    assert_eq!((led.status, led.header("location")), (303, "/runs/run_1"));
    house.close().await;
}

async fn what_somebody_typed_is_never_given_to_another(on: On) {
    let house = House::open(on).await;
    let (browser, mark) = ended(&house, "lin").await;
    let secret = "lin's own words, which are long enough to be given back by a page";
    let told = browser.post("/chat/talk", &[("csrf", &mark), ("text", secret)]).await;
    let other = sign_in(&browser, &told.text, &token(&house, "max").await).await;
    assert_eq!((other.status, other.header("location")), (303, "/chat/talk"));
    assert!(!other.text.contains("own words"), "{other:?}");
    // Nor where the other is signed in already, by the same page or by another form of hers.
    let max = signed_in(&house, &other);
    let kept = form_of(&told.text, "/signin");
    let kept: Vec<(&str, &str)> = kept.iter().map(|(name, it)| (&**name, &**it)).collect();
    let led = max.post("/signin", &kept).await;
    assert!(led.status == 303 && !led.text.contains("own words"), "{led:?}");
    let refused = max.post("/chat/talk", &[("csrf", &mark), ("text", secret)]).await;
    assert_eq!(refused.status, 403);
    assert!(!refused.text.contains("own words"), "{refused:?}");
    // Another site's page has nothing drawn.
    let request =
        max.request(reqwest::Method::POST, "/signin").header("origin", "https://evil.example");
    let foreign = crate::harness::answer(crate::console::filled(request, &kept)).await;
    assert_eq!(foreign.status, 403);
    // A form that does not say whose it is gives nothing back after the sign-in.
    let told = browser.post("/chat/talk", &[("text", secret)]).await;
    let led = sign_in(&browser, &told.text, &token(&house, "lin").await).await;
    assert_eq!(led.status, 303);
    house.close().await;
}

async fn a_decision_is_given_back_to_be_read_and_made_anew(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (_, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let id = asked[0]["id"].as_str().unwrap();
    let digest = asked[0]["arguments_sha256"].as_str().unwrap();
    let (browser, mark) = ended(&house, "lin").await;
    let form = [
        ("csrf", &*mark),
        ("decision", "grant"),
        ("digest", digest),
        ("comment", "I have read it"),
        ("confirmed", "yes"),
    ];
    let told = browser.post(&format!("/inbox/{id}/decide"), &form).await;
    assert_eq!(told.status, 401);
    assert!(told.text.contains(">I have read it</textarea>"), "{}", told.text);
    let given = sign_in(&browser, &told.text, &token(&house, "lin").await).await;
    assert_eq!(given.status, 200);
    let main = given.text.split_once("<main").unwrap().1;
    assert!(main.contains(">I have read it</textarea>") && !main.contains("<form"), "{main}");
    assert!(main.contains(&format!("href=\"/inbox/{id}\"")), "{main}");
    let still = lin.get(&format!("/api/permissions/{id}")).await.json();
    assert_eq!(still["status"], "pending");
    house.close().await;
}

async fn what_opens_something_or_is_too_long_is_not_given_back(on: On) {
    let house = House::open(on).await;
    let (browser, mark) = ended(&house, "lin").await;
    let form = [("csrf", &*mark), ("token", "chy_secret_1"), ("secret", "s3cret"), ("text", "hi")];
    let told = browser.post("/chat/talk", &form).await.text;
    assert!(told.contains(">hi</textarea>"), "{told}");
    assert!(!told.contains("chy_secret_1") && !told.contains("s3cret"), "{told}");
    let long = "x".repeat(300 * 1024);
    let told = browser.post("/chat/talk", &[("csrf", &mark), ("text", &long)]).await;
    assert_eq!(told.status, 401);
    assert!(told.text.contains("too long to be given back"), "{}", told.text.len());
    assert!(told.text.len() < 20_000, "{}", told.text.len());
    house.close().await;
}

/// A talk in a tab, with words in its field, and a visit that has just ended.
async fn typed(house: &House, tab: &Tab) {
    let browser = Browser::of(&house.server, "lin").await;
    tab.be(&browser).await;
    tab.go("/chat/talk").await;
    tab.until(crate::hands::PULSE).await;
    tab.eval("document.querySelector('#text').focus()").await;
    tab.press("hello there").await;
    assert_eq!(browser.fill("/inbox", "/signout", &[]).await.status, 303);
    tab.press(ENTER).await;
    tab.until("return document.activeElement.matches('dialog[open] [name=token]')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_one_signs_in_where_one_types_and_nothing_is_lost_or_sent() {
    let house = House::open(On::Sqlite).await;
    let lin = talks(&house).await;
    let tab = Tab::open(&house.server).await;
    typed(&house, &tab).await;
    let axe = std::fs::read_to_string(chancery_testkit::mcp_servers::axe().unwrap()).unwrap();
    assert_eq!(tab.axe(&axe).await, json!([]));
    tab.press("nonsense").await;
    tab.press(ENTER).await;
    tab.until("return document.querySelector('dialog #wrong') !== null").await;
    tab.fill("//dialog//input[@name='token']", &token(&house, "lin").await).await;
    tab.press(ENTER).await;
    tab.until("return document.querySelector('dialog') === null").await;
    let here = "return [document.querySelector('#text').value, document.activeElement.id,
        document.querySelector('#say').textContent.includes('Nothing was sent')]";
    assert_eq!(tab.eval(here).await, json!(["hello there", "text", true]));
    assert_eq!(runs(&lin).await, 1);
    // Sent once more, it is taken: its form has the mark of the new visit.
    tab.press(ENTER).await;
    tab.until("return document.querySelector('#text').value === ''").await;
    assert_eq!(runs(&lin).await, 2);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_another_who_signs_in_there_finds_nothing_of_it() {
    let house = House::open(On::Sqlite).await;
    let lin = talks(&house).await;
    let tab = Tab::open(&house.server).await;
    typed(&house, &tab).await;
    tab.fill("//dialog//input[@name='token']", &token(&house, "max").await).await;
    tab.press(ENTER).await;
    tab.until("return document.body.dataset.person === 'max'").await;
    let left = tab.eval("return document.documentElement.outerHTML").await;
    assert!(!left.as_str().unwrap().contains("hello there"), "{left}");
    let field = "return document.querySelector('#text')?.value ?? ''";
    assert_eq!(tab.eval(field).await, Value::from(""));
    assert_eq!(runs(&lin).await, 1);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_page_that_asks_to_sign_in_again_holds_a_letter_and_gives_it_back() {
    let house = House::open(On::Sqlite).await;
    let axe = std::fs::read_to_string(chancery_testkit::mcp_servers::axe().unwrap()).unwrap();
    let browser = Browser::of(&house.server, "lin").await;
    let tab = Tab::open(&house.server).await;
    tab.be(&browser).await;
    tab.go("/mail?show=write").await;
    tab.fill("//input[@name='subject']", "The harbour").await;
    tab.fill("//textarea[@name='body']", "It is closed.\nSee you.").await;
    assert_eq!(browser.fill("/inbox", "/signout", &[]).await.status, 303);
    tab.click("//form[@action='/mail']//button[@class='primary']").await;
    tab.until("return document.querySelector('main.door h2')?.textContent.includes('ended')").await;
    let sound = async || {
        assert_eq!(tab.axe(&axe).await, json!([]));
        tab.width(320).await;
        let wide = tab.eval("return document.documentElement.scrollWidth").await;
        assert!(wide.as_u64() <= Some(320), "{wide} wide at 320");
        tab.width(1280).await;
    };
    sound().await;
    tab.fill("//input[@id='token']", &token(&house, "lin").await).await;
    tab.press(ENTER).await;
    tab.until("return document.querySelector('main [name=body]') !== null").await;
    let held =
        "return ['subject', 'body'].map((it) => document.querySelector(`[name=${it}]`).value)";
    assert_eq!(tab.eval(held).await, json!(["The harbour", "It is closed.\nSee you."]));
    sound().await;
    tab.click("//form[@action='/mail']//button[@class='primary']").await;
    tab.until("return location.pathname.startsWith('/mail') && document.body.innerText.includes('The harbour')")
        .await;
    house.close().await;
}
