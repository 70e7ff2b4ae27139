//! PostgreSQL for tests: a database of one's own on the shared server, or a server of one's own
//! for tests that stop it. Made for tests, so what goes wrong here panics.

#[path = "../../../xtask/src/cluster.rs"]
mod cluster;
mod pair;

use std::fmt::Display;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::process::Child;
use std::thread;

use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio_postgres::NoTls;

use self::cluster::Cluster;
pub use self::pair::Pair;

const VARIABLE: &str = "CHANCERY_TEST_POSTGRES";

/// A fresh, empty database. It is gone when this value is.
#[derive(Debug)]
pub struct TestDatabase {
    /// Of the server, where the database is made and dropped.
    server: String,
    name: String,
}

impl TestDatabase {
    /// Makes a database with a random name on the server that `CHANCERY_TEST_POSTGRES` names.
    pub async fn create() -> TestDatabase {
        let server = std::env::var(VARIABLE).unwrap_or_else(|_| {
            panic!("set {VARIABLE} or run `cargo xtask postgres -- cargo nextest run`")
        });
        let random = RandomState::new().hash_one(std::process::id());
        let name = format!("chancery_test_{}_{random:x}", std::process::id());
        let made = execute(&server, &format!("CREATE DATABASE {name}")).await;
        made.unwrap_or_else(because("cannot make a database"));
        TestDatabase { server, name }
    }

    pub fn url(&self) -> String {
        with_database(&self.server, &self.name)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // Best effort: the server itself is temporary.
        let _ = on_a_thread(async { execute(&self.server, &drop).await });
    }
}

/// A server that belongs to one test, which may stop it and start it again. It keeps its port
/// and its data until this value is gone.
#[derive(Debug)]
pub struct PrivatePostgres {
    cluster: Cluster,
    /// Beyond those that every server here has.
    settings: Vec<&'static str>,
    /// `None`: stopped.
    server: Option<Child>,
    /// Removed last. `None`: it is within another's.
    #[expect(dead_code, reason = "held until the server is gone")]
    dir: Option<TempDir>,
}

impl PrivatePostgres {
    pub async fn start() -> PrivatePostgres {
        let mut postgres = PrivatePostgres::create().await;
        postgres.start_again().await;
        postgres
    }

    async fn create() -> PrivatePostgres {
        let made = spawn_blocking(|| {
            let dir = TempDir::with_prefix("chancery-postgres-")?;
            let cluster = Cluster::create(dir.path())?;
            Ok::<_, std::io::Error>((dir, cluster))
        });
        let made = made.await.unwrap_or_else(because("initdb panicked"));
        let (dir, cluster) = made.unwrap_or_else(because("cannot make a PostgreSQL"));
        PrivatePostgres { cluster, settings: Vec::new(), server: None, dir: Some(dir) }
    }

    pub fn url(&self) -> String {
        self.cluster.url()
    }

    /// Ends every connection as an administrator would: their transactions are lost.
    pub async fn kill_connections(&self) {
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        execute(&self.url(), kill).await.unwrap_or_else(because("cannot kill connections"));
    }

    /// Stops the server at once, without a checkpoint, as if its machine had lost power. What
    /// was committed is there after [`PrivatePostgres::start_again`].
    pub async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            let cluster = self.cluster.clone();
            let stopped = spawn_blocking(move || stop_now(&cluster, server)).await;
            stopped.unwrap_or_else(because("cannot stop PostgreSQL"));
        }
    }

    /// Starts a stopped server. Does nothing to one that runs.
    pub async fn start_again(&mut self) {
        if self.server.is_some() {
            return;
        }
        let (cluster, settings) = (self.cluster.clone(), self.settings.clone());
        let started = spawn_blocking(move || {
            let settings = settings.into_iter().flat_map(|it| ["-c", it]);
            let mut server = cluster.server()?.args(settings).spawn()?;
            cluster.wait_ready(&mut server)?;
            Ok::<_, std::io::Error>(server)
        });
        let started = started.await.unwrap_or_else(because("the start panicked"));
        self.server = Some(started.unwrap_or_else(because("cannot start PostgreSQL")));
    }

    pub async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            stop_now(&self.cluster, server);
        }
    }
}

/// Best effort, since it also runs while a test unwinds.
fn stop_now(cluster: &Cluster, mut server: Child) {
    let mut stop = cluster.program("pg_ctl");
    stop.args(["stop", "--silent", "--mode=immediate", "--pgdata"]).arg(cluster.data());
    if !stop.status().is_ok_and(|status| status.success()) {
        let _ = server.kill();
    }
    let _ = server.wait();
}

/// One statement on a connection of its own.
async fn execute(url: &str, statement: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let executed = client.batch_execute(statement).await;
    drop(client);
    // How the connection ends after the answer is of no interest.
    let _ = connection.await;
    executed
}

/// Runs a future to its end from where one must not block on it, such as `drop` in a runtime.
fn on_a_thread<T: Send>(future: impl Future<Output = T> + Send) -> Option<T> {
    thread::scope(|scope| {
        let runs = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.ok().map(|runtime| runtime.block_on(future))
        });
        runs.join().ok().flatten()
    })
}

/// The address of another database on the same server.
fn with_database(url: &str, name: &str) -> String {
    let (address, options) = match url.split_once('?') {
        Some((address, options)) => (address, format!("?{options}")),
        None => (url, String::new()),
    };
    let start = address.find("://").map_or(0, |at| at + 3);
    let server = address[start..].find('/').map_or(address, |at| &address[..start + at]);
    format!("{server}/{name}{options}")
}

fn because<E: Display, T>(what: &'static str) -> impl FnOnce(E) -> T {
    move |error| panic!("{what}: {error}")
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn the_database_of_an_address_is_replaced() {
        let cases = [
            ("postgres://a@b:1/postgres", "postgres://a@b:1/x"),
            ("postgres://a@b:1", "postgres://a@b:1/x"),
            ("postgres://a@b/c?host=/tmp/d", "postgres://a@b/x?host=/tmp/d"),
        ];
        for (url, expected) in cases {
            assert_eq!(with_database(url, "x"), expected);
        }
    }
}
