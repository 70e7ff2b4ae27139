//! Mail: exactly once, handed over once, and what nobody answers, by a clock of its own.

use std::collections::BTreeMap;

use chancery_domain::audit::{Entry, kind};
use chancery_domain::contract::State;
use chancery_domain::mail::{Attachment, BOARD, Draft, Priority, Step};
use chancery_domain::org::{Agent, Contact, Direction, MailType, Org, Role};
use chancery_domain::policy::Bounds;
use chancery_domain::raise::Next;
use chancery_runtime::mailroom::{Mailroom, Terms, look};
use chancery_store::mail::{Behalf, Outgoing, Raised, Rates, Sent, Stepped, WantedStep, Whose};
use jiff::{SignedDuration, Timestamp};

use super::*;

/// A worker, its manager, and the head; the board above.
pub fn small_company() -> Arc<Org> {
    let types = [
        ("info", Direction::Any),
        ("escalation", Direction::Up),
        ("report", Direction::Up),
        ("contract", Direction::Down),
    ];
    let contact = || Contact { types: Vec::new(), needs_active_contract: false };
    let role = |id: &str, level: u8, above: &str, contacts: &[&str]| Role {
        level,
        reports_to: vec![above.into()],
        contacts: contacts.iter().map(|it| ((*it).to_owned(), contact())).collect(),
        ..Role::unlimited(id)
    };
    let roles = [
        role("head", 1, "board", &["manager", "board"]),
        role("manager", 2, "head", &["head", "worker"]),
        role("worker", 3, "manager", &["manager"]),
    ];
    let agents = ["head", "manager", "worker"].map(|it| (AgentId::from(it), Agent::of(it)));
    let mut org = Org::new(roles, agents).unwrap();
    org.mail = types
        .into_iter()
        .map(|(name, direction)| {
            let kind = MailType {
                description: String::new(),
                senders: None,
                direction,
                fields: vec![],
                place: None,
            };
            (name.to_owned(), kind)
        })
        .collect::<BTreeMap<_, _>>();
    Arc::new(org)
}

pub(super) fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + minutes * 60).unwrap()
}

pub(super) fn mail(from: &str, to: &str, kind: &str, at: Timestamp) -> Outgoing {
    Outgoing {
        id: clock::new_mail_id(at),
        contract: clock::new_contract_id(at),
        from: from.to_owned(),
        draft: Draft { subject: "it is broken".to_owned(), ..Draft::bare(to, kind) },
        at,
        behalf: Behalf {
            user: "ada".into(),
            project: None,
            delegated: None,
            run: None,
            contract: None,
        },
        key: None,
        answer_within: SignedDuration::from_mins(60),
        entry: Entry::new(clock::new_audit_id(), kind::MAIL_REJECTED, Actor::System),
    }
}

async fn inbox(store: &Store, agent: &str) -> Vec<chancery_store::mail::MailRow> {
    store.mails(&Whose::Inbox(agent.to_owned()), None, false, None, 1000).await.unwrap()
}

pub async fn the_same_call_at_once_is_one_mail(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let org = small_company();
    for (to, delivered) in [("manager", 1), ("head", 0)] {
        let mut senders = tokio::task::JoinSet::new();
        for n in 0..20 {
            let store = if n % 2 == 0 { &store } else { &other }.clone();
            let org = org.clone();
            let mut mail = mail("worker", to, "info", at(0));
            mail.key = Some(format!("run_1:msg_1:{to}"));
            // Whoever loses a race on one key is told to come again, and finds what is there.
            senders.spawn(async move {
                loop {
                    match store.send_mail(&org, mail.clone()).await {
                        Ok(sent) => return matches!(sent, Sent::Delivered(_)),
                        Err(_) => tokio::task::yield_now().await,
                    }
                }
            });
        }
        let sent = senders.join_all().await;
        assert!(sent.iter().all(|it| *it == (delivered == 1)), "{sent:?}");
        assert_eq!(inbox(&store, to).await.len(), delivered);
    }
    assert_eq!(store.mail_rejections(None, None, None, 10).await.unwrap().len(), 1);
}

pub async fn a_rejection_is_told_with_the_entry_that_the_audit_has_of_it(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    let run = clock::new_run_id();
    let mut known = Vec::new();
    // One after the other, by several, and at the same time for different runs.
    for (n, from, of) in
        [(0, "worker", None), (1, "worker", None), (1, "worker", Some(run)), (2, BOARD, None)]
    {
        let mut mail = mail(from, "nobody", "info", at(n));
        mail.behalf.run = of;
        mail.entry.user = Some(mail.behalf.user.clone());
        mail.entry.agent = (from != BOARD).then(|| from.into());
        mail.entry.run = of;
        known.insert(0, Some(mail.entry.id));
        assert!(matches!(store.send_mail(&org, mail).await.unwrap(), Sent::Rejected(_)));
    }
    // Its entry is one that is there already: it has none of its own.
    let mut mail = mail("worker", "nobody", "info", at(3));
    mail.entry.id = known[0].unwrap();
    store.send_mail(&org, mail).await.unwrap();
    known.insert(0, None);
    let found = store.mail_rejections(None, None, None, 10).await.unwrap();
    assert_eq!(found.iter().map(|it| it.audit).collect::<Vec<_>>(), known);
    for row in found {
        assert_eq!(store.mail_rejection(row.id).await.unwrap(), Some(row));
    }
    assert_eq!(store.mail_rejection(77).await.unwrap(), None);
}

pub async fn mail_is_delivered_in_the_order_that_it_was_sent(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    for n in 0..30 {
        let mut mail = mail("worker", "manager", "info", at(n));
        mail.draft.subject = n.to_string();
        mail.draft.priority = match n % 10 {
            3 => Priority::Critical,
            it => Priority::ALL[it as usize % 3],
        };
        store.send_mail(&org, mail).await.unwrap();
    }
    let subjects: Vec<i64> =
        inbox(&store, "manager").await.iter().map(|it| it.subject.parse().unwrap()).collect();
    let mut expected = vec![3, 13, 23];
    expected.extend((0..30).filter(|it| it % 10 != 3));
    assert_eq!(subjects, expected);
}

pub async fn what_was_tried_is_counted_under_the_contracts_of_its_time(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    let mut given = mail("manager", "worker", "contract", at(0));
    given.draft.fields.insert("cross_department".to_owned(), serde_json::json!(true));
    let id = given.contract.clone();
    store.send_mail(&org, given).await.unwrap();
    for (minute, to) in [(10, State::Accepted), (20, State::InProgress), (30, State::Review)] {
        let by = Actor::Agent(AgentId::from("worker"));
        let entry = Entry::new(clock::new_audit_id(), kind::CONTRACT_CHANGED, by.clone());
        let step =
            WantedStep { id: id.clone(), to, by, operator: false, note: None, at: at(minute) };
        let stepped = store.step_contract(&org, step, entry).await.unwrap();
        assert!(matches!(stepped, Stepped::Made(_)), "{stepped:?}");
    }
    let mut active = Vec::new();
    for minute in [0, 9, 10, 29, 30, 60] {
        let held = store.contracts_active_at("worker", at(minute)).await.unwrap();
        assert!(held.iter().all(|it| it.state.is_active() && it.id == id), "{held:?}");
        active.push(held.len());
    }
    assert_eq!(active, [0, 0, 1, 1, 0, 0]);
    assert_eq!(store.contracts_active_at("manager", at(15)).await.unwrap(), []);
    for (minute, to) in [(40, "manager"), (41, "head"), (42, "head"), (43, "manager")] {
        let mut mail = mail("worker", to, "info", at(minute));
        mail.behalf.user = if minute == 43 { "mei" } else { "ada" }.into();
        store.send_mail(&org, mail).await.unwrap();
    }
    let tried = store.mail_attempts(at(40), 3).await.unwrap();
    let tried: Vec<_> = tried.iter().map(|it| (&*it.to, it.rejected.as_deref(), it.at)).collect();
    let step = Some("contact");
    assert_eq!(tried, [("manager", None, at(43)), ("head", step, at(42)), ("head", step, at(41))]);
    assert_eq!(store.mail_attempts(at(0), 100).await.unwrap().len(), 5);
    let count = async |to: &str, user: Option<&str>, since: i64| {
        let user = user.map(chancery_domain::id::UserId::from);
        let of = store.mail_counts("worker", to, user.as_ref(), at(since)).await.unwrap();
        (of.delivered, of.rejected)
    };
    assert_eq!(count("manager", None, 0).await, (2, 0));
    assert_eq!(count("manager", Some("mei"), 0).await, (1, 0));
    assert_eq!(count("head", None, 0).await, (0, 2));
    assert_eq!(count("head", None, 42).await, (0, 1));
}

pub async fn mail_is_handed_to_one_run_though_two_servers_look(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let org = small_company();
    for n in 0..10 {
        store.send_mail(&org, mail("worker", "manager", "info", at(n))).await.unwrap();
    }
    let rates = Rates { a_minute: 100 };
    let mut takers = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = if n % 2 == 0 { &store } else { &other }.clone();
        takers.spawn(async move {
            let run = clock::new_run_id();
            store.hand_mail(&"manager".into(), run, rates, at(20)).await.unwrap()
        });
    }
    let handed = takers.join_all().await;
    let mut ids: Vec<_> = handed.iter().flatten().flat_map(|it| it.ids().cloned()).collect();
    ids.sort();
    let all = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), all), (10, 10), "each mail went to one run");
    assert_eq!(handed.iter().flatten().count(), 1);
    // What nobody made a run of comes back, and only after a while.
    assert!(store.unmade_mail_runs(at(19), 10).await.unwrap().is_empty());
    let unmade = store.unmade_mail_runs(at(21), 10).await.unwrap();
    assert_eq!((unmade.len(), unmade[0].mails.len()), (1, 10));
    // While a run is about to be made, nothing else is handed over.
    store.send_mail(&org, mail("worker", "manager", "info", at(30))).await.unwrap();
    let again = store.hand_mail(&"manager".into(), clock::new_run_id(), rates, at(31)).await;
    assert_eq!(again.unwrap(), None);
    store.mail_run_made(unmade[0].run).await.unwrap();
    let rare = Rates { a_minute: 0 };
    let again = store.hand_mail(&"manager".into(), clock::new_run_id(), rare, at(31)).await;
    assert_eq!(again.unwrap(), None, "as often as it may, and no more");
    let again = store.hand_mail(&"manager".into(), clock::new_run_id(), rates, at(31)).await;
    assert_eq!(again.unwrap().unwrap().mails.len(), 1);
}

pub async fn a_run_that_was_to_be_made_for_mail_is_made_once(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    store.send_mail(&org, mail("worker", "manager", "info", at(0))).await.unwrap();
    // As a server leaves it that died between the two.
    let run = clock::new_run_id();
    let rates = Rates { a_minute: 100 };
    store.hand_mail(&"manager".into(), run, rates, at(0)).await.unwrap().unwrap();
    let tools = Arc::new(chancery_runtime::tool::Tools::default());
    let authority = chancery_runtime::authority::Authority::new(org, tools);
    let authority = chancery_runtime::authority::InForce::new(authority);
    let mailroom = Mailroom::new(store.clone(), Terms::default());
    assert_eq!(look(&mailroom, &authority).await.unwrap(), 1);
    assert_eq!(look(&mailroom, &authority).await.unwrap(), 0);
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!((row.agent.as_str(), row.user.as_str()), ("manager", "ada"));
    assert!(inbox(&store, "manager").await[0].read_at.is_some());
}

/// `escalation.unanswered_after` three times over: it may be sent again, and again, then the head
/// is told, and then the board.
pub async fn what_nobody_answers_goes_up_to_the_board(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    let hour = SignedDuration::from_mins(60);
    for round in 0..3 {
        let now = at(round * 61);
        let raise = mail("worker", "manager", "escalation", now);
        assert_eq!(store.raised(&raise).await.unwrap(), Raised::Fresh);
        store.send_mail(&org, raise.clone()).await.unwrap();
        assert!(matches!(store.raised(&raise).await.unwrap(), Raised::Waits(_)));
        assert!(store.settle_raises(&org, at(round * 61 + 59), hour, 10).await.unwrap().is_empty());
        let settled = store.settle_raises(&org, at(round * 61 + 60), hour, 10).await.unwrap();
        let next = if round < 2 { Next::Again } else { Next::Head("head".to_owned()) };
        assert_eq!(settled.iter().map(|it| &it.1).collect::<Vec<_>>(), [&next], "{round}");
        assert_eq!(inbox(&store, "head").await.len(), usize::from(round == 2));
    }
    let told = inbox(&store, "head").await;
    assert_eq!(told[0].from, "system");
    assert!(told[0].subject.contains("manager does not answer worker"), "{}", told[0].subject);
    // The head is silent, too.
    let settled = store.settle_raises(&org, at(3 * 61 + 62), hour, 10).await.unwrap();
    assert_eq!(settled.iter().map(|it| &it.1).collect::<Vec<_>>(), [&Next::Board]);
    assert_eq!(inbox(&store, "board").await.len(), 1);
    assert_eq!(store.raises_open().await.unwrap(), 0);
    assert!(store.settle_raises(&org, at(9999), hour, 10).await.unwrap().is_empty());
}

pub async fn what_is_raised_again_while_it_waits_counts_once(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    let hour = SignedDuration::from_mins(60);
    for round in 0..3 {
        let now = at(round * 61);
        for n in 0..3 {
            let now = now.checked_add(SignedDuration::from_millis(300 * n)).unwrap();
            store.send_mail(&org, mail("worker", "manager", "escalation", now)).await.unwrap();
        }
        // They are due together, and are one problem.
        let settled = store.settle_raises(&org, at(round * 61 + 60), hour, 10).await.unwrap();
        let next = if round < 2 { Next::Again } else { Next::Head("head".to_owned()) };
        let expected = [(round as u32 + 1, &next)];
        let settled: Vec<_> = settled.iter().map(|it| (it.0.count, &it.1)).collect();
        assert_eq!(settled, expected, "{round}");
        assert_eq!(inbox(&store, "head").await.len(), usize::from(round == 2));
    }
    assert_eq!(store.raises_open().await.unwrap(), 1, "the head's alone");
    // Another matter has its own count.
    let mut other = mail("worker", "manager", "escalation", at(300));
    other.draft.subject = "something else".to_owned();
    store.send_mail(&org, other).await.unwrap();
    let settled = store.settle_raises(&org, at(360), hour, 10).await.unwrap();
    let other = settled.iter().find(|it| it.0.from == "worker").unwrap();
    assert_eq!((other.0.count, &other.1), (1, &Next::Again));
}

pub async fn a_contract_that_failed_is_told_within_what_was_delegated(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    let allowed_tools = Some(vec!["send_mail".to_owned()]);
    let bounds = Bounds { allowed_tools, denied_tools: Vec::new() };
    let mut given = mail("manager", "worker", "contract", at(0));
    given.behalf.delegated = Some(bounds.clone());
    let id = given.contract.clone();
    assert!(matches!(store.send_mail(&org, given).await.unwrap(), Sent::Delivered(_)));
    let mut steps = vec![State::Accepted, State::InProgress];
    for _ in 0..3 {
        steps.extend([State::Review, State::Failed, State::InProgress]);
    }
    steps.pop();
    for to in steps {
        let by = if to == State::Failed { "manager" } else { "worker" };
        let by = Actor::Agent(by.into());
        let entry = Entry::new(clock::new_audit_id(), kind::CONTRACT_CHANGED, by.clone());
        let (id, at) = (id.clone(), at(1));
        let step = WantedStep { id, to, by, operator: false, note: None, at };
        let stepped = store.step_contract(&org, step, entry).await.unwrap();
        assert!(matches!(stepped, Stepped::Made(_)), "{to}: {stepped:?}");
    }
    for told in ["head", "manager"] {
        let told = inbox(&store, told).await;
        let told: Vec<_> = told.iter().map(|it| (&*it.from, &it.delegated)).collect();
        assert_eq!(told, [("system", &Some(bounds.clone()))]);
    }
}

pub async fn an_attachment_is_beneath_the_workspace_and_no_secret(home: &Home) {
    let store = home.open().await;
    // Nobody here has a file scope.
    let org = small_company();
    for (path, may) in [
        ("src/a.rs", true),
        (".env.example", true),
        ("/etc/passwd", false),
        ("../x", false),
        ("src/../../x", false),
        (".env", false),
        ("worker/.ENV.production", false),
        ("certs/server.pem", false),
    ] {
        let mut mail = mail("worker", "manager", "info", at(0));
        let (path, description) = (path.to_owned(), String::new());
        mail.draft.attachments = vec![Attachment { path, description }];
        let step = match store.send_mail(&org, mail.clone()).await.unwrap() {
            Sent::Delivered(_) => None,
            Sent::Rejected(rejection) => Some(rejection.step),
        };
        let expected = if may { None } else { Some(Step::Attachments) };
        assert_eq!(step, expected, "{:?}", mail.draft.attachments);
    }
}

pub async fn an_answer_ends_the_wait_for_it(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    let hour = SignedDuration::from_mins(60);
    for answered in [true, false] {
        for round in 0..3 {
            let base = if answered { 0 } else { 1000 } + round * 61;
            store.send_mail(&org, mail("worker", "manager", "escalation", at(base))).await.unwrap();
            if answered && round == 1 {
                store
                    .send_mail(&org, mail("manager", "worker", "info", at(base + 1)))
                    .await
                    .unwrap();
            }
            store.settle_raises(&org, at(base + 60), hour, 10).await.unwrap();
        }
        let told = inbox(&store, "head").await.len();
        assert_eq!(told, usize::from(!answered), "an answer begins the count anew");
        store.send_mail(&org, mail("manager", "worker", "info", at(999))).await.unwrap();
    }
    // A reply within another thread is no answer to this one.
    store.send_mail(&org, mail("manager", "worker", "info", at(1990))).await.unwrap();
    let asked = mail("worker", "manager", "info", at(1999));
    store.send_mail(&org, asked.clone()).await.unwrap();
    store.send_mail(&org, mail("worker", "manager", "escalation", at(2000))).await.unwrap();
    let mut reply = mail("manager", "worker", "info", at(2001));
    reply.draft.reply_to = Some(asked.id);
    store.send_mail(&org, reply).await.unwrap();
    let settled = store.settle_raises(&org, at(2060), hour, 10).await.unwrap();
    assert_eq!(settled.iter().filter(|it| it.0.from == "worker").count(), 1);
}

pub async fn a_board_that_is_to_be_told_is_told_through_the_outbox(home: &Home) {
    let store = home.open().await;
    let org = small_company();
    store.subscribe(vec![chancery_store::outbox::Subscription {
        subscriber: "pager".to_owned(),
        topics: vec!["escalation.board".to_owned()],
    }]);
    let hour = SignedDuration::from_mins(60);
    for round in 0..3 {
        store.send_mail(&org, mail("manager", "head", "escalation", at(round * 61))).await.unwrap();
        store.settle_raises(&org, at(round * 61 + 60), hour, 10).await.unwrap();
    }
    let notices = store.take_notices(10, Duration::from_secs(1)).await.unwrap();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].topic, "escalation.board");
    let body = notices[0].body.as_ref().unwrap();
    assert_eq!((&body["from_agent"], &body["to_agent"]), (&json!("manager"), &json!("head")));
}
