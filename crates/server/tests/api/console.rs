//! The console over HTTP: the door, the forms, the card. What a browser makes of it is tested in
//! a browser.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Server, answer};
use crate::house::{House, On, on_both};

on_both! {
    a_link_lets_the_first_person_in_once;
    a_persons_token_opens_the_door_and_no_other_does;
    a_visit_ends_with_its_token_and_with_signing_out;
    what_is_approved_on_a_card_runs;
    high_risk_takes_a_reason_and_a_second_step;
    an_edited_call_is_shown_with_what_the_rules_say_of_it;
    a_form_from_elsewhere_decides_nothing;
}

/// Somebody's browser, as far as it matters here.
#[derive(Clone)]
pub struct Browser {
    base: String,
    http: reqwest::Client,
    pub cookie: String,
}

impl Browser {
    pub fn at(server: &Server) -> Browser {
        let none = reqwest::redirect::Policy::none();
        let http = reqwest::Client::builder().no_proxy().redirect(none).build().unwrap();
        Browser { base: server.running.url(), http, cookie: String::new() }
    }

    /// One that has this cookie.
    pub fn with(server: &Server, cookie: impl Into<String>) -> Browser {
        Browser { cookie: cookie.into(), ..Browser::at(server) }
    }

    /// Signed in with a new token of this person.
    pub async fn of(server: &Server, name: &str) -> Browser {
        let wanted = json!({"kind": "human", "name": name});
        let made = server.operator().post("/api/tokens", &wanted).await.json();
        let token = made["token"].as_str().unwrap().to_owned();
        let mut browser = Browser::at(server);
        browser.sign_in(&token).await;
        browser
    }

    pub async fn sign_in(&mut self, token: &str) -> Answer {
        let told = self.post("/signin", &[("token", token), ("next", "/inbox")]).await;
        self.take_cookie(&told);
        told
    }

    fn take_cookie(&mut self, told: &Answer) {
        if let Some((pair, _)) = told.header("set-cookie").split_once(';') {
            self.cookie = pair.to_owned();
        }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .header("accept", "text/html")
            .header("cookie", &self.cookie)
    }

    pub async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        answer(filled(self.request(Method::POST, path), form)).await
    }

    /// What the forms of this visit carry.
    pub async fn mark(&self, page: &str) -> String {
        let form = form_of(&self.get(page).await.text, "/signout");
        form.into_iter().find(|it| it.0 == "csrf").unwrap().1
    }

    /// Posts what the first form of a page with this action would, with more filled in.
    pub async fn fill(&self, page: &str, action: &str, more: &[(&str, &str)]) -> Answer {
        let shown = self.get(page).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        let form = form_of(&shown.text, action);
        let mut fields: Vec<(&str, &str)> =
            form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        fields.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        fields.extend(more);
        self.post(action, &fields).await
    }
}

pub fn filled(request: reqwest::RequestBuilder, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let escaped = |text: &str| -> String {
        text.bytes()
            .map(|it| match it {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => (it as char).to_string(),
                _ => format!("%{it:02X}"),
            })
            .collect()
    };
    let pairs = form.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(pairs.collect::<Vec<_>>().join("&"))
}

/// A text of a page, as it was before it was escaped.
pub fn plain(text: &str) -> String {
    let marks = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    let text = marks.iter().fold(text.to_owned(), |it, (mark, sign)| it.replace(mark, sign));
    text.replace("&amp;", "&")
}

/// The hidden fields of the first form with this action.
pub fn form_of(page: &str, action: &str) -> Vec<(String, String)> {
    let form = page.split("<form").find(|it| it.contains(&format!("action=\"{action}\"")));
    let form = form.unwrap_or_else(|| panic!("no form for {action}: {page}"));
    let form = form.split("</form>").next().unwrap();
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        Some(plain(rest.split('"').next().unwrap()))
    };
    form.split("<input type=\"hidden\"")
        .skip(1)
        .filter_map(|it| {
            let tag = it.split('>').next().unwrap();
            Some((attribute(tag, "name")?, attribute(tag, "value")?))
        })
        .collect()
}

fn id(permission: &Value) -> &str {
    permission["id"].as_str().unwrap()
}

async fn a_link_lets_the_first_person_in_once(on: On) {
    let house = House::open(on).await;
    let link = house.server.running.invitation.clone().unwrap();
    let path = link.strip_prefix(&house.server.running.url()).unwrap().to_owned();
    let key = path.split_once("key=").unwrap().1.to_owned();
    let mut first = Browser::at(&house.server);
    // To look at it, as a preview does, is not to use it.
    for _ in 0..2 {
        let shown = first.get(&path).await;
        assert_eq!(shown.status, 200);
        assert!(shown.text.contains(&key), "{}", shown.text);
    }
    // Whoever changes the language there comes back to it.
    let look = [("back", path.as_str()), ("language", "zh")];
    assert_eq!(first.post("/ui/look", &look).await.header("location"), path);
    let back = format!("name=\"back\" value=\"{path}\"");
    assert!(first.get(&path).await.text.contains(&back), "{back}");
    let forged = format!("/setup?key={}", "0".repeat(64));
    assert_eq!(first.get(&forged).await.status, 410);
    assert_eq!(first.post("/setup", &[("key", &key), ("name", " ")]).await.status, 400);
    let entered = first.post("/setup", &[("key", &key), ("name", "lin")]).await;
    assert_eq!((entered.status, entered.header("location")), (303, "/"), "{entered:?}");
    let cookie = entered.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    first.take_cookie(&entered);
    let inbox = first.get("/inbox").await;
    assert_eq!(inbox.status, 200);
    assert!(inbox.text.contains("lin"), "{}", inbox.text);
    let again = Browser::at(&house.server).post("/setup", &[("key", &key), ("name", "eve")]).await;
    assert_eq!((again.status, again.header("set-cookie")), (410, ""));
    // While somebody is in, a server that starts lets nobody else in.
    let house = house.restart().await;
    assert_eq!(house.server.running.invitation, None);
    first.base = house.server.running.url();
    assert_eq!(first.get("/inbox").await.status, 200);
    house.close().await;
}

async fn a_persons_token_opens_the_door_and_no_other_does(on: On) {
    let house = House::open(on).await;
    let mut browser = Browser::at(&house.server);
    let ask = |body: Value| {
        let operator = house.server.operator();
        async move {
            let made = operator.post("/api/tokens", &body).await;
            made.json()["token"].as_str().unwrap().to_owned()
        }
    };
    let agent = ask(json!({"kind": "agent", "name": "pa"})).await;
    let service = ask(json!({"kind": "service", "name": "ci", "approve": true})).await;
    let long = "x".repeat(600);
    for token in [agent.as_str(), service.as_str(), "", "chy_nothing", &long] {
        let told = browser.sign_in(token).await;
        assert_eq!((told.status, told.header("set-cookie")), (401, ""), "{told:?}");
        assert!(!told.text.contains(token) || token.is_empty());
    }
    let asked = browser.get("/inbox?show=decided").await;
    let door = "/signin?next=/inbox%3Fshow%3Ddecided";
    assert_eq!((asked.status, asked.header("location")), (303, door));
    let bare = answer(browser.request(Method::GET, "/inbox").header("accept", "*/*")).await;
    assert!(bare.status == 303 || bare.status == 401, "{bare:?}");
    // Who comes from another site has left the cookie at home, and is asked to come again.
    let elsewhere = browser.request(Method::GET, "/inbox").header("sec-fetch-site", "cross-site");
    let elsewhere = answer(elsewhere).await;
    assert_eq!(elsewhere.status, 200);
    assert!(elsewhere.text.contains("http-equiv=\"refresh\" content=\"0;url=/inbox\""));
    let human = ask(json!({"kind": "human", "name": "lin"})).await;
    let open =
        browser.post("/signin", &[("token", &human), ("next", "https://evil.example")]).await;
    assert_eq!((open.status, open.header("location")), (303, "/"));
    let secure = browser.request(Method::POST, "/signin").header("x-forwarded-proto", "https");
    let secure = answer(filled(secure, &[("token", &human)])).await;
    assert!(secure.header("set-cookie").contains("; Secure"), "{secure:?}");
    assert_eq!(browser.sign_in(&human).await.header("location"), "/inbox");
    let page = browser.get("/inbox").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"));
    assert_eq!(page.header("cache-control"), "no-store");
    // The cookie is for pages: the API wants its token.
    let api = answer(browser.request(Method::GET, "/api/runs")).await;
    api.problem(401, "unauthenticated");
    let audit = house.server.operator().get("/api/audit?kind=sign_in").await.json();
    assert_eq!(audit["items"].as_array().unwrap().len(), 3, "{audit}");
    house.close().await;
}

async fn a_visit_ends_with_its_token_and_with_signing_out(on: On) {
    let house = House::open(on).await;
    let lin = Browser::of(&house.server, "lin").await;
    let mei = Browser::of(&house.server, "mei").await;
    assert_eq!(lin.post("/signout", &[]).await.status, 403);
    assert_eq!(lin.get("/inbox").await.status, 200);
    let out = lin.fill("/inbox", "/signout", &[]).await;
    assert_eq!((out.status, out.header("location")), (303, "/signin"));
    assert_eq!(lin.get("/inbox").await.status, 303);
    let tokens = house.server.operator().get("/api/tokens").await.json();
    let of_mei = tokens["items"].as_array().unwrap().iter().find(|it| it["name"] == "mei");
    let revoke = format!("/api/tokens/{}/revoke", id(of_mei.unwrap()));
    assert_eq!(mei.get("/inbox").await.status, 200);
    assert_eq!(house.server.operator().post(&revoke, &json!({})).await.status, 200);
    assert_eq!(mei.get("/inbox").await.status, 303);
    house.close().await;
}

async fn what_is_approved_on_a_card_runs(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    house.change("", "tools: {note: require_approval}\n").await;
    let odd = "a\u{202e}<b>";
    let batch = json!([[["note", {"to": odd}], ["note", {"to": "two"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    let home = browser.get("/").await;
    assert_eq!((home.status, home.header("location")), (303, "/inbox"));
    let inbox = browser.get("/inbox").await.text;
    for part in [
        "<title>(2) ",
        "a<mark>\\u{202e}</mark>&lt;b&gt;",
        "I shall",
        asked[0]["arguments_sha256"].as_str().unwrap(),
        "policy.yaml:",
        &run,
    ] {
        assert!(inbox.contains(part), "{part}: {inbox}");
    }
    let page = format!("/inbox/{}", id(&asked[0]));
    let act = format!("{page}/decide");
    // What is answered must be what was shown.
    let other = browser.fill(&page, &act, &[("decision", "grant"), ("digest", "00")]).await;
    assert_eq!(other.status, 409, "{other:?}");
    let granted = browser.fill(&page, &act, &[("decision", "grant")]).await;
    assert_eq!((granted.status, granted.header("location")), (303, &*page), "{granted:?}");
    lin.permission_until(&asked[0], "granted").await;
    assert_eq!(house.ledger(), [""; 0]);
    let second = format!("/inbox/{}", id(&asked[1]));
    let deny = [("decision", "deny"), ("comment", "not that one")];
    assert_eq!(browser.fill(&second, &format!("{second}/decide"), &deny).await.status, 303);
    let done = lin.until(&run, "completed").await;
    assert_eq!(done["status"], "completed");
    assert_eq!(house.ledger(), [format!("note {odd}")]);
    let after = browser.get(&second).await.text;
    assert!(after.contains("not that one") && !after.contains("<title>("), "{after}");
    let decided = browser.get("/inbox?show=decided").await.text;
    assert!(decided.contains(id(&asked[0])) && decided.contains(id(&asked[1])), "{decided}");
    // Too late to decide otherwise, and said so on a page.
    let csrf = form_of(&after, "/signout");
    let digest = asked[0]["arguments_sha256"].as_str().unwrap();
    let late = [("csrf", &*csrf[0].1), ("digest", digest), ("decision", "deny")];
    let late = browser.post(&act, &late).await;
    assert_eq!(late.status, 409);
    assert!(late.text.contains("already_decided") && late.text.contains("data-problem"));
    // What is somebody else's is not there.
    let mei = Browser::of(&house.server, "mei").await;
    assert_eq!(mei.get(&page).await.status, 404);
    house.close().await;
}

async fn high_risk_takes_a_reason_and_a_second_step(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let page = format!("/inbox/{}", id(&asked[0]));
    let act = format!("{page}/decide");
    for more in [
        vec![("decision", "grant")],
        vec![("decision", "grant"), ("comment", "fine")],
        vec![("decision", "grant"), ("confirmed", "yes"), ("comment", "  ")],
    ] {
        assert_eq!(browser.fill(&page, &act, &more).await.status, 400, "{more:?}");
    }
    lin.permission_until(&asked[0], "pending").await;
    let both = [("decision", "grant"), ("confirmed", "yes"), ("comment", "the invoice is right")];
    assert_eq!(browser.fill(&page, &act, &both).await.status, 303);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay a"]);
    let shown = lin.get(&format!("/api/permissions/{}", id(&asked[0]))).await.json();
    assert_eq!(
        (&shown["decided_by"], &shown["comment"]),
        (&json!("lin"), &json!("the invoice is right"))
    );
    house.close().await;
}

async fn an_edited_call_is_shown_with_what_the_rules_say_of_it(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let page = format!("/inbox/{}", id(&asked[0]));
    let edit = format!("{page}/edit");
    let broken = browser.fill(&page, &edit, &[("arguments", "{\"to\": ")]).await;
    assert_eq!(broken.status, 422);
    let refused = browser.fill(&page, &edit, &[("arguments", "{\"amount\": 1}")]).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("INVALID_ARGUMENTS") || refused.text.contains("tool"));
    let fine = browser.fill(&page, &edit, &[("arguments", "{\"to\": \"b\"}")]).await;
    assert_eq!(fine.status, 200);
    assert!(fine.text.contains("class=\"minus\"") && fine.text.contains("class=\"plus\""));
    lin.permission_until(&asked[0], "pending").await;
    let mut fields = form_of(&fine.text, &format!("{page}/decide"));
    fields.push(("comment".to_owned(), "b it is".to_owned()));
    let one_step: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
    assert_eq!(browser.post(&format!("{page}/decide"), &one_step).await.status, 400);
    lin.permission_until(&asked[0], "pending").await;
    fields.push(("confirmed".to_owned(), "yes".to_owned()));
    let fields: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
    assert_eq!(browser.post(&format!("{page}/decide"), &fields).await.status, 303);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay b"]);
    house.close().await;
}

async fn a_form_from_elsewhere_decides_nothing(on: On) {
    let house = House::open(on).await;
    let (lin, browser) = (house.lin().await, Browser::of(&house.server, "lin").await);
    let mei = Browser::of(&house.server, "mei").await;
    let (_, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let page = format!("/inbox/{}", id(&asked[0]));
    let act = format!("{page}/decide");
    let shown = browser.get(&page).await.text;
    let mut fields = form_of(&shown, &act);
    for (name, value) in [("decision", "grant"), ("comment", "x"), ("confirmed", "yes")] {
        fields.push((name.to_owned(), value.to_owned()));
    }
    let whole: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
    let without: Vec<(&str, &str)> = whole.iter().copied().filter(|it| it.0 != "csrf").collect();
    let others = form_of(&mei.get("/inbox").await.text, "/signout");
    let mut theirs = without.clone();
    theirs.push(("csrf", &others[0].1));
    for form in [&without, &theirs] {
        assert_eq!(browser.post(&act, form).await.status, 403);
    }
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let request = browser.request(Method::POST, &act).header(name, value);
        assert_eq!(answer(filled(request, &whole)).await.status, 403, "{name}: {value}");
    }
    let stranger = Browser::at(&house.server);
    assert_eq!(stranger.post(&act, &whole).await.status, 401);
    lin.permission_until(&asked[0], "pending").await;
    assert_eq!(browser.post(&act, &whole).await.status, 303);
    lin.permission_until(&asked[0], "granted").await;
    house.close().await;
}
