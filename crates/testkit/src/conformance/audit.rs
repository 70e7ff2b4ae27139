//! The audit: an entry is there if and only if what it is about took place, and the chain holds.

use std::collections::BTreeSet;

use chancery_domain::audit::{Entry, kind};
use chancery_domain::policy::Reason;
use chancery_store::audit::{AuditFilter, Head, Kept};
use chancery_store::fault::Fuse;
use chancery_store::token::{Token, TokenKind};

use super::*;

/// Someone signed in.
pub fn sign_in(user: &str) -> Entry {
    let actor = Actor::User(UserId::from(user));
    let user = Some(UserId::from(user));
    Entry { user, ..Entry::new(clock::new_audit_id(), kind::SIGN_IN, actor) }
}

/// Everything in the chain, oldest first; the chain holds.
pub async fn whole_chain(store: &Store) -> Vec<Kept> {
    let mut chain = Vec::new();
    loop {
        let after = chain.last().map_or(0, |it: &Kept| it.seq);
        let page = store.audit_after(&AuditFilter::default(), after, 100).await.unwrap();
        if page.is_empty() {
            break;
        }
        chain.extend(page);
    }
    let verified = store.audit_verify(None).await.unwrap();
    assert!(verified.ok(), "{verified:?}");
    assert_eq!(verified.entries, chain.len() as u64);
    assert_eq!(verified.head.seq, verified.entries);
    assert_eq!(verified.head.hash, chain.last().map_or(Head::NONE.hash, |it| it.hash));
    chain
}

fn kinds(chain: &[Kept]) -> Vec<String> {
    chain.iter().map(|it| it.link().unwrap().entry.kind.into_owned()).collect()
}

pub async fn an_empty_chain_holds(home: &Home) {
    let store = home.open().await;
    assert_eq!(whole_chain(&store).await, []);
    assert_eq!(store.audit_head().await.unwrap(), (Head::NONE, None));
}

pub async fn an_entry_says_what_it_was_told(home: &Home) {
    let store = home.open().await;
    let reason = Reason {
        layer: "role".to_owned(),
        rule: "clerk.tools".to_owned(),
        outcome: Ruling::Deny,
        detail: "`git_push` is not among the tools".to_owned(),
    };
    let entry = Entry {
        org: Some("acme".to_owned()),
        agent: Some(AgentId::from("clerk")),
        role: Some(RoleId::from("worker")),
        tool: Some("git_push".to_owned()),
        ruling: Some(Ruling::Deny),
        run: Some(clock::new_run_id()),
        reference: Some("perm_7".to_owned()),
        reasons: vec![reason],
        detail: json!({"arguments": {"branch": "main", "n": 1.5}}),
        ..sign_in("ada")
    };
    let at = jiff::Timestamp::from_microsecond(1_700_000_000_000_007).unwrap();
    store.audit(vec![entry.clone()], at).await.unwrap();
    // The same once more is not one more.
    store.audit(vec![entry.clone(), entry.clone()], at).await.unwrap();
    let chain = whole_chain(&store).await;
    assert_eq!(chain.len(), 1);
    let link = chain[0].link().unwrap();
    assert_eq!((link.seq, link.at, &link.entry), (1, at, &entry));
    assert_eq!(store.audit_entry(entry.id).await.unwrap().as_ref(), Some(&chain[0]));
    assert_eq!(store.audit_entry(clock::new_audit_id()).await.unwrap(), None);
    let head = Head { seq: 1, hash: chain[0].hash };
    assert_eq!(store.audit_head().await.unwrap(), (head, Some(at)));
}

pub async fn an_append_brings_its_entry(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("goal")).await;
    append(&store, run, [started()], Fence::Outside).await.unwrap();
    assert_eq!(whole_chain(&store).await, []);
    append(&store, run, [spoke("stop"), cancelled()], Fence::Outside).await.unwrap();
    let chain = whole_chain(&store).await;
    assert_eq!(kinds(&chain), ["run.cancelled"]);
    let entry = chain[0].link().unwrap().entry;
    let expected = Entry::of_run(
        AuditId::of_event(run, 4, 0),
        kind::RUN_CANCELLED,
        ada(),
        run,
        &created("goal"),
    );
    assert_eq!(entry, expected);
}

pub async fn an_append_that_is_refused_writes_no_entry(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("goal")).await;
    let mut late = history(&store, run).await.record(cancelled()).unwrap();
    let lease = claim_one(&store).await;
    let mut lost = history(&store, run).await.record(cancelled()).unwrap();
    let other = home.another(&store).await;
    let_die(&store).await;
    settled(&other).await;
    other.rescue().await.unwrap();
    claim_one(&other).await;
    let refused = store.append(&lost.change().unwrap(), Fence::Lease(&lease), clock::now()).await;
    assert!(matches!(refused, Err(AppendError::LeaseLost(_))), "{refused:?}");
    append(&store, run, [started()], Fence::Outside).await.unwrap();
    let refused = store.append(&late.change().unwrap(), Fence::Outside, clock::now()).await;
    assert!(matches!(refused, Err(AppendError::Conflict { .. })), "{refused:?}");
    let mut nowhere = History::create(clock::new_run_id(), created("never made"));
    nowhere.change().unwrap();
    let mut nowhere = nowhere.record(cancelled()).unwrap();
    let refused = store.append(&nowhere.change().unwrap(), Fence::Outside, clock::now()).await;
    assert!(matches!(refused, Err(AppendError::NoSuchRun(_))), "{refused:?}");
    assert_eq!(whole_chain(&store).await, []);
}

pub async fn tokens_are_made_and_revoked_in_the_audit(home: &Home) {
    let store = home.open().await;
    let token = |name: &str| Token {
        id: clock::new_token_id(),
        kind: TokenKind::Human,
        name: name.to_owned(),
        operator: false,
        approve: false,
        created_at: clock::now(),
        revoked_at: None,
    };
    let entry = |kind| Entry::new(clock::new_audit_id(), kind, Actor::System);
    let made = token("ada");
    assert!(store.add_token(&made, [1; 32], entry(kind::TOKEN_MADE)).await.unwrap());
    assert!(!store.add_token(&token("eve"), [1; 32], entry(kind::TOKEN_MADE)).await.unwrap());
    for valid in [true, false] {
        let revoked = store.revoke_token(made.id, clock::now(), entry(kind::TOKEN_REVOKED)).await;
        assert_eq!(revoked.unwrap(), valid);
    }
    assert_eq!(kinds(&whole_chain(&store).await), ["token.made", "token.revoked"]);
}

pub async fn the_chain_holds_whoever_writes_at_once(home: &Home) {
    const WRITERS: usize = 64;
    const EACH: usize = 6;
    let store = home.open().await;
    let other = home.another(&store).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..WRITERS {
        let store = if n % 2 == 0 { store.clone() } else { other.clone() };
        tasks.spawn(async move {
            let mut ids = Vec::new();
            for m in 0..EACH {
                let run = make(&store, created("goal")).await;
                let entries = vec![sign_in("ada"), sign_in("bob")];
                ids.extend(entries.iter().map(|it| it.id));
                ids.push(AuditId::of_event(run, 2, 0));
                let both = tokio::join!(
                    store.audit(entries, clock::now()),
                    append(&store, run, [cancelled()], Fence::Outside)
                );
                both.0.unwrap();
                both.1.unwrap();
                let token = Token {
                    id: clock::new_token_id(),
                    kind: TokenKind::Human,
                    name: "ada".to_owned(),
                    operator: false,
                    approve: false,
                    created_at: clock::now(),
                    revoked_at: None,
                };
                let entry = Entry::new(clock::new_audit_id(), kind::TOKEN_MADE, ada());
                ids.push(entry.id);
                let digest = [n as u8, m as u8].repeat(16).try_into().unwrap();
                assert!(store.add_token(&token, digest, entry).await.unwrap());
            }
            ids
        });
    }
    let written: BTreeSet<AuditId> = tasks.join_all().await.into_iter().flatten().collect();
    let chain = whole_chain(&store).await;
    let found: BTreeSet<AuditId> = chain.iter().map(|it| it.link().unwrap().entry.id).collect();
    assert_eq!((chain.len(), found), (WRITERS * EACH * 4, written));
}

pub async fn entries_are_found_by_filter_and_page(home: &Home) {
    let store = home.open().await;
    let at = |n: i64| jiff::Timestamp::from_second(1_700_000_000 + n).unwrap();
    let run = clock::new_run_id();
    let name = |it: i64, of: &str| format!("{of}{}", it % 3);
    for n in 1..=12 {
        let entry = Entry {
            agent: Some(AgentId(name(n, "agent"))),
            tool: Some(name(n / 2, "tool")),
            ruling: Some(if n % 2 == 0 { Ruling::Deny } else { Ruling::RequireHuman }),
            run: (n > 10).then_some(run),
            ..sign_in(&name(n / 3, "user"))
        };
        store.audit(vec![entry], at(n)).await.unwrap();
    }
    store
        .audit(vec![Entry::new(clock::new_audit_id(), "odd", Actor::System)], at(13))
        .await
        .unwrap();
    let all = AuditFilter::default;
    let text = |it: &str| Some(it.to_owned());
    for (filter, expected) in [
        (all(), &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1][..]),
        (AuditFilter { agent: Some(AgentId::from("agent1")), ..all() }, &[10, 7, 4, 1]),
        (AuditFilter { tool: text("tool0"), ..all() }, &[12, 7, 6, 1]),
        (AuditFilter { ruling: Some(Ruling::Deny), ..all() }, &[12, 10, 8, 6, 4, 2]),
        (AuditFilter { ruling: Some(Ruling::Allow), ..all() }, &[]),
        (AuditFilter { user: Some(UserId::from("user1")), ..all() }, &[12, 5, 4, 3]),
        (AuditFilter { run: Some(run), ..all() }, &[12, 11]),
        (AuditFilter { kind: text("odd"), ..all() }, &[13]),
        (AuditFilter { since: Some(at(11)), ..all() }, &[13, 12, 11]),
        (AuditFilter { until: Some(at(3)), ..all() }, &[2, 1]),
        (
            AuditFilter {
                since: Some(at(3)),
                until: Some(at(11)),
                ruling: Some(Ruling::Deny),
                agent: Some(AgentId::from("agent1")),
                ..all()
            },
            &[10, 4],
        ),
    ] {
        let mut found: Vec<u64> = Vec::new();
        while let page = store.audit_page(&filter, found.last().copied(), 2).await.unwrap()
            && !page.is_empty()
        {
            found.extend(page.iter().map(|it| it.seq));
        }
        assert_eq!(found, expected, "{filter:?}");
        let forward = store.audit_after(&filter, 0, 100).await.unwrap();
        found.reverse();
        assert_eq!(forward.iter().map(|it| it.seq).collect::<Vec<_>>(), found);
    }
    let chain = whole_chain(&store).await;
    let before = [Head::NONE.hash].into_iter().chain(chain.iter().map(|it| it.hash));
    for (kept, before) in chain.iter().zip(before) {
        assert_eq!(kept.prev, Some(before));
    }
}

pub async fn odd_and_large_entries_are_kept(home: &Home) {
    let store = home.open().await;
    let long = "名\0\u{fffd}🦀\"\\\n".repeat(20_000);
    let deep = (0..200).fold(json!(null), |inner, _| json!({ "a": inner }));
    for detail in [json!(long), deep, json!({"n": u64::MAX, "": {"\u{0}": -0.0}})] {
        let entry = Entry {
            tool: Some(long.clone()),
            agent: Some(AgentId("a\0b".to_owned())),
            user: Some(UserId(long.clone())),
            reference: Some(long.clone()),
            reasons: vec![
                Reason {
                    layer: "role".to_owned(),
                    rule: long.clone(),
                    outcome: Ruling::Deny,
                    detail: long.clone(),
                };
                200
            ],
            detail,
            ..Entry::new(clock::new_audit_id(), kind::RULING, Actor::Service(long.clone()))
        };
        store.audit(vec![entry], clock::now()).await.unwrap();
    }
    assert_eq!(whole_chain(&store).await.len(), 3);
    let odd = AuditFilter { agent: Some(AgentId("a\0b".to_owned())), ..AuditFilter::default() };
    assert_eq!(store.audit_page(&odd, None, 10).await.unwrap().len(), 3);
}

/// Stopped before the write or between the write and the answer, and done again by the next life:
/// the entry is there once, and never without what it is about.
pub async fn a_crash_loses_and_doubles_no_entry(home: &Home) {
    let store = home.open().await;
    for point in 0..2 {
        let run = make(&store, created("goal")).await;
        let fuse = Fuse::at(point);
        let stopped = store.disguised(clock::new_worker_id(), Some(fuse.clone()));
        tokio::select! {
            _ = append(&stopped, run, [cancelled()], Fence::Outside) => panic!("it went on"),
            () = fuse.blown() => {}
        }
        let mine = AuditFilter { run: Some(run), ..AuditFilter::default() };
        let entries = store.audit_page(&mine, None, 10).await.unwrap().len();
        let ended = store.run(run).await.unwrap().unwrap().status == "cancelled";
        assert_eq!((entries, ended), (point as usize, point == 1));
        if !ended {
            append(&store, run, [cancelled()], Fence::Outside).await.unwrap();
        }
        assert_eq!(store.audit_page(&mine, None, 10).await.unwrap().len(), 1);

        let fuse = Fuse::at(point);
        let stopped = store.disguised(clock::new_worker_id(), Some(fuse.clone()));
        let entry = sign_in("ada");
        tokio::select! {
            _ = stopped.audit(vec![entry.clone()], clock::now()) => panic!("it went on"),
            () = fuse.blown() => {}
        }
        assert_eq!(store.audit_entry(entry.id).await.unwrap().is_some(), point == 1);
        store.audit(vec![entry.clone()], clock::now()).await.unwrap();
        assert!(store.audit_entry(entry.id).await.unwrap().is_some());
    }
    assert_eq!(whole_chain(&store).await.len(), 4);
}
