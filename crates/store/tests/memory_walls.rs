//! The second wall on PostgreSQL: whatever a statement asks for, a connection sees only what its
//! transaction was let in for. Superusers pass through every wall, so these servers are none.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use chancery_domain::memory::{Asked, MemoryKind, Partition, Party, Scope};
use chancery_store::{Location, Store};
use chancery_testkit::conformance::clock;
use chancery_testkit::conformance::memory::{memory, write};
use chancery_testkit::postgres::PrivatePostgres;
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A server whose databases belong to a role like any other.
async fn modest(postgres: &PrivatePostgres) -> String {
    let admin = connect(&postgres.url()).await;
    admin.batch_execute("CREATE ROLE modest LOGIN").await.unwrap();
    admin.batch_execute("CREATE DATABASE modest OWNER modest").await.unwrap();
    admin_url(postgres).replace("postgres@", "modest@")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_filter_finds_nothing_of_others() {
    let postgres = PrivatePostgres::start().await;
    let url = modest(&postgres).await;
    let store =
        Store::open(&Location::Postgres(url.clone()), clock::new_worker_id()).await.unwrap();
    for (org, user) in [("acme", "lin"), ("acme", "bo"), ("other", "lin")] {
        let party = Party::of_person(org, user.into());
        let own = Scope { user: Some(user.into()), ..Scope::org(org) };
        for scope in [own, Scope::org(org)] {
            let home = party.person_home(Partition::new(scope, MemoryKind::Archival)).unwrap();
            write(&store, &home, memory(&format!("kept by {user} of {org}"))).await;
        }
        let plan = party.everything(false, Asked::default());
        let found = store.search_memories(&plan, "kept", 10).await.unwrap();
        assert!(!found.is_empty(), "the server itself works behind the wall");
    }
    let client = connect(&url).await;
    let count = async |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        client.query_one(&sql, &[]).await.unwrap().get(0)
    };
    for table in ["memories", "memory_partitions", "memory_term", "memory_sources"] {
        assert_eq!(count(table).await, 0, "{table}");
    }
    client.batch_execute("SET chancery.org = 'acme'; SET chancery.\"user\" = 'lin'").await.unwrap();
    let rows = client.query("SELECT org_id, user_id FROM memories", &[]).await.unwrap();
    let mut seen: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    seen.sort();
    let of = |user: &str| ("acme".to_owned(), user.to_owned());
    assert_eq!(seen, [of(""), of(""), of("lin")]);
    let stolen =
        client.execute("UPDATE memories SET user_id = 'bo' WHERE user_id = 'lin'", &[]).await;
    assert!(stolen.is_err(), "nothing is handed through it either");
    assert_eq!(count("memory_term").await, 0);
    client.batch_execute("SET chancery.reach = '00000001'").await.unwrap();
    let (own, all) = (count("memory_term").await, connect(&admin_url(&postgres)).await);
    let all: i64 = all.query_one("SELECT count(*) FROM memory_term", &[]).await.unwrap().get(0);
    assert!(own > 0 && own < all, "{own} of {all}");
    store.close().await;
}

/// As a superuser sees the same database.
fn admin_url(postgres: &PrivatePostgres) -> String {
    let url = postgres.url();
    let base = url.rsplit_once('/').unwrap().0;
    format!("{base}/modest")
}
