//! Versions of the organisation: numbered, kept, the same one only once.

use std::collections::BTreeMap;

use chancery_domain::audit::{Entry, kind};
use chancery_store::audit::AuditFilter;
use chancery_store::org::{NewOrgVersion, OrgSource};

use super::*;

fn version(text: &str, source: OrgSource) -> NewOrgVersion {
    NewOrgVersion {
        digest: format!("digest of {text}"),
        at: clock::now(),
        by: Actor::User("lin".into()),
        source,
        files: BTreeMap::from([("roles.yaml".to_owned(), text.to_owned())]),
        made_from: None,
    }
}

fn entry(number: u64) -> Entry {
    let by = Actor::User("lin".into());
    let reference = Some(number.to_string());
    Entry { reference, ..Entry::new(clock::new_audit_id(), kind::ORG_CHANGED, by) }
}

pub async fn a_version_is_kept_with_its_files(home: &Home) {
    let store = home.open().await;
    assert_eq!(store.newest_org_version().await.unwrap(), None);
    let new = version("roles: {} # 定", OrgSource::Files);
    let added = store.add_org_version(&new, entry).await.unwrap().unwrap();
    assert_eq!((added.number, &added.digest), (1, &new.digest));
    let (read, files) = store.org_version(1).await.unwrap().unwrap();
    assert_eq!((read.digest, read.by, read.source), (added.digest, new.by, OrgSource::Files));
    assert_eq!(read.at.as_microsecond(), new.at.as_microsecond());
    assert_eq!(files, new.files);
    assert_eq!(store.org_version(2).await.unwrap(), None);
    assert_eq!(store.org_version(u64::MAX).await.unwrap(), None);
}

pub async fn the_same_organisation_makes_no_new_version(home: &Home) {
    let store = home.open().await;
    for (text, number) in [("a", 1), ("a", 1), ("b", 2), ("a", 3), ("a", 3)] {
        let added = store.add_org_version(&version(text, OrgSource::Api), entry).await.unwrap();
        assert_eq!(added.unwrap().number, number, "{text}");
    }
    let audited = store.audit_page(&AuditFilter::default(), None, 10).await.unwrap();
    let of = |it: &chancery_store::audit::Kept| it.link().unwrap().entry.reference.unwrap();
    assert_eq!(audited.iter().map(of).collect::<Vec<_>>(), ["3", "2", "1"]);
    assert_eq!(numbers(&store, None).await, [3, 2, 1]);
    assert_eq!(numbers(&store, Some(3)).await, [2, 1]);
    assert_eq!(store.newest_org_version_found().await.unwrap(), None);
    store.add_org_version(&version("c", OrgSource::BuiltIn), entry).await.unwrap();
    store.add_org_version(&version("d", OrgSource::Api), entry).await.unwrap();
    assert_eq!(store.newest_org_version_found().await.unwrap().unwrap().number, 4);
    assert_eq!(store.newest_org_version().await.unwrap().unwrap().number, 5);
}

async fn numbers(store: &Store, before: Option<u64>) -> Vec<u64> {
    let found = store.org_versions(before, 10).await.unwrap();
    found.into_iter().map(|it| it.number).collect()
}

pub async fn versions_that_come_at_once_have_numbers_of_their_own(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let texts: Vec<String> = (0..20).map(|it| format!("text {it}")).collect();
    let adding = texts.iter().enumerate().map(|(place, text)| {
        let store = if place % 2 == 0 { &store } else { &other };
        async move {
            let added = store.add_org_version(&version(text, OrgSource::Api), entry).await;
            added.unwrap().unwrap().number
        }
    });
    let mut numbers = futures_util::future::join_all(adding).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<u64>>());
}

pub async fn a_version_follows_the_one_that_it_was_made_from(home: &Home) {
    let store = home.open().await;
    let made_from = |text: &str, number| NewOrgVersion {
        made_from: Some(number),
        ..version(text, OrgSource::Api)
    };
    for text in ["a", "b"] {
        store.add_org_version(&version(text, OrgSource::Api), entry).await.unwrap();
    }
    assert_eq!(store.add_org_version(&made_from("c", 1), entry).await.unwrap(), None);
    assert_eq!(store.newest_org_version().await.unwrap().unwrap().number, 2);
    // What is in force already needs nobody to be asked again.
    let same = store.add_org_version(&made_from("b", 1), entry).await.unwrap();
    assert_eq!(same.unwrap().number, 2);
    let next = store.add_org_version(&made_from("c", 2), entry).await.unwrap();
    assert_eq!(next.unwrap().number, 3);
    // Of those that are made from one version at once, one is kept.
    let other = home.another(&store).await;
    let texts: Vec<String> = (0..10).map(|it| format!("text {it}")).collect();
    let adding = texts.iter().enumerate().map(|(place, text)| {
        let store = if place % 2 == 0 { &store } else { &other };
        async move { store.add_org_version(&made_from(text, 3), entry).await.unwrap() }
    });
    let kept = futures_util::future::join_all(adding).await;
    assert_eq!(kept.iter().flatten().map(|it| it.number).collect::<Vec<_>>(), [4]);
}
