//! The door itself: takes connections in and lets them out. What is said over them is the
//! router's matter.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// A client that takes longer to send its headers, or to ask again over a connection that it
/// keeps, is not a client.
const HEADERS: Duration = Duration::from_secs(30);
/// Below the usual limit on open files, with room for the store and the tools. Further clients
/// wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 900;
/// What is wrong with taking in a connection (no files left) is not over at once.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` fires, then lets requests under way end.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = stop.cancelled() => break,
        };
        let stream = tokio::select! {
            stream = accept(&listener) => stream,
            () = stop.cancelled() => break,
        };
        let service = TowerToHyperService::new(router.clone());
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

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Events are small and wanted now; without it they come all the same.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => {
                tracing::debug!(%error, "A connection could not be taken in: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
