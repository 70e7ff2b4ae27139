//! The harness for PostgreSQL does what the tests that stand on it take for granted.

use chancery_testkit::postgres::{PrivatePostgres, TestDatabase};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn number(client: &Client, query: &str) -> Result<i64, tokio_postgres::Error> {
    client.query_one(query, &[]).await?.try_get(0)
}

#[tokio::test]
async fn databases_are_apart_and_gone_with_their_value() {
    let (one, two) = (TestDatabase::create().await, TestDatabase::create().await);
    let (url, other) = (one.url(), two.url());
    assert_ne!(url, other);

    let client = connect(&url).await.unwrap();
    client.batch_execute("CREATE TABLE t (n bigint); INSERT INTO t VALUES (7)").await.unwrap();
    assert_eq!(number(&client, "SELECT n FROM t").await.unwrap(), 7);
    let client = connect(&other).await.unwrap();
    assert!(number(&client, "SELECT n FROM t").await.is_err());

    // A connection is still open; it does not keep the database.
    drop(one);
    assert!(connect(&url).await.is_err());
}

#[tokio::test]
async fn a_private_server_keeps_what_was_committed() {
    let mut postgres = PrivatePostgres::start().await;
    let client = connect(&postgres.url()).await.unwrap();
    client.batch_execute("CREATE TABLE t (n bigint); INSERT INTO t VALUES (7)").await.unwrap();

    postgres.kill_connections().await;
    assert!(number(&client, "SELECT n FROM t").await.is_err());

    postgres.stop().await;
    assert!(connect(&postgres.url()).await.is_err());
    postgres.start_again().await;
    postgres.restart().await;
    let client = connect(&postgres.url()).await.unwrap();
    assert_eq!(number(&client, "SELECT n FROM t").await.unwrap(), 7);
    let fsync: String = client.query_one("SHOW fsync", &[]).await.unwrap().get(0);
    assert_eq!(fsync, "on");
}
