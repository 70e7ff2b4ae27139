//! Changes from within: they build on what is in force, whoever put it there, and lose nothing.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use chancery_domain::chart::{self, Amendment};
use chancery_domain::contract::{self, Contract};
use chancery_domain::event::Actor;
use chancery_domain::id::AgentId;
use chancery_runtime::tool::config::Place;
use chancery_runtime::tool::staff::{Charter, Unamended};
use chancery_server::organisation::{Files, Mistakes, Organisation};
use chancery_store::Store;
use chancery_store::org::OrgSource;
use chancery_testkit::conformance::Home;

macro_rules! on_both {
    ($($name:ident;)*) => {
        mod on_sqlite {
            $(#[tokio::test] async fn $name() {
                super::$name(&chancery_testkit::conformance::Home::sqlite().await).await
            })*
        }
        mod on_postgres {
            $(#[tokio::test] async fn $name() {
                super::$name(&chancery_testkit::conformance::Home::postgres().await).await
            })*
        }
    };
}

on_both! {
    changes_that_come_at_once_are_all_made;
    a_change_keeps_what_another_server_has_put_in_force;
}

/// The organisation of a server on this store.
async fn started(store: &Store, dir: &std::path::Path) -> Organisation {
    Organisation::start(store, None, Place::here(dir, dir)).await.unwrap().0
}

/// As the HR manager, under a contract from the CEO.
async fn amend(organisation: &Organisation, amendment: Amendment) -> Result<u64, Unamended> {
    let held = Contract {
        id: "CTR-1".into(),
        from: "ceo".into(),
        to: "hr_manager".into(),
        state: contract::State::InProgress,
        failures: 0,
        cross_department: false,
    };
    organisation.amend(amendment, &held.to.clone(), &[held]).await
}

async fn put(organisation: &Organisation, roles: &str) {
    let mut mistakes = Mistakes::default();
    let files = Files::new([("roles.yaml".to_owned(), roles.to_owned())], &mut mistakes);
    let by = Actor::User("lin".into());
    organisation.change(files, mistakes, by, OrgSource::Api).await.unwrap();
}

fn hired(agent: &str) -> Amendment {
    Amendment::Hire { agent: agent.into(), role: "qa_worker".into() }
}

fn agents(organisation: &Organisation) -> Vec<String> {
    organisation.state().loaded.org.agents().map(|(id, _)| id.to_string()).collect()
}

async fn changes_that_come_at_once_are_all_made(home: &Home) {
    let dir = tempfile::tempdir().unwrap();
    let organisation = started(&home.open().await, dir.path()).await;
    let names: Vec<String> = (0..8).map(|it| format!("tester_{it}")).collect();
    let hiring = names.iter().map(|it| amend(&organisation, hired(it)));
    for made in futures_util::future::join_all(hiring).await {
        made.unwrap();
    }
    let agents = agents(&organisation);
    assert_eq!(names.iter().filter(|it| !agents.contains(it)).collect::<Vec<_>>(), [""; 0]);
}

async fn a_change_keeps_what_another_server_has_put_in_force(home: &Home) {
    let dir = tempfile::tempdir().unwrap();
    let store = home.open().await;
    let here = started(&store, dir.path()).await;
    let there = started(&home.another(&store).await, dir.path()).await;
    put(&there, "extends: builtin\nagents: {auditor: {role: qa_worker}}").await;
    amend(&here, hired("tester")).await.unwrap();
    let agents = agents(&here);
    for name in ["auditor", "tester"] {
        assert!(agents.contains(&name.to_owned()), "{name} is not among {agents:?}");
    }
    assert_eq!(store.newest_org_version().await.unwrap().unwrap().number, 3);
    // It is ruled on as the organisation is by then.
    put(&there, "extends: builtin\nroles: {hr_manager: {level: 3}}").await;
    let refused = amend(&here, hired("another")).await.unwrap_err();
    assert_eq!(refused, Unamended::Refused(chart::Refusal::NotBeneath("qa_worker".to_owned())));
    assert_eq!(store.newest_org_version().await.unwrap().unwrap().number, 4);
    assert!(here.state().loaded.org.agent(&AgentId::from("another")).is_none());
}
