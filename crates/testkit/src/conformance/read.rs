//! Questions: lists, trees, sessions, prefixes, tokens.

use chancery_domain::policy::Bounds;
use chancery_store::read::{Exchange, RunFilter};
use chancery_store::token::{Token, TokenKind};

use super::*;

pub async fn a_row_says_all_that_the_run_was_made_with(home: &Home) {
    let store = home.open().await;
    let whole = Created {
        project: Some(ProjectId::from("bridge")),
        group: Some(GroupId::from("legal")),
        session_key: Some(SessionKey::from("monday")),
        parent: Some(clock::new_run_id()),
        delegated: Some(Bounds {
            allowed_tools: Some(vec![]),
            denied_tools: vec!["x*".to_owned()],
        }),
        ..created("x")
    };
    for created in [whole, created("y")] {
        let run = make(&store, created.clone()).await;
        let row = store.run(run).await.unwrap().unwrap();
        let back = Created {
            org: row.org,
            agent: row.agent,
            role: row.role,
            user: row.user,
            project: row.project,
            group: row.group,
            session_key: row.session_key,
            parent: row.parent,
            ancestors: Vec::new(),
            room: None,
            persons_words: Vec::new(),
            delegated: row.delegated,
            input: row.input,
            by: ada(),
            org_version: 0,
            contract: None,
            mails: vec![],
            call: None,
            forked: None,
        };
        assert_eq!(back, created);
    }
}

pub async fn runs_are_listed_newest_first_by_filter_and_page(home: &Home) {
    let store = home.open().await;
    let mut runs = Vec::new();
    for n in 0..12 {
        let user = UserId::from(if n % 2 == 0 { "ada" } else { "bo" });
        let agent = AgentId::from(if n % 3 == 0 { "clerk" } else { "cook" });
        let group = (n % 4 == 0).then(|| GroupId::from("legal"));
        let parent = (n > 9).then(|| runs[0]);
        let session_key = (n % 5 == 0).then(|| SessionKey::from("talk"));
        let made = Created { user, agent, group, parent, session_key, ..created("x") };
        runs.push(make(&store, made).await);
    }
    append(&store, runs[3], [cancelled()], Fence::Outside).await.unwrap();
    let list = async |filter: RunFilter, limit| -> Vec<usize> {
        let rows = store.runs(&filter, limit).await.unwrap();
        rows.iter().map(|row| runs.iter().position(|it| *it == row.id).unwrap()).collect()
    };
    let all = RunFilter::default();
    assert_eq!(list(all.clone(), 3).await, [11, 10, 9]);
    assert_eq!(list(RunFilter { before: Some(runs[9]), ..all.clone() }, 3).await, [8, 7, 6]);
    assert_eq!(list(RunFilter { before: Some(runs[0]), ..all.clone() }, 3).await, [] as [usize; 0]);
    let bo = RunFilter { user: Some(UserId::from("bo")), ..all.clone() };
    assert_eq!(list(bo.clone(), 100).await, [11, 9, 7, 5, 3, 1]);
    let both = RunFilter { agent: Some(AgentId::from("clerk")), ..bo };
    assert_eq!(list(both.clone(), 100).await, [9, 3]);
    let status = Some("cancelled".to_owned());
    assert_eq!(list(RunFilter { status, ..both }, 100).await, [3]);
    let group = Some(GroupId::from("legal"));
    assert_eq!(list(RunFilter { group, ..all.clone() }, 100).await, [8, 4, 0]);
    let session_key = Some(SessionKey::from("talk"));
    assert_eq!(list(RunFilter { session_key, ..all.clone() }, 2).await, [10, 5]);
    let parent = Some(runs[0]);
    assert_eq!(list(RunFilter { parent, ..all.clone() }, 100).await, [11, 10]);
    let quoted = Some(UserId::from("' OR 1 = 1 --"));
    assert_eq!(list(RunFilter { user: quoted, ..all }, 100).await, [] as [usize; 0]);
    assert_eq!(store.ended_among(&runs).await.unwrap(), [runs[3]]);
    assert_eq!(store.ended_among(&[]).await.unwrap(), []);
    let counts = [("cancelled".to_owned(), 1), ("pending".to_owned(), 11)];
    assert_eq!(store.count_by_status().await.unwrap(), counts);
}

pub async fn a_tree_is_a_run_and_all_that_it_led_to(home: &Home) {
    let store = home.open().await;
    let child =
        async |parent: RunId| make(&store, Created { parent: Some(parent), ..created("x") }).await;
    let root = make(&store, created("x")).await;
    let stranger = make(&store, created("x")).await;
    let (a, b) = (child(root).await, child(root).await);
    let (aa, other) = (child(a).await, child(stranger).await);
    let tree = async |root, limit| -> Vec<RunId> {
        store.tree(root, limit).await.unwrap().iter().map(|it| it.id).collect()
    };
    assert_eq!(tree(root, 100).await, [root, a, b, aa]);
    assert_eq!(tree(root, 2).await, [root, a]);
    assert_eq!(tree(a, 100).await, [a, aa]);
    assert_eq!(tree(stranger, 100).await, [stranger, other]);
    assert_eq!(tree(clock::new_run_id(), 100).await, []);
}

/// Only what was completed, by the same user with the same agent, before, oldest first.
pub async fn a_session_is_what_was_said_before(home: &Home) {
    let store = home.open().await;
    let session = || Created { session_key: Some(SessionKey::from("s")), ..created("x") };
    let said = async |created: Created, end: Option<Event>| {
        let run = make(&store, created).await;
        append(&store, run, std::iter::once(started()).chain(end), Fence::Outside).await.unwrap();
        run
    };
    for n in 0..4 {
        let input = format!("q{n}");
        let run = said(Created { input, ..session() }, Some(completed(&format!("a{n}")))).await;
        assert!(store.run(run).await.unwrap().unwrap().ended_at.is_some());
    }
    said(session(), Some(failed())).await;
    said(session(), None).await;
    said(Created { user: UserId::from("bo"), ..session() }, Some(completed("bo's"))).await;
    said(Created { agent: AgentId::from("cook"), ..session() }, Some(completed("cook's"))).await;
    said(created("x"), Some(completed("alone"))).await;
    let now = said(session(), None).await;
    said(Created { input: "later".to_owned(), ..session() }, Some(completed("later"))).await;
    let row = store.run(now).await.unwrap().unwrap();
    let exchange = |n| Exchange { input: format!("q{n}"), output: format!("a{n}") };
    let before = store.session_before(&row, 20).await.unwrap();
    assert_eq!(before, [exchange(0), exchange(1), exchange(2), exchange(3)]);
    assert_eq!(store.session_before(&row, 2).await.unwrap(), [exchange(2), exchange(3)]);
    let alone = make(&store, created("x")).await;
    let row = store.run(alone).await.unwrap().unwrap();
    assert_eq!(store.session_before(&row, 20).await.unwrap(), []);
}

pub async fn a_run_is_found_by_how_its_id_begins(home: &Home) {
    let store = home.open().await;
    let run = |n: u128| RunId(uuid::Uuid::from_u128(n));
    let ids = [0x0a00 << 112, (0x0a00 << 112) + 1, 0x0b00 << 112, u128::MAX];
    for id in ids {
        let mut history = History::create(run(id), created("x"));
        store.create(&history.change().unwrap(), None, clock::now()).await.unwrap();
    }
    let between = async |from, to| store.runs_between(run(from), run(to), None).await.unwrap();
    assert_eq!(between(ids[0], ids[0]).await, [run(ids[0])]);
    assert_eq!(between(0x0b << 120, (0x0c << 120) - 1).await, [run(ids[2])]);
    assert_eq!(between(0x0a << 120, (0x0b << 120) - 1).await, [run(ids[0]), run(ids[1])]);
    // Two are enough to say that there are several.
    assert_eq!(between(0, u128::MAX).await.len(), 2);
    assert_eq!(between(0xff << 120, u128::MAX).await, [run(u128::MAX)]);
    assert_eq!(between(0, 5).await, []);
}

pub async fn tokens_are_kept_found_and_revoked(home: &Home) {
    let store = home.open().await;
    let at = |it: i64| jiff::Timestamp::from_microsecond(it).unwrap();
    let token = |kind, name: &str| Token {
        id: clock::new_token_id(),
        kind,
        name: name.to_owned(),
        operator: kind == TokenKind::Human,
        approve: kind == TokenKind::Service,
        created_at: at(1_700_000_000_000_007),
        revoked_at: None,
    };
    let entry = || audit::sign_in("ada");
    let tokens = [
        token(TokenKind::Human, "ada"),
        token(TokenKind::Service, "watchdog"),
        token(TokenKind::Agent, "clerk 🦀"),
    ];
    for (n, token) in (0u8..).zip(&tokens) {
        assert!(store.add_token(token, [n; 32], entry()).await.unwrap());
        assert_eq!(store.token_by_digest([n; 32]).await.unwrap().as_ref(), Some(token));
    }
    // The same secret again changes nothing.
    assert!(!store.add_token(&token(TokenKind::Human, "eve"), [0; 32], entry()).await.unwrap());
    assert_eq!(store.tokens().await.unwrap(), tokens);
    assert_eq!(store.token_by_digest([9; 32]).await.unwrap(), None);

    assert!(store.revoke_token(tokens[0].id, at(5), entry()).await.unwrap());
    assert!(!store.revoke_token(tokens[0].id, at(6), entry()).await.unwrap());
    assert!(!store.revoke_token(clock::new_token_id(), at(6), entry()).await.unwrap());
    assert_eq!(store.token_by_digest([0; 32]).await.unwrap(), None);
    assert_eq!(store.tokens().await.unwrap()[0].revoked_at, Some(at(5)));
}

pub async fn how_far_runs_have_come_is_another_with_every_event(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let session = SessionKey::from("talk");
    let talk = Created { session_key: Some(session.clone()), ..created("above") };
    let above = make(&store, talk).await;
    let beneath = make(&store, Created { parent: Some(above), ..created("beneath") }).await;
    let elsewhere = make(&store, Created { user: "eve".into(), ..created("elsewhere") }).await;
    let (ada, eve) = (UserId::from("ada"), UserId::from("eve"));
    let seen = async || {
        [
            other.progress_of_newest(None, 100).await.unwrap(),
            other.progress_of_newest(Some(&ada), 100).await.unwrap(),
            other.progress_of_newest(Some(&eve), 100).await.unwrap(),
            other.progress_of_tree(above, 100).await.unwrap(),
            other.progress_of_session(&ada, &session, 100).await.unwrap(),
            other.progress_of_session(&eve, &session, 100).await.unwrap(),
        ]
    };
    assert_eq!(seen().await, [(3, 3), (2, 2), (1, 1), (2, 2), (2, 2), (0, 0)]);
    append(&store, beneath, [spoke("hurry")], Fence::Outside).await.unwrap();
    assert_eq!(seen().await, [(3, 4), (2, 3), (1, 1), (2, 3), (2, 3), (0, 0)]);
    append(&store, elsewhere, [spoke("hurry")], Fence::Outside).await.unwrap();
    assert_eq!(seen().await, [(3, 5), (2, 3), (1, 2), (2, 3), (2, 3), (0, 0)]);
    assert_eq!(other.progress_of_newest(None, 1).await.unwrap(), (1, 2));
}
