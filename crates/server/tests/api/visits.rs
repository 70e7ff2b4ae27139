//! Ways to take over a visit, or to make one do what its person did not: none of them leads
//! anywhere.

use reqwest::Method;
use serde_json::json;

use crate::console::{Browser, filled};
use crate::harness::{Server, answer};
use crate::house::{House, On, on_both};

on_both! {
    what_a_page_is_told_ends_with_its_visit;
    visits_are_seen_and_ended_by_whose_they_are;
    a_cookie_that_somebody_put_there_is_not_the_visit;
}

/// Every form of the console, with ids that name nothing.
const FORMS: &[&str] = &[
    "/signout",
    "/welcome",
    "/inbox/bulk",
    "/inbox/perm_1/again",
    "/inbox/perm_1/ask",
    "/inbox/perm_1/decide",
    "/inbox/perm_1/edit",
    "/inbox/perm_1/extend",
    "/inbox/perm_1/matches",
    "/chat",
    "/chat/key",
    "/runs/run_1/act",
    "/runs/run_1/fork",
    "/mail",
    "/contracts/CTR-1/step",
    "/org/draft",
    "/memory/mem_1/forget",
    "/rules/rul_1/matches",
    "/rules/rul_1/narrow",
    "/rules/rul_1/revoke",
    "/settings/models/one/test",
    "/settings/tokens",
    "/settings/tokens/tok_1/revoke",
    "/settings/webhooks/x/test",
    "/settings/visits/end",
    "/settings/visits/00/end",
];

async fn token_of(server: &Server, name: &str) -> String {
    let wanted = json!({"kind": "human", "name": name});
    let made = server.operator().post("/api/tokens", &wanted).await.json();
    made["token"].as_str().unwrap().to_owned()
}

async fn visits_are_seen_and_ended_by_whose_they_are(on: On) {
    let house = House::open(on).await;
    let token = token_of(&house.server, "lin").await;
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut browser = Browser::at(&house.server);
        browser.sign_in(&token).await;
        all.push(browser);
    }
    let max = Browser::of(&house.server, "max").await;
    let page = all[0].get("/settings").await.text;
    let ends: Vec<&str> = page
        .split("action=\"")
        .filter_map(|it| it.split('"').next())
        .filter(|it| it.starts_with("/settings/visits/") && it.ends_with("/end"))
        .collect();
    // All three, and the button for all others.
    assert_eq!(ends.len(), 4, "{ends:?}");
    let own = page.split("<tr ").find(|it| it.contains("this one")).unwrap();
    let ends: Vec<&str> = ends.into_iter().filter(|it| !own.contains(it)).collect();
    assert!(!page.contains(all[1].cookie.split_once('=').unwrap().1));
    // Somebody else's is not there, to look at or to end.
    assert!(!max.get("/settings").await.text.contains(ends[0]));
    let csrf = max.mark("/inbox").await;
    assert_eq!(max.post(ends[0], &[("csrf", &csrf)]).await.status, 404);
    for odd in ["0", "zz", &"g".repeat(64), &"+1".repeat(32), &"0".repeat(64)] {
        let path = format!("/settings/visits/{odd}/end");
        assert_eq!(max.post(&path, &[("csrf", &csrf)]).await.status, 404, "{odd}");
    }
    let alive = async |all: &[Browser]| {
        let mut alive = 0;
        for it in all {
            alive += usize::from(it.get("/inbox").await.status == 200);
        }
        alive
    };
    assert_eq!(alive(&all).await, 3);
    assert_eq!(all[0].fill("/settings", ends[0], &[]).await.status, 303);
    assert_eq!((alive(&all).await, all[0].get("/inbox").await.status), (2, 200));
    let mut fourth = Browser::at(&house.server);
    fourth.sign_in(&token).await;
    all.push(fourth);
    assert_eq!(all[0].fill("/settings", "/settings/visits/end", &[]).await.status, 303);
    assert_eq!((alive(&all).await, all[0].get("/inbox").await.status), (1, 200));
    assert_eq!(max.get("/inbox").await.status, 200);
    let audit = house.server.operator().get("/api/audit?kind=sign_out").await.json();
    assert_eq!(audit["items"].as_array().unwrap().len(), 2, "{audit}");
    // An operator sees and ends everybody's.
    let boss = json!({"kind": "human", "name": "boss", "operator": true});
    let boss = house.server.operator().post("/api/tokens", &boss).await.json();
    let mut operator = Browser::at(&house.server);
    operator.sign_in(boss["token"].as_str().unwrap()).await;
    let page = operator.get("/settings").await.text;
    let of_max = page.split("<tr ").find(|it| it.contains("<b>max</b>") && it.contains("visits/"));
    let (_, rest) = of_max.unwrap().split_once("action=\"").unwrap();
    let end = rest.split('"').next().unwrap().to_owned();
    assert_eq!(operator.fill("/settings", &end, &[]).await.status, 303);
    assert_eq!(max.get("/inbox").await.status, 303);
    house.close().await;
}

async fn what_a_page_is_told_ends_with_its_visit(on: On) {
    let house = House::open(on).await;
    let lin = Browser::of(&house.server, "lin").await;
    let told = lin.request(Method::GET, "/ui/events?watch=runs").send();
    let mut told = told.await.unwrap();
    assert_eq!(told.status(), 200);
    assert!(told.chunk().await.unwrap().is_some());
    assert_eq!(lin.fill("/inbox", "/signout", &[]).await.status, 303);
    // Something happens that a page would be told of.
    house.lin().await.run("[]").await;
    let end = async { while told.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(std::time::Duration::from_secs(20), end).await.unwrap();
    house.close().await;
}

async fn a_cookie_that_somebody_put_there_is_not_the_visit(on: On) {
    let house = House::open(on).await;
    let token = token_of(&house.server, "lin").await;
    // One that an attacker knows, planted before the sign-in.
    let planted = "a".repeat(64);
    let mut lin = Browser::with(&house.server, format!("chancery_visit={planted}"));
    lin.sign_in(&token).await;
    assert!(!lin.cookie.contains(&planted));
    let attacker = Browser::with(&house.server, format!("chancery_visit={planted}"));
    assert_eq!(attacker.get("/inbox").await.status, 303);
    // A visit of the attacker's own, planted: the victim's sign-in ends it, and is not it.
    let mallory = Browser::of(&house.server, "mallory").await;
    let mut victim = Browser::with(&house.server, &mallory.cookie);
    victim.sign_in(&token).await;
    assert_ne!(victim.cookie, mallory.cookie);
    assert_eq!(mallory.get("/inbox").await.status, 303);
    assert!(victim.get("/inbox").await.text.contains("data-person=\"lin\""));
    house.close().await;
}

#[tokio::test]
async fn no_form_is_taken_from_elsewhere_or_without_its_mark() {
    let server = Server::start().await;
    let lin = Browser::of(&server, "lin").await;
    let mark = lin.mark("/inbox").await;
    // The list is whole: the server has no other form that a visit sends.
    let source = include_str!("../../src/console.rs");
    let posts = source.matches("post(").count();
    // Beside these: the two doors and what one likes to look at.
    assert_eq!(posts, FORMS.len() + 3, "a new form belongs into the list");
    for path in FORMS {
        let plain = |request: reqwest::RequestBuilder| async move { answer(request).await.status };
        let post = || lin.request(Method::POST, path);
        assert_eq!(plain(filled(post(), &[])).await, 403, "{path} without a mark");
        let wrong = mark.replace(&mark[..1], if mark.starts_with('0') { "1" } else { "0" });
        assert_eq!(plain(filled(post(), &[("csrf", &wrong)])).await, 403, "{path}");
        for (name, value) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
        ] {
            let request = filled(post().header(name, value), &[("csrf", &mark)]);
            assert_eq!(plain(request).await, 403, "{path} {name}: {value}");
        }
        // What a form of another site can send without being asked first, and what it cannot.
        for kind in ["text/plain", "multipart/form-data; boundary=x", "application/json", ""] {
            let body = format!("csrf={mark}");
            let status = plain(post().header("content-type", kind).body(body)).await;
            assert!([400, 415].contains(&status), "{path} as {kind:?}: {status}");
        }
        // In the address it is in logs and in links.
        let in_query = lin.request(Method::POST, &format!("{path}?csrf={mark}"));
        assert_eq!(plain(filled(in_query, &[])).await, 403, "{path}");
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH] {
            let url = format!("{path}?csrf={mark}&_method=POST");
            let request =
                lin.request(method.clone(), &url).header("x-http-method-override", "POST");
            let status = plain(request).await;
            let harmless = method == Method::GET && [200, 404].contains(&status);
            assert!(harmless || [403, 404, 405].contains(&status), "{method} {path}: {status}");
        }
        let twice = filled(post(), &[("csrf", &wrong), ("csrf", &mark)]);
        assert_eq!(plain(twice).await, 400, "{path} with two marks");
    }
    assert_eq!(lin.get("/inbox").await.status, 200);
    server.running.stop().await;
}

#[tokio::test]
async fn behind_tls_cookies_are_for_this_host_alone() {
    let server = Server::with(|config| {
        config.public_url = Some("https://chancery.example".to_owned());
    })
    .await;
    let token = token_of(&server, "lin").await;
    let mut lin = Browser::at(&server);
    let entered = lin.sign_in(&token).await;
    let cookie = entered.header("set-cookie").to_owned();
    assert!(cookie.starts_with("__Host-chancery_visit="), "{cookie}");
    for part in ["; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/;"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    assert_eq!(lin.get("/inbox").await.status, 200);
    // A neighbour under the same domain can set a cookie of the plain name, and none of this one.
    let secret = lin.cookie.split_once('=').unwrap().1.to_owned();
    let plain = Browser::with(&server, format!("chancery_visit={secret}"));
    assert_eq!(plain.get("/inbox").await.status, 303);
    // What is put away is put away under the same name, or the browser keeps it.
    let out = lin.fill("/inbox", "/signout", &[]).await;
    let cleared = out.header("set-cookie");
    assert!(cleared.starts_with("__Host-chancery_visit=;"), "{cleared}");
    assert!(cleared.contains("Max-Age=0") && cleared.contains("; Secure"), "{cleared}");
    let taste = filled(lin.request(Method::POST, "/ui/look"), &[("theme", "dark")]);
    assert!(answer(taste).await.header("set-cookie").contains("; Secure"));
    server.running.stop().await;
}
