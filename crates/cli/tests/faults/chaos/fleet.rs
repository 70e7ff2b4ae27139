//! Servers that are killed and come back, are stopped and go on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::Signal;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::kills::Doors;
use crate::server::{Server, Start};

#[derive(Debug)]
pub struct Fleet {
    starts: Vec<Start>,
    places: Vec<Arc<Mutex<Place>>>,
    pub doors: Doors,
    /// What comes back by itself.
    aftermath: JoinSet<()>,
}

#[derive(Debug)]
struct Place {
    server: Server,
    /// Raised by every kill: who wakes a server wakes the one that it had stopped.
    life: u64,
}

impl Fleet {
    pub async fn start(starts: Vec<Start>) -> Fleet {
        let servers = join_all(starts.iter().map(Start::serve)).await;
        let doors = Doors::of(servers.iter().map(|it| it.api.clone()).collect());
        let place = |server| Arc::new(Mutex::new(Place { server, life: 0 }));
        let places = servers.into_iter().map(place).collect();
        Fleet { starts, places, doors, aftermath: JoinSet::new() }
    }

    /// `kill -9`. It is started again at once, and until it is back nobody else has its place.
    pub async fn kill(&mut self, number: usize) {
        let mut place = self.places[number].clone().lock_owned().await;
        place.server.kill_now();
        place.life += 1;
        let (start, doors) = (self.starts[number].clone(), self.doors.clone());
        self.aftermath.spawn(async move {
            // On a thread of its own, for what waits in it is not made to be moved.
            let here = tokio::runtime::Handle::current();
            let back = tokio::task::spawn_blocking(move || here.block_on(back(&start)));
            place.server = back.await.unwrap();
            doors.moved(number, place.server.api.clone());
        });
    }

    /// Stops it for a while, unless it is killed before that is over.
    pub async fn pause(&mut self, number: usize, long: Duration) {
        let place = self.places[number].clone();
        let held = place.lock().await;
        held.server.signal(Signal::STOP);
        let life = held.life;
        drop(held);
        self.aftermath.spawn(async move {
            tokio::time::sleep(long).await;
            let place = place.lock().await;
            if place.life == life {
                place.server.signal(Signal::CONT);
            }
        });
    }

    /// Waits until every server is there and goes on.
    pub async fn calm(&mut self) {
        while let Some(done) = self.aftermath.join_next().await {
            done.unwrap();
        }
    }
}

/// A server that finds no database ends with a sentence, and is started again as a supervisor
/// would.
async fn back(start: &Start) -> Server {
    loop {
        if let Some(server) = start.try_serve().await {
            return server;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
