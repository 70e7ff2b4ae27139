//! The door itself: takes connections in and lets them out. What is said over them is the
//! router's matter.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::turnstile::Peer;

/// A client that takes longer to send its headers, or to ask again over a connection that it
/// keeps, is not a client.
const HEADERS: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(30) };
/// Open files that are left for the store, the tools and what they start. Each connection is one;
/// further clients wait in the kernel's queue.
const FILES_KEPT_BACK: u64 = 124;
/// More who look on at once are for a second server.
const CONNECTIONS_MAX: u64 = 8000;
/// What is wrong with taking in a connection (no files left) is not over at once.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` fires, then lets requests under way end.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(places(open_files())));
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = stop.cancelled() => break,
        };
        let (stream, from) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = stop.cancelled() => break,
        };
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(from));
            router.call(request)
        });
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // How a client breaks off is its own affair.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// How many files this process may have open: `None`, as many as it likes.
fn open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

fn places(open_files: Option<u64>) -> usize {
    let open_files = open_files.unwrap_or(u64::MAX);
    // Where there are few files, half of them are better than none.
    let places = open_files.saturating_sub(FILES_KEPT_BACK).max(open_files / 2);
    places.clamp(1, CONNECTIONS_MAX) as usize
}

async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                // Events are small and wanted now; without it they come all the same.
                let _ = stream.set_nodelay(true);
                return (stream, from.ip());
            }
            Err(error) => {
                tracing::debug!(%error, "A connection could not be taken in: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn connections_leave_files_for_the_store_and_the_tools() {
        assert_eq!(places(Some(1024)), 900);
        assert_eq!(places(Some(20_000)), 8000);
        assert_eq!(places(Some(64)), 32);
        assert_eq!(places(Some(0)), 1);
        assert_eq!(places(None), 8000);
    }

    #[tokio::test]
    async fn a_client_that_never_ends_its_headers_is_let_go() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let door = tokio::spawn(serve(listener, Router::new(), stop.clone()));
        for sent in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
            let mut slow = TcpStream::connect(address).await.unwrap();
            slow.write_all(sent.as_bytes()).await.unwrap();
            let mut said = Vec::new();
            let read = slow.read_to_end(&mut said);
            tokio::time::timeout(Duration::from_secs(5), read).await.unwrap().unwrap();
            assert!(!String::from_utf8_lossy(&said).contains("200"), "{sent}");
        }
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(5), door).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_quiet_connection_does_not_hold_up_the_end() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let door = tokio::spawn(serve(listener, Router::new(), stop.clone()));
        let _quiet = TcpStream::connect(address).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(2), door).await.unwrap().unwrap();
    }
}
