//! What is named is enough: each way is gone, and the rules are asked again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::id::{RoleId, RunId, UserId};
use crate::mail::{Draft, Known, route};
use crate::org::{Agent, Contact, Direction, MailType, Org, Place, Role, User};
use crate::policy::{Bounds, Fitness, Question, Risk, ToolFacts};

fn place(line: u32) -> Option<Place> {
    Some(Place { file: "roles.yaml".into(), line })
}

fn contact(types: &[&str], needs_active_contract: bool) -> Contact {
    let types = types.iter().map(|it| (*it).to_owned()).collect();
    Contact { types, needs_active_contract }
}

fn role(id: &str, level: u8, above: &str, tools: &[&str], line: u32) -> Role {
    let tools = tools.iter().map(|it| (*it).to_owned().into()).collect();
    let reports_to = vec![RoleId::from(above)];
    Role { level, reports_to, tools: Some(tools), place: place(line), ..Role::unlimited(id) }
}

fn mail_type(senders: Option<&[&str]>, direction: Direction) -> MailType {
    let senders = senders.map(|it| it.iter().map(|it| RoleId::from(*it)).collect());
    let (description, fields) = (String::new(), Vec::new());
    MailType { description, senders, direction, fields, place: place(70) }
}

fn org() -> Org {
    let mut worker = role("worker", 3, "manager", &["send_mail", "escalate"], 10);
    worker.contacts = BTreeMap::from([
        ("manager".to_owned(), contact(&["info", "escalation"], false)),
        ("pusher".to_owned(), contact(&["info"], false)),
        ("clerk".to_owned(), contact(&["info"], true)),
    ]);
    let mut clerk = role("clerk", 3, "manager", &[], 20);
    clerk.deny_tools = vec!["push".to_owned().into()];
    let roles = [
        role("ceo", 1, "board", &["note"], 1),
        role("manager", 2, "ceo", &["note", "escalate"], 5),
        role("pusher", 3, "manager", &["push"], 30),
        worker,
        clerk,
    ];
    let agents = ["ceo", "manager", "pusher", "worker", "clerk"];
    let agents = agents.map(|it| (AgentId::from(it), Agent::of(it)));
    let mut org = Org::new(roles, agents).unwrap();
    org.mail = BTreeMap::from([
        ("info".to_owned(), mail_type(None, Direction::Any)),
        ("escalation".to_owned(), mail_type(None, Direction::Up)),
        ("order".to_owned(), mail_type(Some(&["ceo"]), Direction::Down)),
    ]);
    let bounds = Bounds { allowed_tools: None, denied_tools: vec!["no*".to_owned()] };
    let mei = User { bounds, place: place(50), ..User::default() };
    org.users = BTreeMap::from([(UserId::from("mei"), mei)]);
    org
}

fn policy(org: Org) -> Policy {
    let names = ["send_mail", "escalate", "push", "note"];
    let of_staff = ["create_contract", "create_agent_jd", "update_org_chart"];
    let facts = names.into_iter().chain(of_staff).map(|name| ToolFacts {
        name: name.to_owned(),
        risk: Risk::Low,
        capabilities: Vec::new(),
        place: None,
    });
    Policy::new(Arc::new(org), facts)
}

fn told(ways: &[Way]) -> Vec<(&'static str, String)> {
    let text = |it: &Way| format!("{} {}", it.text, it.rule).trim_end().to_owned();
    ways.iter().map(|it| (it.kind.as_str(), text(it))).collect()
}

fn called(
    policy: &Policy,
    agent: &str,
    user: &str,
    given: Option<&Bounds>,
    tool: &str,
) -> Vec<Way> {
    called_in(policy, (agent, user), (given, &[]), tool)
}

fn called_in(
    policy: &Policy,
    (agent, user): (&str, &str),
    (given, givers): (Option<&Bounds>, &[Giver]),
    tool: &str,
) -> Vec<Way> {
    let delegated = given.map(|it| policy.delegation(it));
    let delegated = delegated.as_ref();
    let question = Question {
        agent,
        user,
        tool,
        delegated,
        fitness: &Fitness::Fits,
        arguments: &[],
        limits: &[],
    };
    let reasons = policy.rule(question).reasons();
    of_call(&Asker { policy, agent, user, delegated, givers }, tool, &json!({}), &reasons)
}

fn told_of(policy: &Policy, agent: &str, tool: &str) -> Vec<(&'static str, String)> {
    told(&called(policy, agent, "lin", None, tool))
}

fn owned<const N: usize>(all: [(&'static str, &str); N]) -> Vec<(&'static str, String)> {
    all.map(|(kind, text)| (kind, text.to_owned())).to_vec()
}

#[test]
fn a_tool_that_is_not_the_roles_is_another_agents_or_a_line_in_a_file() {
    let policy = policy(org());
    assert_eq!(
        told_of(&policy, "worker", "push"),
        owned([
            ("now", "write to `pusher`: their role has `push`"),
            ("now", "raise it with `escalate`: it goes to `manager`"),
            ("organisation", "add `push` to worker.tools (roles.yaml:10)"),
        ])
    );
    // Who may not write to anybody is not told to.
    assert_eq!(
        told_of(&policy, "clerk", "push"),
        owned([
            ("organisation", "take what matches `push` out of clerk.deny_tools"),
            ("organisation", "add `push` to clerk.tools (roles.yaml:20)"),
        ])
    );
    assert_eq!(told_of(&policy, "pusher", "push"), []);
    assert_eq!(
        told_of(&policy, "pusher", "fly"),
        owned([
            ("organisation", "add the tool `fly` tools.yaml"),
            ("organisation", "add `fly` to pusher.tools (roles.yaml:30)"),
        ])
    );
}

#[test]
fn what_a_run_was_not_given_nobody_does_for_it() {
    let policy = policy(org());
    let only = Bounds { allowed_tools: Some(vec!["send_mail".to_owned()]), denied_tools: vec![] };
    let ways = called(&policy, "pusher", "mei", Some(&only), "note");
    // To be given it would not be enough: others stand against it, too.
    let run = "a new run that is given `note`, all else put right: what this one has is fixed: \
               allowed_tools: [send_mail]";
    assert_eq!(
        told(&ways),
        owned([
            ("run", run),
            ("organisation", "take what matches `note` out of mei.denied_tools (roles.yaml:50)"),
            ("organisation", "add `note` to pusher.tools (roles.yaml:30)"),
        ])
    );
    // Whom it writes to would act within the same delegation.
    let ways = called(&policy, "worker", "lin", Some(&only), "push");
    let now = ways.iter().filter(|it| it.kind == Kind::Now).count();
    assert_eq!(now, 0, "{ways:?}");
}

fn bounds(allowed: Option<&[&str]>, denied: &[&str]) -> Bounds {
    let list = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    Bounds { allowed_tools: allowed.map(list), denied_tools: list(denied) }
}

fn starter() -> Giver {
    Giver::Starter("lin".to_owned())
}

fn above(agent: &str, run: u128, had: Option<Bounds>) -> Giver {
    let run = RunId(uuid::Uuid::from_u128(run));
    Giver::Above { agent: AgentId::from(agent), run, had }
}

/// What a call of `push` by `pusher` needs in a run that was given this by those.
fn unlike(given: &Bounds, givers: &[Giver]) -> Vec<(&'static str, String)> {
    let policy = policy(org());
    let ways = called_in(&policy, ("pusher", "lin"), (Some(given), givers), "push");
    told(&ways)
}

#[test]
fn what_was_delegated_and_by_whom_is_said_beside_the_run_that_it_takes() {
    let said = |lists: &str| {
        let text = "a new run that is given `push`: `lin` fixed what this one has as it started:";
        vec![("run", format!("{text} {lists}"))]
    };
    for (given, lists) in [
        (bounds(None, &["push", "note"]), "denied_tools: [push]"),
        (bounds(None, &["p*"]), "denied_tools: [p*]"),
        (bounds(Some(&[]), &[]), "allowed_tools: []"),
        (bounds(Some(&["note", "send_mail"]), &[]), "allowed_tools: [note, send_mail]"),
        (bounds(Some(&["note"]), &["push"]), "denied_tools: [push]; allowed_tools: [note]"),
    ] {
        assert_eq!(unlike(&given, &[starter()]), said(lists), "{given:?}");
    }
    // One that cannot be looked at is in the record, and in its sentence.
    let policy = policy(org());
    let who = Asker { policy: &policy, agent: "pusher", user: "lin", delegated: None, givers: &[] };
    let reason = Reason {
        layer: "delegation".to_owned(),
        rule: "allowed_tools".to_owned(),
        outcome: Ruling::Deny,
        detail: String::new(),
    };
    let run = "a new run that is given `push`: what a run was given is fixed when it starts";
    assert_eq!(told(&of_call(&who, "push", &json!({}), &[reason])), owned([("run", run)]));
}

#[test]
fn a_run_beneath_is_given_only_what_those_above_it_have_to_give() {
    let none = bounds(Some(&["note"]), &[]);
    let own = "a new run that is given `push`: `pusher` fixed what this one has as it started: \
               allowed_tools: [note]";
    // The agent above had it, and kept it back.
    assert_eq!(unlike(&none, &[above("pusher", 7, None), starter()]), owned([("run", own)]));
    let had = bounds(None, &["push"]);
    let before = "before it, one in place of `run_00000000000000000000000000000007` that is given \
                  `push`: `lin` fixed what that has as it started: denied_tools: [push]";
    let own = own.replace("`push`:", "`push`, all else put right:");
    assert_eq!(
        unlike(&none, &[above("pusher", 7, Some(had.clone())), starter()]),
        owned([("run", &*own), ("run", before)])
    );
    // Its role has nothing of the kind to hand on.
    let own = own.replace("`pusher` fixed", "`manager` fixed");
    assert_eq!(
        unlike(&none, &[above("manager", 7, None), starter()]),
        owned([("run", &*own), ("organisation", "add `push` to manager.tools (roles.yaml:5)"),])
    );
}

#[test]
fn a_run_that_is_given_what_is_said_makes_the_call() {
    let tools = ["send_mail", "escalate", "push", "note"];
    let agents = ["ceo", "manager", "pusher", "worker", "clerk"];
    let policy = policy(org());
    for given in [bounds(Some(&["note"]), &["push"]), bounds(None, &["*"]), bounds(Some(&[]), &[])]
    {
        for (agent, tool) in agents.iter().flat_map(|a| tools.map(|t| (*a, t))) {
            for user in ["lin", "mei"] {
                let who = (agent, user);
                let ways = called_in(&policy, who, (Some(&given), &[starter()]), tool);
                let Some(run) = ways.iter().find(|it| it.kind == Kind::Run) else { continue };
                let promised = !run.text.contains("all else put right");
                let more = Bounds {
                    allowed_tools: given.allowed_tools.as_ref().map(|_| vec![tool.to_owned()]),
                    denied_tools: Vec::new(),
                };
                let more = policy.delegation(&policy.given(&more));
                let passes = policy.offers(agent, user, Some(&more), tool);
                assert_eq!(promised, passes, "{agent} {user} {tool} {given:?} {ways:?}");
            }
        }
    }
}

#[test]
fn what_has_to_be_asked_needs_a_person_and_what_is_allowed_needs_nothing() {
    let policy = policy(org());
    let who = Asker { policy: &policy, agent: "worker", user: "lin", delegated: None, givers: &[] };
    let reason = |layer: &str, rule: &str, outcome| Reason {
        layer: layer.to_owned(),
        rule: rule.to_owned(),
        outcome,
        detail: String::new(),
    };
    let of = |reasons: &[Reason]| told(&of_call(&who, "push", &json!({}), reasons));
    let asks = reason("risk", "risk.high", Ruling::RequireApproval);
    let human = reason("capability", "capabilities.x", Ruling::RequireHuman);
    assert_eq!(of(&[reason("role", "r", Ruling::Allow)]), []);
    assert_eq!(of(std::slice::from_ref(&asks)), owned([("person", "someone approves it")]));
    assert_eq!(of(&[asks, human]), owned([("person", "a person approves it, each time")]));
    let rate = reason("limits", "limits.calls_per_minute.p*", Ruling::Deny);
    assert_eq!(of(&[rate])[1], ("later", "a minute later: it is counted anew".to_owned()));
}

/// What the mailroom says of a bare mail.
fn rejected(org: &Org, from: &str, to: &str, kind: &str) -> Option<Step> {
    route(org, from, &Draft::bare(to, kind), &Known::default()).err().map(|it| it.step)
}

#[test]
fn a_mail_past_the_chain_goes_to_somebody_else_or_up() {
    let policy = policy(org());
    let who = Asker { policy: &policy, agent: "worker", user: "lin", delegated: None, givers: &[] };
    assert_eq!(rejected(policy.org(), "worker", "ceo", "info"), Some(Step::Contact));
    assert_eq!(
        told(&of_mail(&who, "ceo", "info", Step::Contact)),
        owned([
            ("now", "send `info` to `manager`, `pusher`"),
            ("now", "raise it with `escalate`: it goes to `manager`"),
            ("organisation", "add `ceo` to worker.contacts (roles.yaml:10)"),
        ])
    );
    assert_eq!(
        told(&of_mail(&who, "pusher", "order", Step::Type)),
        owned([
            ("now", "send `pusher` another type: `info`"),
            ("now", "raise it with `escalate`: it goes to `manager`"),
            ("organisation", "add `order` to worker.contacts.pusher.types (roles.yaml:10)"),
            ("organisation", "add `worker` to order.senders (roles.yaml:70)"),
            ("organisation", "another direction in order.direction (roles.yaml:70)"),
        ])
    );
    let held = "a contract that allows it across departments, given to `worker` by a superior";
    let ways = told(&of_mail(&who, "clerk", "info", Step::Contract));
    assert!(ways.contains(&("agent", held.to_owned())), "{ways:?}");
}

#[test]
fn what_is_said_to_be_open_is_delivered_and_what_is_named_is_all_that_is_needed() {
    let org = org();
    let policy = policy(org.clone());
    let names = ["ceo", "manager", "pusher", "worker", "clerk"];
    for from in names {
        for to in names.into_iter().filter(|it| *it != from) {
            for kind in ["info", "escalation", "order"] {
                let Some(step) = rejected(&org, from, to, kind) else { continue };
                let who = Asker {
                    policy: &policy,
                    agent: from,
                    user: "lin",
                    delegated: None,
                    givers: &[],
                };
                let ways = of_mail(&who, to, kind, step);
                // Each change that is named is made.
                let mut roles: Vec<Role> = org.roles().cloned().collect();
                let mut mail = org.mail.clone();
                let sender = roles.iter_mut().find(|it| it.id.as_str() == from).unwrap();
                for way in &ways {
                    let rule = way.rule.split(' ').next().unwrap();
                    match rule.rsplit('.').next().unwrap() {
                        "contacts" => {
                            drop(sender.contacts.insert(to.to_owned(), contact(&[], false)))
                        }
                        "types" => sender.contacts.get_mut(to).unwrap().types.push(kind.to_owned()),
                        "senders" => mail.get_mut(kind).unwrap().senders = None,
                        "direction" => mail.get_mut(kind).unwrap().direction = Direction::Any,
                        _ if way.kind == Kind::Agent => {
                            sender.contacts.get_mut(to).unwrap().needs_active_contract = false;
                        }
                        other => assert_eq!((other, way.kind), ("", Kind::Now), "{ways:?}"),
                    }
                }
                let agents = org.agents().map(|(id, it)| (id.clone(), it.clone()));
                let mut mended = Org::new(roles, agents).unwrap();
                mended.mail = mail;
                assert_eq!(rejected(&mended, from, to, kind), None, "{from} {to} {kind} {ways:?}");
                assert!(ways.iter().any(|it| it.kind > Kind::Now), "{ways:?}");
            }
        }
    }
}

/// The same with somebody who looks after it under a contract of the ceo's; these are changed.
fn staffed(change: impl Fn(&mut Role)) -> Org {
    let org = org();
    let mut ceo = role("ceo", 1, "board", &["create_contract"], 1);
    ceo.contacts = BTreeMap::from([("personnel".to_owned(), contact(&[], false))]);
    let personnel = role("personnel", 2, "ceo", &["create_agent_jd", "update_org_chart"], 40);
    let others = org.roles().filter(|it| it.id.as_str() != "ceo").cloned();
    let mut roles: Vec<Role> = others.chain([ceo, personnel]).collect();
    roles.iter_mut().for_each(change);
    let agents = org.agents().map(|(id, it)| {
        let gone = Agent { active: false, ..it.clone() };
        (id.clone(), if id.as_str() == "pusher" { gone } else { it.clone() })
    });
    let kim = (AgentId::from("kim"), Agent::of("personnel"));
    let mut staffed = Org::new(roles, agents.chain([kim])).unwrap();
    staffed.mail = org.mail;
    staffed.mail.insert("contract".to_owned(), mail_type(None, Direction::Down));
    staffed
}

/// Every change that a mail needs, by its first word, and who else than an operator may make it.
fn makers(org: Org, from: &str, to: &str, kind: &str) -> Vec<(String, Vec<String>)> {
    let step = rejected(&org, from, to, kind).unwrap();
    let policy = policy(org);
    let who = Asker { policy: &policy, agent: from, user: "lin", delegated: None, givers: &[] };
    let ways = of_mail(&who, to, kind, step).into_iter();
    let ways = ways.filter(|it| it.kind == Kind::Organisation).map(|it| {
        assert_eq!(it.who.first().map(String::as_str), Some("an operator"), "{it:?}");
        let word = it.text.split(' ').next().unwrap().to_owned();
        (word, it.who[1..].to_vec())
    });
    ways.collect()
}

#[test]
fn who_may_change_the_organisation_is_what_the_organisation_says() {
    let kim = || vec!["agent `kim`, with a contract of `ceo`".to_owned()];
    let made = |word: &str, by: Vec<String>| (word.to_owned(), by);
    let as_it_is = || staffed(|_| {});
    // Somebody comes back, or comes: that is staff. Whom a role writes to is not.
    assert_eq!(makers(as_it_is(), "worker", "pusher", "info"), [made("make", kim())]);
    assert_eq!(
        makers(as_it_is(), "worker", "mary", "info"),
        [made("add", kim()), made("add", vec![])]
    );
    assert_eq!(makers(as_it_is(), "worker", "ceo", "info"), [made("add", vec![])]);
    // A line can be led elsewhere beneath whoever asks for it, and nowhere else.
    let lines = |to: &str| makers(as_it_is(), "ceo", to, "contract").pop().unwrap();
    assert_eq!(lines("worker"), made("let", kim()));
    let own = makers(as_it_is(), "worker", "manager", "contract").pop().unwrap();
    assert_eq!(own, made("let", vec![]));
    // Without the tool, or the contract, or a way for it, there is nobody but an operator.
    let nobody = [made("make", vec![])];
    let without = |id: &str, change: fn(&mut Role)| {
        staffed(move |it| {
            if it.id.as_str() == id {
                change(it)
            }
        })
    };
    for org in [
        without("personnel", |it| it.tools = Some(Vec::new())),
        without("personnel", |it| it.reports_to = vec![RoleId::from("manager")]),
        without("ceo", |it| it.tools = Some(Vec::new())),
        without("ceo", |it| it.contacts.clear()),
        without("personnel", |it| it.level = 3),
    ] {
        assert_eq!(makers(org, "worker", "pusher", "info"), nobody);
    }
    // The board gives contracts, too.
    let org = without("personnel", |it| it.reports_to = vec![RoleId::from("board")]);
    let board = vec!["agent `kim`, with a contract of `board`".to_owned()];
    assert_eq!(makers(org, "worker", "pusher", "info"), [made("make", board)]);
}
