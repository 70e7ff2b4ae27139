//! Whether a list is another than it was: for whoever sees it, and for nobody else.

use chancery_domain::audit::{Entry, kind};
use chancery_domain::contract::State;
use chancery_domain::memory::{MemoryKind, Party, Scope};
use chancery_store::Mark;
use chancery_store::mail::{Behalf, Outgoing, Stepped, WantedStep};
use chancery_store::memory::{NewMemory, Written};
use chancery_store::outbox::Notice;
use jiff::{SignedDuration, Timestamp};

use super::mail::{at, mail, small_company};
use super::*;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// For whom something changed, of ada, eve, and those who see everything.
async fn changed(
    mark: impl AsyncFn(Option<UserId>) -> Mark,
    doing: impl Future<Output = ()>,
) -> [bool; 3] {
    let whose = || [Some(UserId::from("ada")), Some(UserId::from("eve")), None];
    let mut before = Vec::new();
    for it in whose() {
        before.push(mark(it).await);
    }
    doing.await;
    let mut changed = [false; 3];
    for ((it, before), changed) in whose().into_iter().zip(before).zip(&mut changed) {
        *changed = mark(it).await != before;
    }
    changed
}

const ADAS: [bool; 3] = [true, false, true];
const EVES: [bool; 3] = [false, true, true];
const NOBODYS: [bool; 3] = [false; 3];

fn of(user: &str, mail: Outgoing) -> Outgoing {
    let behalf = Behalf { user: user.into(), ..mail.behalf.clone() };
    Outgoing { behalf, ..mail }
}

async fn step(store: &Store, id: &ContractId, to: State) {
    let by = Actor::Agent("worker".into());
    let entry = Entry::new(clock::new_audit_id(), kind::CONTRACT_CHANGED, by.clone());
    let id = id.clone();
    let step = WantedStep { id, to, by, operator: false, note: None, at: clock::now() };
    let stepped = store.step_contract(&small_company(), step, entry).await.unwrap();
    assert!(matches!(stepped, Stepped::Made(_)), "{stepped:?}");
}

pub async fn a_mark_of_mail_is_another_for_whose_it_is(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let org = small_company();
    let mark = async |of: Option<UserId>| other.mark_of_mail(of.as_ref()).await.unwrap();
    let send = async |mail: Outgoing| drop(store.send_mail(&org, mail).await.unwrap());
    let first = mail("worker", "manager", "info", at(0));
    assert_eq!(changed(mark, send(first.clone())).await, ADAS);
    let eves = of("eve", mail("worker", "manager", "info", at(0)));
    assert_eq!(changed(mark, send(eves)).await, EVES);
    let read = async { store.mark_read(&first.id, clock::now()).await.unwrap() };
    assert_eq!(changed(mark, read).await, ADAS);
    let again = async { store.mark_read(&first.id, clock::now()).await.unwrap() };
    assert_eq!(changed(mark, again).await, NOBODYS);
    // What is rejected is on the page, too.
    assert_eq!(changed(mark, send(mail("worker", "head", "info", at(1)))).await, ADAS);
    let contract = of("eve", mail("manager", "worker", "contract", at(2)));
    assert_eq!(changed(mark, send(contract.clone())).await, EVES);
    let stepped = step(&store, &contract.contract, State::Accepted);
    assert_eq!(changed(mark, stepped).await, EVES);
    // However much there is: what is new shows.
    for n in 0..210 {
        send(mail("worker", "manager", "info", at(3 + n))).await;
    }
    assert_eq!(changed(mark, send(mail("worker", "manager", "info", at(300)))).await, ADAS);
}

pub async fn a_mark_of_a_contract_follows_what_came_of_it(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let org = small_company();
    let send = async |mail: Outgoing| drop(store.send_mail(&org, mail).await.unwrap());
    let contract = mail("head", "manager", "contract", at(0));
    send(contract.clone()).await;
    let id = contract.contract.clone();
    let mark = async |of: Option<UserId>| other.mark_of_contract(&id, of.as_ref()).await.unwrap();
    // Its own state is for all who see it.
    let by = Actor::Agent("manager".into());
    let entry = Entry::new(clock::new_audit_id(), kind::CONTRACT_CHANGED, by.clone());
    let (to, at_) = (State::Accepted, clock::now());
    let step = WantedStep { id: id.clone(), to, by, operator: false, note: None, at: at_ };
    let stepped = async { drop(store.step_contract(&org, step, entry).await.unwrap()) };
    assert_eq!(changed(mark, stepped).await, [true; 3]);
    // What others wrote about it, or issued under it, is for those who see that.
    let about = |user: &str| {
        let mut about = of(user, mail("manager", "head", "info", at(1)));
        about.draft.contract_ref = Some(id.clone());
        about
    };
    assert_eq!(changed(mark, send(about("eve"))).await, EVES);
    assert_eq!(changed(mark, send(about("ada"))).await, ADAS);
    let mut under = of("eve", mail("manager", "worker", "contract", at(2)));
    under.behalf.contract = Some(id.clone());
    assert_eq!(changed(mark, send(under)).await, EVES);
    assert_eq!(changed(mark, send(mail("worker", "manager", "info", at(3)))).await, NOBODYS);
    // And of a single mail: that it was read.
    let letter = async |_: Option<UserId>| other.mark_of_letter(&contract.id).await.unwrap();
    let read = async { store.mark_read(&contract.id, clock::now()).await.unwrap() };
    assert_eq!(changed(letter, read).await, [true; 3]);
}

pub async fn a_mark_of_rules_says_which_hold(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let now = clock::now();
    let mark = async |of: Option<UserId>| other.mark_of_rules(of.as_ref(), now).await.unwrap();
    let rule = clock::new_rule_id();
    let remembered = async {
        let run = make(&store, created("one")).await;
        let asks = proposed(&[("a", Ruling::RequireApproval)], 1);
        let mut answer = decided(&asks, "a", Decision::Granted);
        if let Event::PermissionDecided(it) = &mut answer {
            it.remember = Some(Remember {
                rule,
                scope: RuleScope::Always,
                tool: "act".to_owned(),
                signature: "act".to_owned(),
                expires_at: now + MINUTE,
            });
        }
        append(&store, run, [started(), asks, answer], Fence::Outside).await.unwrap();
    };
    assert_eq!(changed(mark, remembered).await, ADAS);
    let entry = || Entry::new(clock::new_audit_id(), kind::RULE_NARROWED, ada());
    let narrowed = async {
        assert!(store.narrow_rule(rule, "run", now + MINUTE, now, entry()).await.unwrap());
    };
    assert_eq!(changed(mark, narrowed).await, ADAS);
    let eve = UserId::from("eve");
    let later = async |of: Option<&UserId>| {
        let then = other.mark_of_rules(of, now + MINUTE).await.unwrap();
        then != other.mark_of_rules(of, now).await.unwrap()
    };
    assert_eq!((later(None).await, later(Some(&eve)).await), (true, false), "it has expired");
    let revoked = async {
        assert!(store.revoke_rule(rule, &ada(), now, entry()).await.unwrap());
    };
    assert_eq!(changed(mark, revoked).await, ADAS);
}

pub async fn a_mark_of_the_audit_is_of_what_concerns_somebody(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let mark = async |of: Option<UserId>| other.mark_of_audit(of.as_ref()).await.unwrap();
    let write = async |user: Option<&str>| {
        let user = user.map(UserId::from);
        let entry = Entry { user, ..Entry::new(clock::new_audit_id(), kind::SIGN_IN, ada()) };
        store.audit(vec![entry], clock::now()).await.unwrap();
    };
    assert_eq!(changed(mark, write(Some("ada"))).await, ADAS);
    assert_eq!(changed(mark, write(Some("eve"))).await, EVES);
    assert_eq!(changed(mark, write(None)).await, [false, false, true]);
}

pub async fn a_mark_of_visits_tokens_and_deliveries(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let now = clock::now();
    let visits = async |of: Option<UserId>| {
        let name = of.as_ref().map(UserId::as_str);
        other.mark_of_visits(name, now).await.unwrap()
    };
    let all = async |_: Option<UserId>| other.mark_of_tokens_and_deliveries().await.unwrap();
    let made = async { drop(visit::person(&store, "ada", [1; 32]).await) };
    assert_eq!(changed(all, made).await, [true; 3]);
    let eve = visit::person(&store, "eve", [2; 32]).await;
    assert_eq!(changed(visits, visit::begin(&store, 10, &eve, now)).await, EVES);
    assert_eq!(changed(visits, visit::begin(&store, 11, &eve, now)).await, EVES);
    let ended = async { store.end_visit([10; 32]).await.unwrap() };
    assert_eq!(changed(visits, ended).await, EVES);
    let revoked = async {
        let entry = visit::entry(kind::TOKEN_REVOKED);
        assert!(store.revoke_token(eve.id, now, entry).await.unwrap());
    };
    assert_eq!(changed(all, revoked).await, [true; 3]);
    let notice = Notice {
        id: 1,
        subscriber: "pager".to_owned(),
        run: clock::new_run_id(),
        seq: 1,
        topic: "run.failed".to_owned(),
        at: Timestamp::UNIX_EPOCH,
        tries: 1,
        body: None,
    };
    let told = async { store.log_delivery(&notice, None, now).await.unwrap() };
    assert_eq!(changed(all, told).await, [true; 3]);
}

pub async fn a_mark_of_memories_is_of_those_within_reach(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let party = |name: &str| Party::of_person("acme", name.into());
    let mark = async |of: Option<UserId>| {
        let party = of.map_or_else(|| party("nobody"), |it| party(it.as_str()));
        other.mark_of_memories(&memory::everything(&party)).await.unwrap()
    };
    let own = |name: &str| {
        let scope = Scope { user: Some(name.into()), ..Scope::org("acme") };
        memory::home(&party(name), scope, MemoryKind::Core, false)
    };
    let kept = memory::memory("Ada wants it short.");
    let write = async |home, new| {
        assert!(matches!(memory::write(&store, &home, new).await, Written::New { .. }))
    };
    // Who sees what is everybody's sees nothing of hers.
    assert_eq!(changed(mark, write(own("ada"), kept.clone())).await, [true, false, false]);
    assert_eq!(changed(mark, write(memory::knowledge(), memory::memory("Shut."))).await, [true; 3]);
    let corrected =
        NewMemory { supersedes: Some(kept.id), ..memory::memory("Ada wants it brief.") };
    assert_eq!(changed(mark, write(own("ada"), corrected.clone())).await, [true, false, false]);
    let forgotten = async {
        let entry = Entry::new(clock::new_audit_id(), kind::MEMORY_FORGOTTEN, ada());
        let plan = memory::everything(&party("ada"));
        assert!(store.forget_memory(&plan, corrected.id, entry, clock::now()).await.unwrap());
    };
    assert_eq!(changed(mark, forgotten).await, [true, false, false]);
}
