//! Ways to be let in as somebody whom the issuer does not vouch for, and an issuer that misbehaves.

use chancery_testkit::fake_issuer::{Signing, TokenDoor};
use serde_json::{Value, json};

use crate::house::{On, on_both};
use crate::oidc::Vouching;

on_both! {
    an_answer_counts_once_and_in_the_browser_that_asked;
}

const UNTRUE: &str = "is not to be believed";

async fn an_answer_counts_once_and_in_the_browser_that_asked(on: On) {
    let it = Vouching::open(on).await;
    let mut lin = it.surfer();
    let back = lin.go("/inbox").await;
    let departed = lin.clone();
    // A link that somebody else is made to follow: signed in as lin, without knowing.
    let mut victim = it.surfer();
    let told = victim.get(&back).await;
    it.refused(&victim, &told, 403, "was not sent").await;
    let mut under_way = it.surfer();
    let own = under_way.go("/inbox").await;
    let told = under_way.get(&back).await;
    it.refused(&under_way, &told, 403, "belongs to another browser").await;
    // What they were about to do themselves is not spoilt by it.
    assert_eq!(under_way.get(&own).await.status, 200);
    assert!(under_way.is_in());
    assert_eq!(lin.get(&back).await.status, 200);
    assert!(lin.is_in());
    // Again: the cookie is gone, and who has kept it is told the same.
    let mut again = departed.clone();
    assert!(again.cookies.contains_key("chancery_departure"));
    let told = again.get(&back).await;
    it.refused(&again, &told, 403, "was used before").await;
    // A code that somebody else was given, with one's own state: only who asked can redeem it.
    let (mut thief, mut owner) = (it.surfer(), it.surfer());
    let (own, stolen) = (thief.go("/").await, owner.go("/").await);
    let code = |url: &str| {
        let (_, after) = url.split_once("code=").unwrap();
        after.split('&').next().unwrap().to_owned()
    };
    let mixed = own.replace(&code(&own), &code(&stolen));
    let told = thief.get(&mixed).await;
    it.refused(&thief, &told, 403, "refused: invalid_grant").await;
    // A state that is said twice, or not at all, or without a code.
    for change in [
        |url: &str| format!("{url}&state=x"),
        |url: &str| url.replace("state=", "stat="),
        |url: &str| url.replace("code=", "cod="),
        |url: &str| format!("{}&code={}", url.replace("code=", "cod="), "c".repeat(5000)),
    ] {
        let mut odd = it.surfer();
        let url = change(&odd.go("/").await);
        let told = odd.get(&url).await;
        assert!([400, 403].contains(&told.status) && !odd.is_in(), "{url}: {told:?}");
    }
    // Whoever says no at the issuer is told so, in words of ours.
    for (error, shown) in
        [("access_denied", "refused: access_denied"), ("%3Cb%3Ehi", "it did not say why")]
    {
        let mut denied = it.surfer();
        let url = denied.go("/").await.replace("code=", &format!("error={error}&cod="));
        let told = denied.get(&url).await;
        it.refused(&denied, &told, 403, shown).await;
        assert!(!told.text.contains("<b>hi"));
    }
    it.house.close().await;
}

#[tokio::test]
async fn a_token_is_believed_only_if_every_word_of_it_holds() {
    let it = Vouching::open(On::Sqlite).await;
    let lin = |change: Value| {
        let mut claims = json!({"preferred_username": "lin", "groups": ["ops"]});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    };
    for (claims, why) in [
        (json!({"nonce": "another"}), "does not answer what was asked"),
        (json!({"nonce": null}), "does not answer what was asked"),
        (json!({"aud": "another"}), "another client"),
        (json!({"aud": ["chancery", "another"]}), "another client"),
        (json!({"azp": "another"}), "another client"),
        (json!({"iss": "https://evil.example"}), "another issuer"),
        (json!({"exp": 1_700_000_000}), "expired"),
        (json!({"exp": null}), "no end"),
        (json!({"iat": 4_000_000_000u64}), "a time to come"),
        (json!({"sub": ""}), "of whom"),
    ] {
        it.issuer.says(lin(claims));
        let mut surfer = it.surfer();
        let told = surfer.sign_in().await;
        it.refused(&surfer, &told, 403, UNTRUE).await;
        it.refused(&surfer, &told, 403, why).await;
    }
    it.issuer.says(lin(json!({})));
    for (signing, why) in [
        (Signing::None, "cannot be read"),
        (Signing::NoneButSigned, "cannot be read"),
        (Signing::PublicKeyAsSecret, "not signed by a key pair"),
        (Signing::Stranger, "signature is not right"),
        (Signing::Changed, "signature is not right"),
        (Signing::UnknownKey, "key is not known"),
    ] {
        it.issuer.set(|it| it.signing = signing);
        let mut surfer = it.surfer();
        let told = surfer.sign_in().await;
        it.refused(&surfer, &told, 403, why).await;
    }
    // Keys are not asked for as often as somebody shows one that is not known.
    it.issuer.set(|it| it.signing = Signing::UnknownKey);
    for _ in 0..12 {
        assert_eq!(it.surfer().sign_in().await.status, 403);
    }
    assert!(it.issuer.asked().0 <= 6, "{:?}", it.issuer.asked());
    it.issuer.set(|it| it.signing = Signing::Nameless);
    let mut surfer = it.surfer();
    surfer.sign_in().await;
    assert!(surfer.is_in());
    let let_in = it.audited("sign_in").await;
    assert_eq!(let_in.len(), 1, "{let_in:?}");
    it.house.close().await;
}

#[tokio::test]
async fn names_and_groups_that_could_be_read_otherwise_are_refused() {
    let it = Vouching::open(On::Sqlite).await;
    for name in [
        "agent:pa",
        "service:ci",
        "operator",
        "OPERATOR",
        "board",
        "",
        " lin",
        "li\u{202e}n",
        "li\u{200b}n",
        "li\nn",
        "li\u{0}n",
        "l\u{456}n",
        "../lin",
        "<b>lin</b>",
        "-lin",
        &"x".repeat(129),
    ] {
        it.issuer.says(json!({"preferred_username": name, "groups": ["staff"]}));
        let mut surfer = it.surfer();
        let told = surfer.sign_in().await;
        it.refused(&surfer, &told, 403, "cannot be used here").await;
    }
    it.issuer.says(json!({"preferred_username": 7, "groups": ["staff"]}));
    let mut surfer = it.surfer();
    let told = surfer.sign_in().await;
    it.refused(&surfer, &told, 403, "cannot be used here").await;
    for groups in [json!("staff"), json!("staff ops"), json!({"staff": true}), json!(["staff", 1])]
    {
        it.issuer.says(json!({"preferred_username": "lin", "groups": groups}));
        let told = surfer.sign_in().await;
        it.refused(&surfer, &told, 403, "`groups` is not a list of names").await;
    }
    it.house.close().await;
}

#[tokio::test]
async fn an_issuer_that_misbehaves_holds_nobody_up_and_learns_nothing() {
    let it = Vouching::open(On::Sqlite).await;
    for (door, why) in [
        (TokenDoor::Fails(500), "its token endpoint answered 500"),
        (TokenDoor::Redirects, "its token endpoint answered 307"),
        (TokenDoor::BreaksOff, "broke off"),
        (TokenDoor::Floods, "is too long"),
        (TokenDoor::Hangs, "took too long"),
    ] {
        it.issuer.set(|it| it.door = door);
        let mut surfer = it.surfer();
        let told = surfer.sign_in().await;
        it.refused(&surfer, &told, 502, why).await;
        assert!(!told.text.contains("it hurts"));
    }
    it.house.close().await;
}

#[tokio::test]
async fn one_issuer_does_not_pass_for_another() {
    for (document, why) in [
        (json!({"issuer": "https://evil.example"}), "of another issuer"),
        (json!({"token_endpoint": "http://evil.example/token"}), "`token_endpoint` is not"),
        (json!({"jwks_uri": null}), "discovery document"),
        (json!({"code_challenge_methods_supported": ["plain"]}), "PKCE"),
    ] {
        let it = Vouching::open(On::Sqlite).await;
        it.issuer.set(|it| it.document = document);
        let mut surfer = it.surfer();
        let told = surfer.get("/signin/oidc").await;
        it.refused(&surfer, &told, told.status, why).await;
        assert!([403, 502].contains(&told.status), "{told:?}");
        assert!(surfer.cookies.is_empty());
        it.house.close().await;
    }
    let it = Vouching::open(On::Sqlite).await;
    it.issuer.set(|it| it.sends_iss = Some("https://evil.example".to_owned()));
    let mut surfer = it.surfer();
    let told = surfer.sign_in().await;
    it.refused(&surfer, &told, 403, "comes from another issuer").await;
    assert_eq!(it.issuer.asked().1, 0);
    let url = it.issuer.url();
    it.issuer.set(|it| it.sends_iss = Some(url));
    let back = surfer.go("/").await;
    let (without, _) = back.split_once("&iss=").unwrap();
    let told = surfer.get(without).await;
    it.refused(&surfer, &told, 403, "does not say which issuer").await;
    surfer.sign_in().await;
    assert!(surfer.is_in());
    it.house.close().await;
}
