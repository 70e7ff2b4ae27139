//! What agents remember through their tools, on both databases: where it goes is the run's
//! matter, never the model's.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::sync::Arc;

use chancery_domain::event::{Actor, Call, CallResult, Created, Forked, Member};
use chancery_domain::id::{CallId, RunId};
use chancery_domain::memory::{Asked, Party};
use chancery_domain::policy::Fitness;
use chancery_runtime::tool::{CallContext, Done, Tools, memory};
use chancery_store::Store;
use chancery_testkit::conformance::{Home, created, make};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

macro_rules! on_both {
    ($($case:ident)*) => {
        mod sqlite { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(&super::Home::sqlite().await.open().await).await;
            }
        )* }
        mod postgres { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let home = super::Home::postgres().await;
                super::$case(&home.open().await).await;
            }
        )* }
    };
}

on_both! {
    a_preference_is_remembered_and_found_first
    a_preference_needs_the_persons_own_run
    a_group_writes_on_its_blackboard_and_finds_it_first
    records_are_for_groups
    a_call_that_is_run_again_is_the_same_memory
    what_was_recalled_is_known
    no_other_users_memory_is_ever_found
}

fn lins() -> Created {
    let by = Actor::User("lin".into());
    Created { user: "lin".into(), agent: "pa".into(), by, ..created("goal") }
}

fn groups() -> Created {
    Created { group: Some("grp_delivery".into()), project: Some("shop".into()), ..lins() }
}

/// A run with its tools in its hand.
struct Hand {
    tools: Tools,
    run: RunId,
    created: Created,
}

impl Hand {
    async fn of(store: &Store, created: Created) -> Hand {
        let mut tools = Tools::default();
        for tool in memory::tools(&store.clone().into(), |it| it) {
            tools.register(Arc::new(tool)).unwrap();
        }
        Hand { tools, run: make(store, created.clone()).await, created }
    }

    async fn call(&self, key: &str, tool: &str, arguments: Value) -> CallResult {
        let call =
            Call { id: CallId::from(key), tool: tool.to_owned(), arguments: arguments.clone() };
        assert_eq!(self.tools.fitness(&call), Fitness::Fits, "{arguments}");
        let context = CallContext {
            warrant: Default::default(),
            run: self.run,
            speaker: Member { agent: self.created.agent.clone(), role: self.created.role.clone() },
            created: Arc::new(self.created.clone()),
            org: Arc::default(),
            idempotency_key: format!("{}:msg:{key}", self.run),
            cancelled: CancellationToken::new(),
        };
        match self.tools.call(chancery_testkit::permit(tool, arguments), &context).await {
            Done::Result(result) => result,
            other => panic!("{other:?}"),
        }
    }

    async fn said(&self, key: &str, tool: &str, arguments: Value) -> Value {
        let result = self.call(key, tool, arguments).await;
        assert!(!result.is_error, "{result:?}");
        serde_json::from_str(&result.text).unwrap()
    }

    async fn found(&self, query: &str) -> Vec<(u64, String)> {
        let said = self.said("search", "memory_search", json!({"query": query})).await;
        let results = said["results"].as_array().unwrap().clone();
        let one = |it: &Value| {
            for field in ["score", "why", "date", "id", "type"] {
                assert!(!it[field].is_null(), "{it}");
            }
            (it["tier"].as_u64().unwrap(), it["content"].as_str().unwrap().to_owned())
        };
        results.iter().map(one).collect()
    }
}

fn code(result: &CallResult) -> &str {
    result.code.as_deref().unwrap_or("OK")
}

async fn a_preference_is_remembered_and_found_first(store: &Store) {
    let hand = Hand::of(store, lins()).await;
    let happened = json!({"content": "a report was sent on Monday"});
    hand.said("1", "memory_write", happened).await;
    let preferred = json!({"content": "short reports in Chinese", "pa_preference": true});
    hand.said("2", "memory_write", preferred).await;
    let later = Hand::of(store, lins()).await;
    assert_eq!(
        later.found("write the report").await,
        [(1, "short reports in Chinese".to_owned()), (3, "a report was sent on Monday".to_owned())]
    );
    let kept = store.memories(&everything("lin"), None, 10).await.unwrap();
    assert_eq!(kept[0].metadata["pa_preference"], true);
    assert_eq!(kept[0].sources[0].run, hand.run);
    let other_agent = Hand::of(store, Created { agent: "other".into(), ..lins() }).await;
    assert!(other_agent.found("report").await.iter().all(|it| it.0 == 3));
}

fn forked(run: RunId, by: Actor) -> Forked {
    Forked { run, at: 1, by, earlier: None, before: Vec::new(), after: Vec::new() }
}

async fn a_preference_needs_the_persons_own_run(store: &Store) {
    let parent = make(store, lins()).await;
    for created in [
        groups(),
        Created { parent: Some(parent), ..lins() },
        Created { by: Actor::Service("ci".to_owned()), ..lins() },
        Created { by: Actor::Agent("pa".into()), ..lins() },
        // The person goes on with what an agent began.
        Created { forked: Some(Arc::new(forked(parent, Actor::Agent("pa".into())))), ..lins() },
    ] {
        let hand = Hand::of(store, created.clone()).await;
        for arguments in [
            json!({"content": "obey the group", "pa_preference": true}),
            json!({"content": "obey the group", "type": "core", "metadata": {"pa_preference": true}}),
        ] {
            let refused = hand.call("1", "memory_write", arguments).await;
            assert_eq!(code(&refused), "NOT_HERE", "{created:?}");
        }
    }
    assert_eq!(store.memories(&everything("lin"), None, 10).await.unwrap(), []);
    let hand = Hand::of(store, lins()).await;
    let arguments = json!({"content": "x", "type": "episodic", "pa_preference": true});
    assert_eq!(code(&hand.call("1", "memory_write", arguments).await), "NOT_HERE");
}

async fn a_group_writes_on_its_blackboard_and_finds_it_first(store: &Store) {
    let hand = Hand::of(store, groups()).await;
    hand.said("1", "record", json!({"kind": "DECISION", "content": "we release on Friday"})).await;
    hand.said("2", "memory_write", json!({"content": "the release needs a test"})).await;
    let found = hand.found("release").await;
    assert!(found.len() == 2 && found.iter().all(|it| it.0 == 1), "{found:?}");
    let personal = Hand::of(store, Created { project: Some("shop".into()), ..lins() }).await;
    assert_eq!(personal.found("release").await, []);
    let kept = store.memories(&everything("lin"), None, 10).await.unwrap();
    for it in &kept {
        assert_eq!(it.partition.scope.group.as_ref().unwrap().as_str(), "grp_delivery");
        assert_eq!((&it.partition.scope.user, &it.partition.scope.agent), (&None, &None));
    }
    assert!(kept.iter().any(|it| it.metadata["memory_type"] == "DECISION"));
}

async fn records_are_for_groups(store: &Store) {
    let hand = Hand::of(store, lins()).await;
    let refused = hand.call("1", "record", json!({"kind": "NOTE", "content": "x"})).await;
    assert_eq!(code(&refused), "NOT_HERE");
}

async fn a_call_that_is_run_again_is_the_same_memory(store: &Store) {
    let hand = Hand::of(store, groups()).await;
    let arguments = || json!({"kind": "DECISION", "content": "we ship"});
    let first = hand.said("1", "record", arguments()).await;
    let again = hand.said("1", "record", arguments()).await;
    assert_eq!((&again["id"], &again["status"]), (&first["id"], &json!("known")));
    let kept = store.memories(&everything("lin"), None, 10).await.unwrap();
    assert_eq!((kept.len(), kept[0].sources.len()), (1, 1));
    for spec in memory::specs() {
        assert!(spec.idempotent, "{}", spec.name);
    }
}

async fn what_was_recalled_is_known(store: &Store) {
    let group = Hand::of(store, groups()).await;
    let decision = json!({"kind": "DECISION", "content": "prices are in euros"});
    let decided = group.said("1", "record", decision).await;
    let again = Hand::of(store, groups()).await;
    let written = again.said("1", "memory_write", json!({"content": "prices are in euros"})).await;
    assert_eq!((&written["id"], &written["status"]), (&decided["id"], &json!("known")));
}

async fn no_other_users_memory_is_ever_found(store: &Store) {
    let lin = Hand::of(store, lins()).await;
    lin.said("1", "memory_write", json!({"content": "the vault code is 1234"})).await;
    lin.said("2", "memory_write", json!({"content": "vault words", "pa_preference": true})).await;
    for created in [
        Created { user: "bo".into(), ..lins() },
        Created { org: "other".to_owned(), ..lins() },
        groups(),
    ] {
        let hand = Hand::of(store, created).await;
        assert_eq!(hand.found("vault code 1234 words").await, []);
    }
}

#[tokio::test]
async fn whose_memory_it_is_cannot_be_said_in_arguments() {
    let home = Home::sqlite().await;
    let store = home.open().await;
    let hand = Hand::of(&store, lins()).await;
    for field in ["user", "user_id", "org", "scope", "project", "group", "agent", "partition"] {
        for (tool, mut arguments) in [
            ("memory_write", json!({"content": "x"})),
            ("memory_search", json!({"query": "x"})),
            ("record", json!({"kind": "NOTE", "content": "x"})),
        ] {
            arguments[field] = json!("bo");
            let call = Call { id: CallId::from("1"), tool: tool.to_owned(), arguments };
            let fitness = hand.tools.fitness(&call);
            assert!(matches!(fitness, Fitness::BadArguments(_)), "{tool} {field}");
        }
    }
    for (tool, arguments) in [
        ("memory_write", json!({"content": ""})),
        ("memory_write", json!({"content": "x".repeat(16_001)})),
        ("memory_write", json!({"content": "x", "type": "semantic"})),
        ("memory_search", json!({"query": "x", "limit": 51})),
        ("record", json!({"kind": "decision", "content": "x"})),
    ] {
        let call = Call { id: CallId::from("1"), tool: tool.to_owned(), arguments };
        assert!(matches!(hand.tools.fitness(&call), Fitness::BadArguments(_)), "{call:?}");
    }
    for arguments in [
        json!({"content": " \n"}),
        json!({"content": "a\u{0}b"}),
        json!({"content": "x", "metadata": {"source_run_id": "run_1"}}),
        json!({"content": "x", "metadata": {"large": "x".repeat(9000)}}),
    ] {
        let refused = hand.call("1", "memory_write", arguments).await;
        assert_eq!(code(&refused), "INVALID_ARGUMENTS", "{refused:?}");
    }
}

fn everything(user: &str) -> chancery_domain::memory::Plan {
    Party::of_person("acme", user.into()).everything(false, Asked::default())
}
