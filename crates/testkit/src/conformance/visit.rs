//! The console: who is signed in, by which link, and what waits for them.

use chancery_domain::audit::{Entry, kind};
use chancery_store::permission::{Before, Pending, PermissionFilter};
use chancery_store::token::{Token, TokenKind};
use jiff::{SignedDuration, Timestamp};

use super::*;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

pub async fn a_visit_ends_with_its_time_its_token_or_by_hand(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let now = clock::now();
    let ada = person(&store, "ada", [1; 32]).await;
    assert!(!store.has_visits(now).await.unwrap());
    for secret in [10, 11, 12] {
        begin(&store, secret, &ada, now).await;
    }
    let seen = |store: &Store, secret: u8, at: Timestamp| {
        let store = store.clone();
        async move { store.visit([secret; 32], at).await.unwrap().map(|it| it.token.id) }
    };
    assert_eq!(seen(&other, 10, now).await, Some(ada.id));
    assert_eq!(seen(&other, 9, now).await, None);
    assert_eq!(seen(&other, 10, now + MINUTE).await, None);
    assert!(!store.has_visits(now + MINUTE).await.unwrap());
    // By hand, and only that one.
    other.end_visit([10; 32]).await.unwrap();
    assert_eq!(seen(&store, 10, now).await, None);
    assert_eq!(seen(&store, 11, now).await, Some(ada.id));
    // What is over makes room for what begins.
    begin(&store, 13, &ada, now + MINUTE + MINUTE).await;
    assert_eq!(seen(&store, 11, now).await, None);
    store.revoke_token(ada.id, now, entry(kind::TOKEN_REVOKED)).await.unwrap();
    assert_eq!(seen(&other, 13, now).await, None);
    assert!(!other.has_visits(now).await.unwrap());
    let page = store.audit_page(&Default::default(), None, 100).await.unwrap();
    assert_eq!(page.len(), 6);
}

pub async fn a_link_lets_one_in(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let now = clock::now();
    store.invite([7; 32], now, now + MINUTE).await.unwrap();
    assert!(other.is_invited([7; 32], now).await.unwrap());
    assert!(!other.is_invited([8; 32], now).await.unwrap());
    assert!(!other.is_invited([7; 32], now + MINUTE).await.unwrap());
    assert!(!other.take_invitation([7; 32], now + MINUTE).await.unwrap());
    let mut takers = tokio::task::JoinSet::new();
    for n in 0..16 {
        let store = if n % 2 == 0 { &store } else { &other }.clone();
        takers.spawn(async move { store.take_invitation([7; 32], now).await.unwrap() });
    }
    let taken = takers.join_all().await.into_iter().filter(|it| *it).count();
    assert_eq!(taken, 1);
    assert!(!store.is_invited([7; 32], now).await.unwrap());
}

pub async fn what_waits_is_counted_for_whom_it_concerns(home: &Home) {
    let store = home.open().await;
    assert_eq!(store.pending(None).await.unwrap(), Pending::default());
    let run = make(&store, created("one")).await;
    let asks = proposed(&[("a", Ruling::RequireApproval), ("b", Ruling::RequireApproval)], 1);
    append(&store, run, [started(), asks], Fence::Outside).await.unwrap();
    let listed = store.permissions(&PermissionFilter::default(), 10).await.unwrap();
    let newest = listed.last().map(|it| it.id);
    let both = Pending { count: 2, newest };
    let (ada, eve) = (UserId::from("ada"), UserId::from("eve"));
    assert_eq!(store.pending(None).await.unwrap(), both);
    assert_eq!(store.pending(Some(&ada)).await.unwrap(), both);
    assert_eq!(store.pending(Some(&eve)).await.unwrap(), Pending::default());
    let filter = PermissionFilter { newest_first: true, ..PermissionFilter::default() };
    let reversed = store.permissions(&filter, 10).await.unwrap();
    assert!(reversed.iter().rev().map(|it| it.id).eq(listed.iter().map(|it| it.id)));
    append(&store, run, [Cancelled { by: super::ada() }.into()], Fence::Outside).await.unwrap();
    assert_eq!(store.pending(None).await.unwrap(), Pending::default());
}

pub async fn what_was_answered_before_is_counted(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("one")).await;
    let asks = proposed(&[("a", Ruling::RequireApproval), ("b", Ruling::RequireApproval)], 1);
    append(&store, run, [started(), asks], Fence::Outside).await.unwrap();
    let asked = store.permissions(&PermissionFilter::default(), 10).await.unwrap();
    let (agent, tool) = (asked[0].agent.clone(), asked[0].call.tool.clone());
    let before = async |since: Timestamp| store.asked_before(&agent, &tool, since).await.unwrap();
    let denied = PermissionDecided {
        call: asked[0].call.id.clone(),
        permission: asked[0].id,
        decision: Decision::Denied,
        by: super::ada(),
        comment: None,
        arguments: None,
        remember: None,
    };
    append(&store, run, [denied.into()], Fence::Outside).await.unwrap();
    let expected = Before { asked: 2, denied: 1, ..Before::default() };
    assert_eq!(before(Timestamp::UNIX_EPOCH).await, expected);
    assert_eq!(before(Timestamp::MAX).await, Before::default());
    let other = AgentId::from("nobody");
    let none = store.asked_before(&other, &tool, Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(none, Before::default());
}

pub async fn visits_are_listed_and_ended_by_whose_they_are(home: &Home) {
    let store = home.open().await;
    let now = clock::now();
    let (ada, also_ada) =
        (person(&store, "ada", [1; 32]).await, person(&store, "ada", [2; 32]).await);
    let eve = person(&store, "eve", [3; 32]).await;
    let listed = async |of: Option<&str>, at: Timestamp| -> Vec<(u8, String)> {
        let found = store.visits(of, at, 100).await.unwrap();
        found.into_iter().map(|it| (it.digest[0], it.name)).collect()
    };
    let second = SignedDuration::from_secs(1);
    begin(&store, 10, &ada, now).await;
    begin(&store, 11, &also_ada, now + second).await;
    begin(&store, 12, &eve, now + second + second).await;
    let of = |secret: u8, name: &str| (secret, name.to_owned());
    assert_eq!(listed(None, now).await, [of(12, "eve"), of(11, "ada"), of(10, "ada")]);
    assert_eq!(listed(Some("ada"), now).await, [of(11, "ada"), of(10, "ada")]);
    assert_eq!(listed(Some("ada"), now + MINUTE).await, [of(11, "ada")]);
    assert_eq!(listed(Some("nobody"), now).await, []);
    let end = async |of: Option<&str>, secret: u8| {
        store.end_visit_of(of, [secret; 32], now, entry(kind::SIGN_OUT)).await.unwrap()
    };
    assert!(!end(Some("ada"), 12).await);
    assert!(end(Some("ada"), 10).await);
    assert!(!end(Some("ada"), 10).await);
    begin(&store, 13, &ada, now).await;
    let all = async |but: u8| {
        store.end_visits("ada", [but; 32], now, entry(kind::SIGN_OUT)).await.unwrap()
    };
    assert_eq!(all(11).await, 1);
    assert_eq!(all(11).await, 0);
    assert_eq!(listed(None, now).await, [of(12, "eve"), of(11, "ada")]);
    assert!(end(None, 12).await);
    let page = store.audit_page(&Default::default(), None, 100).await.unwrap();
    let ended = page.iter().filter(|it| it.link().unwrap().entry.kind == kind::SIGN_OUT).count();
    assert_eq!(ended, 3);
}

pub(super) async fn person(store: &Store, name: &str, digest: [u8; 32]) -> Token {
    let token = Token {
        id: clock::new_token_id(),
        kind: TokenKind::Human,
        name: name.to_owned(),
        operator: false,
        approve: false,
        created_at: clock::now(),
        revoked_at: None,
    };
    assert!(store.add_token(&token, digest, entry(kind::TOKEN_MADE)).await.unwrap());
    token
}

pub(super) async fn begin(store: &Store, secret: u8, token: &Token, at: Timestamp) {
    let until = at + MINUTE;
    store.begin_visit([secret; 32], token.id, at, until, entry(kind::SIGN_IN)).await.unwrap();
}

pub(super) fn entry(kind: &'static str) -> Entry {
    Entry::new(clock::new_audit_id(), kind, Actor::System)
}
