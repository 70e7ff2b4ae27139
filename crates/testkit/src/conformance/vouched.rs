//! People whom an issuer vouches for.

use jiff::SignedDuration;

use super::visit::{begin, entry, person};
use super::*;
use chancery_domain::audit::kind;
use chancery_store::vouched::Vouched;

const ISSUER: &str = "https://id.example";
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

pub async fn a_name_is_given_once_and_for_good(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let now = clock::now();
    assert_eq!(store.vouched(ISSUER, "1").await.unwrap(), None);
    assert!(store.vouch(ISSUER, "1", "ada", now).await.unwrap());
    let ada = Some(Vouched { name: "ada".to_owned(), token: None });
    assert_eq!(other.vouched(ISSUER, "1").await.unwrap(), ada);
    // Neither another name for them, nor their name for another.
    for (issuer, subject, name) in
        [(ISSUER, "1", "eve"), (ISSUER, "2", "ada"), ("https://other.example", "1", "ada")]
    {
        assert!(!other.vouch(issuer, subject, name, now).await.unwrap(), "{issuer} {subject}");
    }
    assert_eq!(other.vouched(ISSUER, "1").await.unwrap(), ada);
    assert_eq!(other.vouched(ISSUER, "2").await.unwrap(), None);
    let mut takers = tokio::task::JoinSet::new();
    for n in 0..16 {
        let store = if n % 2 == 0 { &store } else { &other }.clone();
        let subject = format!("s{n}");
        takers.spawn(async move { store.vouch(ISSUER, &subject, "max", now).await.unwrap() });
    }
    assert_eq!(takers.join_all().await.into_iter().filter(|it| *it).count(), 1);
    // Of two servers that replace a token, one does.
    let (one, two) = (clock::new_token_id(), clock::new_token_id());
    assert!(store.stand_on(ISSUER, "1", None, one).await.unwrap());
    assert!(!other.stand_on(ISSUER, "1", None, two).await.unwrap());
    assert!(other.stand_on(ISSUER, "1", Some(one), two).await.unwrap());
    assert!(!store.stand_on(ISSUER, "1", Some(one), one).await.unwrap());
    assert_eq!(store.vouched(ISSUER, "1").await.unwrap().unwrap().token, Some(two));
    assert!(!store.is_person("lin").await.unwrap());
    person(&store, "lin", [1; 32]).await;
    assert!(other.is_person("lin").await.unwrap());
}

pub async fn whoever_was_sent_away_comes_back_once(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let now = clock::now();
    store.depart([7; 32], "/inbox", now, now + MINUTE).await.unwrap();
    assert_eq!(other.come_back([8; 32], now).await.unwrap(), None);
    assert_eq!(other.come_back([7; 32], now + MINUTE).await.unwrap(), None);
    let mut takers = tokio::task::JoinSet::new();
    for n in 0..16 {
        let store = if n % 2 == 0 { &store } else { &other }.clone();
        takers.spawn(async move { store.come_back([7; 32], now).await.unwrap() });
    }
    let back: Vec<String> = takers.join_all().await.into_iter().flatten().collect();
    assert_eq!(back, ["/inbox"]);
    // What is over is swept away by the next one.
    store.depart([9; 32], "/", now, now + MINUTE).await.unwrap();
    store.depart([10; 32], "/", now + MINUTE, now + MINUTE + MINUTE).await.unwrap();
    assert_eq!(store.come_back([9; 32], now).await.unwrap(), None);
    assert_eq!(store.come_back([10; 32], now + MINUTE).await.unwrap(), Some("/".to_owned()));
}

pub async fn a_visit_says_whether_somebody_vouches_for_it(home: &Home) {
    let store = home.open().await;
    let now = clock::now();
    let (ada, eve) = (person(&store, "ada", [1; 32]).await, person(&store, "eve", [2; 32]).await);
    assert!(store.vouch(ISSUER, "1", "ada", now).await.unwrap());
    assert!(store.stand_on(ISSUER, "1", None, ada.id).await.unwrap());
    begin(&store, 10, &ada, now).await;
    begin(&store, 11, &eve, now).await;
    let visit = async |secret: u8| store.visit([secret; 32], now).await.unwrap().unwrap();
    let (of_ada, of_eve) = (visit(10).await, visit(11).await);
    assert_eq!((of_ada.token.id, of_ada.vouched), (ada.id, true));
    assert_eq!((of_eve.token.id, of_eve.vouched), (eve.id, false));
    store.revoke_token(ada.id, now, entry(kind::TOKEN_REVOKED)).await.unwrap();
    assert_eq!(store.visit([10; 32], now).await.unwrap(), None);
}
