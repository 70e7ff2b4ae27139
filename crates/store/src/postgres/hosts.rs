//! Where the database is: on one of the hosts that the URL names, whichever takes writes now.
//!
//! The driver tries hosts from the first one on, each time. A first host that is dead without a
//! word, or takes connections and says nothing, would hide the others for ever. So the search goes
//! on where it stood when somebody's patience ended, and starts where it last found what it sought.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a host may take to answer a call: it is near, or away.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long what was sent may stay unacknowledged: a machine that lost its power says nothing. Left
/// to the system, it is found out after a quarter of an hour.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// The same where nothing is sent: when to ask, how often, how many times.
const IDLE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_secs(5);
const ASK_TIMES: u32 = 3;
/// The driver's, which stands where nothing was said.
const IDLE_UNSAID: Duration = Duration::from_secs(2 * 60 * 60);

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The hosts, and what they are reached with. What one connection finds out, all know.
#[derive(Clone)]
pub(crate) struct Hosts {
    each: Arc<Vec<Config>>,
    /// Where the search begins.
    first: Arc<AtomicUsize>,
    tls: MakeRustlsConnect,
}

impl Hosts {
    pub(crate) fn of(config: &Config, tls: MakeRustlsConnect) -> Hosts {
        Hosts { each: Arc::new(apart(config)), first: Arc::default(), tls }
    }

    pub(crate) fn count(&self) -> usize {
        self.each.len()
    }

    /// A connection to the first host that takes writes. Whoever drops this in the middle is led to
    /// the next host when they come again.
    pub(crate) async fn connect(&self) -> Result<(Client, Connection<Socket, TlsStream>), Error> {
        let count = self.each.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut tries = 0;
        loop {
            let place = (first + tries) % count;
            tries += 1;
            self.first.store((place + 1) % count, Ordering::Relaxed);
            match self.each[place].connect(self.tls.clone()).await {
                Ok(found) => {
                    self.first.store(place, Ordering::Relaxed);
                    return Ok(found);
                }
                Err(error) if tries == count => return Err(error),
                Err(_) => {}
            }
        }
    }
}

impl Connect for Hosts {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async move {
            let (client, connection) = Hosts::connect(self).await?;
            let carries = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "A connection to PostgreSQL broke: {error}");
                }
            });
            Ok((client, carries))
        })
    }
}

/// The same for each host by itself, with our patience where the URL says nothing of it. Whatever
/// it says, a database that takes no writes is not the one.
fn apart(config: &Config) -> Vec<Config> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let count = hosts.len().max(addresses.len()).max(1);
    let one = |place: usize| {
        let mut one = Config::new();
        if let Some(host) = hosts.get(place) {
            match host {
                tokio_postgres::config::Host::Tcp(name) => one.host(name),
                tokio_postgres::config::Host::Unix(path) => one.host_path(path),
            };
        }
        if let Some(address) = addresses.get(place) {
            one.hostaddr(*address);
        }
        let ports = config.get_ports();
        if let Some(port) = ports.get(place).or(ports.first()) {
            one.port(*port);
        }
        copy_words(config, &mut one);
        one.connect_timeout(config.get_connect_timeout().copied().unwrap_or(CONNECT_MAX));
        one.tcp_user_timeout(config.get_tcp_user_timeout().copied().unwrap_or(SILENCE_MAX));
        one.keepalives(config.get_keepalives());
        let idle = config.get_keepalives_idle();
        one.keepalives_idle(if idle == IDLE_UNSAID { IDLE } else { idle });
        one.keepalives_interval(config.get_keepalives_interval().unwrap_or(ASK_AGAIN));
        one.keepalives_retries(config.get_keepalives_retries().unwrap_or(ASK_TIMES));
        one.target_session_attrs(TargetSessionAttrs::ReadWrite);
        one
    };
    (0..count).map(one).collect()
}

/// What is the same for all of them.
fn copy_words(from: &Config, to: &mut Config) {
    if let Some(user) = from.get_user() {
        to.user(user);
    }
    if let Some(password) = from.get_password() {
        to.password(password);
    }
    if let Some(name) = from.get_dbname() {
        to.dbname(name);
    }
    if let Some(options) = from.get_options() {
        to.options(options);
    }
    if let Some(name) = from.get_application_name() {
        to.application_name(name);
    }
    to.ssl_mode(from.get_ssl_mode());
    to.ssl_negotiation(from.get_ssl_negotiation());
    to.channel_binding(from.get_channel_binding());
    to.load_balance_hosts(from.get_load_balance_hosts());
}

#[cfg(test)]
mod tests {
    use super::apart;

    /// Each host by itself, as the driver understands it, is what a URL of its own would be.
    fn check(url: &str, expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(|it| it.parse().unwrap()).collect();
        assert_eq!(apart(&url.parse().unwrap()), expected, "{url}");
    }

    const PATIENCE: &str = "connect_timeout=3&tcp_user_timeout=15&keepalives_idle=10\
        &keepalives_interval=5&keepalives_retries=3&target_session_attrs=read-write";

    #[test]
    fn several_hosts_are_tried_one_by_one_with_patience_that_ends() {
        check(
            "postgres://lin:pw@a:1,b:2/db?sslmode=require&options=-cx%3D1",
            &[
                &format!("postgres://lin:pw@a:1/db?sslmode=require&options=-cx%3D1&{PATIENCE}"),
                &format!("postgres://lin:pw@b:2/db?sslmode=require&options=-cx%3D1&{PATIENCE}"),
            ],
        );
        check("postgres://a", &[&format!("postgres://a:5432?{PATIENCE}")]);
        check(
            "postgres:///db?host=/run/a&port=7",
            &[&format!("postgres:///db?host=/run/a&port=7&{PATIENCE}")],
        );
    }

    #[test]
    fn what_the_url_says_of_patience_stands() {
        let said = "connect_timeout=7&tcp_user_timeout=8&keepalives=0&keepalives_idle=9\
            &keepalives_interval=11&keepalives_retries=12";
        let expected = format!("postgres://a:5432?{said}&target_session_attrs=read-write");
        check(&format!("postgres://a:5432?{said}&target_session_attrs=any"), &[&expected]);
    }
}
