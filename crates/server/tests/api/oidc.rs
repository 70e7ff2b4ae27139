//! Signing in with an issuer's word, over real sockets: who is let in, as whom, and for how long.

use std::collections::BTreeMap;

use chancery_server::config::{Config, OidcConfig, Standing};
use chancery_server::{StartError, start};
use chancery_testkit::fake_issuer::{CLIENT, FakeIssuer, Kind, SECRET};
use serde_json::{Value, json};

use crate::harness::{Answer, Server, id};
use crate::house::{House, On, on_both};

on_both! {
    whoever_the_issuer_vouches_for_is_let_in_and_out;
    a_name_belongs_to_whom_it_was_given_first;
    who_was_here_before_the_issuer_is_not_taken_over;
    who_leaves_the_groups_is_shown_out;
    what_a_group_may_follows_the_group;
}

/// A browser with its cookies, which follows nothing by itself.
#[derive(Clone, Default)]
pub struct Surfer {
    base: String,
    http: reqwest::Client,
    /// By name, with the path behind it where it is for a part of a site alone.
    pub cookies: BTreeMap<String, String>,
    /// Every `Set-Cookie` of the last answer.
    pub set: Vec<String>,
}

impl Surfer {
    pub fn at(server: &Server) -> Surfer {
        let none = reqwest::redirect::Policy::none();
        let http = reqwest::Client::builder().no_proxy().redirect(none).build().unwrap();
        Surfer { base: server.running.url(), http, ..Surfer::default() }
    }

    pub async fn get(&mut self, url: &str) -> Answer {
        let url = match url.starts_with('/') {
            true => format!("{}{url}", self.base),
            false => url.to_owned(),
        };
        let path = url.split('/').skip(3).collect::<Vec<_>>().join("/");
        let cookies = self.cookies.iter().filter_map(|(key, value)| {
            let (name, part) = key.split_once(' ').unwrap_or((key, "/"));
            format!("/{path}").starts_with(part).then(|| format!("{name}={value}"))
        });
        let cookies: Vec<String> = cookies.collect();
        let request = self.http.get(url).header("accept", "text/html");
        let response = request.header("cookie", cookies.join("; ")).send().await.unwrap();
        let all = response.headers().get_all("set-cookie").iter();
        self.set = all.map(|it| it.to_str().unwrap().to_owned()).collect();
        for text in self.set.clone() {
            let (pair, rest) = text.split_once(';').unwrap_or((&text, ""));
            let (name, value) = pair.split_once('=').unwrap();
            let part = rest.split("; ").find_map(|it| it.trim().strip_prefix("path="));
            let part = part.filter(|it| *it != "/").map(|it| format!(" {it}"));
            let key = format!("{name}{}", part.unwrap_or_default());
            if value.is_empty() || rest.contains("Max-Age=0") {
                self.cookies.remove(&key);
            } else {
                self.cookies.insert(key, value.to_owned());
            }
        }
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, it)| (name.to_string(), it.to_str().unwrap_or_default().to_owned()))
            .collect();
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    /// Goes to the issuer, and answers with where it sends one back to.
    pub async fn go(&mut self, next: &str) -> String {
        let sent = self.get(&format!("/signin/oidc?next={next}")).await;
        assert_eq!(sent.status, 303, "{sent:?}");
        let there = sent.header("location").to_owned();
        let back = self.get(&there).await;
        assert_eq!(back.status, 303, "{there}: {back:?}");
        back.header("location").to_owned()
    }

    pub async fn sign_in(&mut self) -> Answer {
        let back = self.go("/inbox").await;
        self.get(&back).await
    }

    pub fn is_in(&self) -> bool {
        self.cookies.contains_key("chancery_visit")
    }
}

pub struct Vouching {
    pub house: House,
    pub issuer: FakeIssuer,
}

impl Vouching {
    pub async fn open(on: On) -> Vouching {
        Vouching::with(on, |_| {}).await
    }

    pub async fn with(on: On, change: impl FnOnce(&mut OidcConfig)) -> Vouching {
        let issuer = FakeIssuer::start().await.unwrap();
        issuer.says(json!({"preferred_username": "Lin", "groups": ["staff"]}));
        let mut oidc = OidcConfig::new(&issuer.url(), CLIENT);
        oidc.client_secret_env = Some("OIDC_SECRET".to_owned());
        oidc.allow = vec!["staff".to_owned()];
        oidc.roles = BTreeMap::from([
            ("leads".to_owned(), Standing::Approver),
            ("ops".to_owned(), Standing::Operator),
        ]);
        oidc.timeout_seconds = 1;
        change(&mut oidc);
        let settle = |config: &mut Config| config.oidc = Some(oidc);
        let house = House::with_environment(on, settle, &[("OIDC_SECRET", SECRET)]).await;
        Vouching { house, issuer }
    }

    pub fn surfer(&self) -> Surfer {
        Surfer::at(&self.house.server)
    }

    pub async fn audited(&self, kind: &str) -> Vec<Value> {
        let path = format!("/api/audit?kind={kind}&limit=100");
        let page = self.house.server.operator().get(&path).await.json();
        page["items"].as_array().unwrap().clone()
    }

    /// Asserts that nobody was let in, that a page says why, and the audit too.
    pub async fn refused(&self, surfer: &Surfer, told: &Answer, status: u16, why: &str) {
        assert_eq!(told.status, status, "{why}: {told:?}");
        assert!(!surfer.is_in(), "{why}");
        let shown = told.text.replace("&#39;", "'").replace("&#34;", "\"");
        assert!(shown.contains(why), "{why}: {shown}");
        let (_, after) = told.text.split_once("aud_").unwrap_or_else(|| panic!("{shown}"));
        let id = format!("aud_{}", after.split('<').next().unwrap());
        let entries = self.audited("sign_in.refused").await;
        let entry = entries.iter().find(|it| it["id"] == *id);
        let entry = entry.unwrap_or_else(|| panic!("{id}: {entries:?}"));
        assert!(entry["detail"]["why"].as_str().unwrap().contains(why), "{entry}");
    }
}

async fn whoever_the_issuer_vouches_for_is_let_in_and_out(on: On) {
    let it = Vouching::open(on).await;
    let mut lin = it.surfer();
    let door = lin.get("/signin?next=/runs").await;
    assert!(door.text.contains("href=\"/signin/oidc?next=/runs\""), "{}", door.text);
    let back = lin.go("/runs%3Fx=1").await;
    let departure = lin.set.clone();
    assert!(departure.is_empty(), "the issuer sets none: {departure:?}");
    let entered = lin.get(&back).await;
    // The browser comes from another site: it is asked to ask by itself.
    assert_eq!(entered.status, 200, "{entered:?}");
    assert!(entered.text.contains("content=\"0;url=/runs?x=1\""), "{}", entered.text);
    assert_eq!(entered.header("cache-control"), "no-store");
    let visit = lin.set.iter().find(|it| it.starts_with("chancery_visit=")).unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(visit.contains(part), "{visit}");
    }
    assert!(lin.is_in() && !lin.cookies.contains_key("chancery_departure"));
    let inbox = lin.get("/inbox").await;
    assert_eq!(inbox.status, 200);
    assert!(inbox.text.contains("data-person=\"lin\""), "{}", inbox.text);
    // They are who they are, to themselves and to others.
    let run = id(&it.house.server.human("max").await.run("[]").await);
    assert_eq!(lin.get(&format!("/runs/{run}")).await.status, 404);
    // Nothing else was led to by going there with odd wishes.
    for odd in ["https://evil.example", "//evil.example", "/%5Cevil.example", "%0d%0aset-cookie:x"]
    {
        let mut other = it.surfer();
        let back = other.go(odd).await;
        let entered = other.get(&back).await;
        assert!(entered.text.contains("content=\"0;url=/\""), "{odd}: {}", entered.text);
    }
    // All three kinds of keys, each new to us.
    for (kind, name) in [(Kind::P256, "p"), (Kind::Ed25519, "e"), (Kind::Rsa, "r")] {
        let before = it.issuer.asked().0;
        it.issuer.rotate(kind, name);
        let mut other = it.surfer();
        let entered = other.sign_in().await;
        assert!(other.is_in(), "{kind:?}: {entered:?}");
        assert_eq!(it.issuer.asked().0, before + 1);
    }
    let signed_in = it.audited("sign_in").await;
    assert_eq!(signed_in.len(), 8);
    assert!(signed_in.iter().all(|it| it["detail"]["by"] == "oidc" && it["user"] == "lin"));
    // One token for all of it, and its secret is nobody's.
    let tokens = it.house.server.operator().get("/api/tokens").await.json();
    let of_lin = tokens["items"].as_array().unwrap().iter().filter(|it| it["name"] == "lin");
    assert_eq!(of_lin.count(), 1);
    let cookie = format!("chancery_visit={}", lin.cookies["chancery_visit"]);
    let browser = crate::console::Browser::with(&it.house.server, cookie);
    assert_eq!(browser.fill("/inbox", "/signout", &[]).await.status, 303);
    assert_eq!(lin.get("/inbox").await.status, 303);
    it.house.close().await;
}

async fn a_name_belongs_to_whom_it_was_given_first(on: On) {
    let it = Vouching::open(on).await;
    let mut lin = it.surfer();
    lin.sign_in().await;
    assert!(lin.is_in());
    // Another person to whom the issuer gives the same name.
    let staff = |subject: &str, name: &str| json!({"sub": subject, "preferred_username": name, "groups": ["staff"]});
    it.issuer.says(staff("subject-2", "lin"));
    let mut other = it.surfer();
    let told = other.sign_in().await;
    // To us, lin is a person with a token by now.
    it.refused(&other, &told, 403, "whom the identity provider does not speak for").await;
    // The same person under another name is who they were.
    it.issuer.says(staff("subject-1", "lina"));
    let mut again = it.surfer();
    again.sign_in().await;
    assert!(again.get("/inbox").await.text.contains("data-person=\"lin\""));
    // The name that they have not taken is free.
    it.issuer.says(staff("subject-3", "lina"));
    let mut third = it.surfer();
    third.sign_in().await;
    assert!(third.get("/inbox").await.text.contains("data-person=\"lina\""));
    it.house.close().await;

    // With `link` a name is a person, but one person.
    let it = Vouching::with(on, |oidc| oidc.link = true).await;
    it.surfer().sign_in().await;
    it.issuer.says(staff("subject-2", "lin"));
    let mut other = it.surfer();
    let told = other.sign_in().await;
    it.refused(&other, &told, 403, "`lin` is somebody else").await;
    it.house.close().await;
}

async fn who_was_here_before_the_issuer_is_not_taken_over(on: On) {
    let it = Vouching::open(on).await;
    it.house.server.human("lin").await;
    let mut lin = it.surfer();
    let told = lin.sign_in().await;
    it.refused(&lin, &told, 403, "there is a `lin` here").await;
    it.issuer.says(json!({"preferred_username": "mei", "groups": ["staff"]}));
    let mut mei = it.surfer();
    mei.sign_in().await;
    assert!(mei.is_in());
    it.house.close().await;

    let it = Vouching::with(on, |oidc| {
        oidc.link = true;
        oidc.create = false;
    })
    .await;
    let of_lin = it.house.lin().await;
    let run = id(&of_lin.run("[]").await);
    let mut lin = it.surfer();
    lin.sign_in().await;
    assert_eq!(lin.get(&format!("/runs/{run}")).await.status, 200);
    it.issuer.says(json!({"sub": "2", "preferred_username": "mei", "groups": ["staff"]}));
    let mut mei = it.surfer();
    let told = mei.sign_in().await;
    it.refused(&mei, &told, 403, "nobody has let `mei` in").await;
    it.house.close().await;
}

async fn who_leaves_the_groups_is_shown_out(on: On) {
    let it = Vouching::open(on).await;
    let (mut one, mut two) = (it.surfer(), it.surfer());
    one.sign_in().await;
    two.sign_in().await;
    assert_eq!(one.get("/inbox").await.status, 200);
    it.issuer.says(json!({"preferred_username": "lin", "groups": ["guests"]}));
    let mut gone = it.surfer();
    let told = gone.sign_in().await;
    it.refused(&gone, &told, 403, "groups at the identity provider are not let in").await;
    for before in [&mut one, &mut two] {
        assert_eq!(before.get("/inbox").await.status, 303);
    }
    // No group at all is none of those that are let in.
    it.issuer.says(json!({"preferred_username": "lin"}));
    let told = gone.sign_in().await;
    it.refused(&gone, &told, 403, "are not let in").await;
    it.issuer.says(json!({"preferred_username": "lin", "groups": ["guests", "staff"]}));
    gone.sign_in().await;
    assert_eq!(gone.get("/inbox").await.status, 200);
    it.house.close().await;
}

async fn what_a_group_may_follows_the_group(on: On) {
    let it = Vouching::open(on).await;
    let max = it.house.server.human("max").await;
    let (_, asked) = max.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let page = format!("/inbox/{}", asked[0]["id"].as_str().unwrap());
    let groups = |groups: &[&str]| json!({"preferred_username": "lin", "groups": groups});
    let mut person = it.surfer();
    person.sign_in().await;
    assert_eq!(person.get(&page).await.status, 404);
    it.issuer.says(groups(&["leads"]));
    let mut lead = it.surfer();
    lead.sign_in().await;
    assert_eq!(lead.get(&page).await.status, 200);
    assert!(!lead.get("/settings").await.text.contains("/settings/tokens\""));
    // What they may has changed: a visit that stands on what was is over.
    assert_eq!(person.get("/inbox").await.status, 303);
    it.issuer.says(groups(&["ops", "staff"]));
    let mut operator = it.surfer();
    operator.sign_in().await;
    assert!(operator.get("/settings").await.text.contains("/settings/tokens\""));
    it.issuer.says(groups(&["staff"]));
    let mut person = it.surfer();
    person.sign_in().await;
    assert_eq!(person.get(&page).await.status, 404);
    assert_eq!(operator.get("/settings").await.status, 303);
    it.house.close().await;
}

#[tokio::test]
async fn what_the_token_does_not_say_is_asked_for() {
    let it = Vouching::open(On::Sqlite).await;
    it.issuer.says(json!({}));
    it.issuer.set(|it| it.userinfo = json!({"preferred_username": "mei", "groups": ["staff"]}));
    let mut mei = it.surfer();
    mei.sign_in().await;
    assert!(mei.get("/inbox").await.text.contains("data-person=\"mei\""));
    it.issuer.set(|it| it.userinfo["sub"] = json!("somebody-else"));
    let mut other = it.surfer();
    let told = other.sign_in().await;
    it.refused(&other, &told, 403, "it speaks of two people").await;
    // A name by mail is one that somebody has checked.
    let by_mail = |verified: Value| {
        let mail = "lin@example.org";
        json!({"sub": "3", "email": mail, "email_verified": verified, "groups": ["staff"]})
    };
    it.issuer.set(|it| it.userinfo = json!({}));
    for unchecked in [json!(false), json!("true"), json!(null)] {
        it.issuer.says(by_mail(unchecked));
        let told = other.sign_in().await;
        it.refused(&other, &told, 403, "does not say `preferred_username` or `email`").await;
    }
    it.issuer.says(by_mail(json!(true)));
    other.sign_in().await;
    assert!(other.get("/inbox").await.text.contains("data-person=\"lin@example.org\""));
    // Where the header is not taken, the secret is in the form.
    it.house.close().await;
    let it = Vouching::open(On::Sqlite).await;
    let form = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
    it.issuer.set(|it| it.document = form);
    let mut lin = it.surfer();
    lin.sign_in().await;
    assert!(lin.is_in());
    it.house.close().await;
}

#[tokio::test]
async fn without_an_issuer_there_is_no_such_door() {
    let server = Server::start().await;
    let mut nobody = Surfer::at(&server);
    assert!(!nobody.get("/signin").await.text.contains("/signin/oidc"));
    for path in ["/signin/oidc", "/signin/oidc/callback?code=1&state=2"] {
        assert_eq!(nobody.get(path).await.status, 404, "{path}");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn settings_that_cannot_be_meant_are_refused() {
    let data = tempfile::TempDir::new().unwrap();
    let good = |issuer: &str| {
        let mut oidc = OidcConfig::new(issuer, CLIENT);
        oidc.allow = vec!["*".to_owned()];
        oidc
    };
    let with = |oidc: OidcConfig| Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: data.path().join("data"),
        oidc: Some(oidc),
        ..Config::default()
    };
    let id = "https://id.example";
    let mut nobody = good(id);
    nobody.allow.clear();
    let mut no_openid = good(id);
    no_openid.scopes = vec!["profile".to_owned()];
    let mut no_secret = good(id);
    no_secret.client_secret_env = Some("NOT_SET".to_owned());
    let mut no_file = good(id);
    no_file.client_secret_file = Some(data.path().join("absent"));
    let (mut open, mut plain) = (with(good(id)), with(good(id)));
    open.listen = ([0, 0, 0, 0], 0).into();
    plain.public_url = Some("http://chancery.example".to_owned());
    for (config, why) in [
        (with(good("http://id.example")), "`issuer` is an `https://` URL"),
        (with(good("id.example")), "`issuer` is an `https://` URL"),
        (with(nobody), "nobody is let in"),
        (with(no_openid), "`openid`"),
        (with(no_secret), "`NOT_SET` is not set"),
        (with(no_file), "client_secret_file"),
        (open, "`public_url`"),
        (plain, "`public_url`"),
    ] {
        match start(&config, []).await {
            Err(StartError::Config(error)) => assert!(error.to_string().contains(why), "{error}"),
            other => panic!("{why}: {other:?}"),
        }
    }
}
