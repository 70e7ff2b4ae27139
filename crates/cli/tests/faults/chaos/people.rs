//! Everybody outside: those who make runs, those who answer questions at any server that is there,
//! twice, at two servers at once, late or against each other, and those who signal.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::schedule::plan;
use super::tally::{Answer, Signal};
use crate::kills::Doors;
use crate::{Dice, LOOK};

/// A server may be stopped: whoever waits longer than this goes to another.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long a run's making may take, whoever is away.
const MAKE_MAX: Duration = Duration::from_secs(120);
/// Runs that are made at once, at the most.
const MAKERS: usize = 32;

#[derive(Debug, Clone)]
pub struct People(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    doors: Doors,
    ledger: PathBuf,
    dice: Mutex<Dice>,
    answers: Mutex<Vec<Answer>>,
    signals: Mutex<Vec<Signal>>,
    /// What somebody is at, so that not everybody is.
    in_hand: Mutex<HashSet<String>>,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl People {
    pub fn new(doors: Doors, ledger: &Path, seed: u64) -> People {
        People(Arc::new(Shared {
            doors,
            ledger: ledger.to_owned(),
            dice: Mutex::new(Dice(seed ^ 0x70656f706c65)),
            answers: Mutex::default(),
            signals: Mutex::default(),
            in_hand: Mutex::default(),
        }))
    }

    pub fn answers(&self) -> Vec<Answer> {
        lock(&self.0.answers).clone()
    }

    pub fn signals(&self) -> Vec<Signal> {
        lock(&self.0.signals).clone()
    }

    fn roll(&self, below: u64) -> u64 {
        lock(&self.0.dice).between(0, below)
    }

    fn door(&self) -> crate::api::Api {
        self.0.doors.any(self.roll(3) as usize)
    }

    /// Makes runs as fast as it may, and answers with their ids and plans.
    pub fn make(
        &self,
        count: usize,
        mut allowed: watch::Receiver<usize>,
    ) -> JoinHandle<BTreeMap<String, String>> {
        let people = self.clone();
        tokio::spawn(async move {
            let (places, mut makers) = (Arc::new(Semaphore::new(MAKERS)), JoinSet::new());
            for number in 0..count {
                allowed.wait_for(|it| *it > number).await.unwrap();
                let place = places.clone().acquire_owned().await.unwrap();
                let (people, plan) = (people.clone(), plan(&mut lock(&people.0.dice)));
                makers.spawn(async move {
                    let run = people.make_one(number, &plan).await;
                    drop(place);
                    (run, plan)
                });
            }
            makers.join_all().await.into_iter().collect()
        })
    }

    /// Every fourth one is asked for at two servers at once: it is one run.
    async fn make_one(&self, number: usize, plan: &str) -> String {
        let (key, began) = (format!("chaos-{number}"), Instant::now());
        while began.elapsed() < MAKE_MAX {
            let one = self.try_make(&key, plan);
            let two = async {
                if number.is_multiple_of(4) { self.try_make(&key, plan).await } else { None }
            };
            let (one, two) = tokio::join!(one, two);
            let both = one.as_ref().zip(two.as_ref());
            assert!(both.is_none_or(|(one, two)| one == two), "{key} made {one:?} and {two:?}");
            if let Some(run) = one.or(two) {
                return run;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("{key} could not be made in {MAKE_MAX:?}");
    }

    async fn try_make(&self, key: &str, plan: &str) -> Option<String> {
        let api = self.door();
        tokio::time::timeout(PATIENCE, api.try_create(key, plan)).await.ok().flatten()
    }

    /// Looks for what waits, for as long as it is let.
    pub fn attend(&self) -> JoinHandle<()> {
        let people = self.clone();
        tokio::spawn(async move {
            let mut hands = JoinSet::new();
            loop {
                for question in people.listed("/api/permissions?status=pending&limit=200").await {
                    let id = question["id"].as_str().unwrap().to_owned();
                    let act = move |it: People| async move { it.answer(&question).await };
                    people.take_up(&mut hands, id, act);
                }
                for run in people.listed("/api/runs?status=waiting&limit=200").await {
                    let id = run["id"].as_str().unwrap().to_owned();
                    if run["waiting_for"] == "signal" {
                        let of = id.clone();
                        let act = move |it: People| async move { it.signal(&of).await };
                        people.take_up(&mut hands, id, act);
                    }
                }
                while let Some(done) = hands.try_join_next() {
                    done.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    }

    async fn listed(&self, path: &str) -> Vec<Value> {
        let api = self.door();
        match tokio::time::timeout(PATIENCE, api.try_get(path)).await {
            Ok(Some((200, page))) => page["items"].as_array().cloned().unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn take_up<F>(
        &self,
        hands: &mut JoinSet<()>,
        id: String,
        act: impl FnOnce(People) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        if !lock(&self.0.in_hand).insert(id.clone()) {
            return;
        }
        let people = self.clone();
        hands.spawn(async move {
            act(people.clone()).await;
            lock(&people.0.in_hand).remove(&id);
        });
    }

    /// Answers one question in one of the ways in which people do. What nobody heard is found open
    /// again, and answered again.
    async fn answer(&self, question: &Value) {
        if self.roll(4) == 0 {
            tokio::time::sleep(Duration::from_millis(self.roll(3000))).await;
        }
        let id = question["id"].as_str().unwrap();
        if question["kind"] == "recover" {
            return self.say(id, self.recover(question)).await;
        }
        let decision = if self.roll(8) == 0 { "denied" } else { "granted" };
        match self.roll(6) {
            0 => {
                self.say(id, decision).await;
                self.say(id, decision).await;
            }
            1 => {
                tokio::join!(self.say(id, decision), self.say(id, decision));
            }
            2 => {
                tokio::join!(self.say(id, "granted"), self.say(id, "denied"));
            }
            _ => self.say(id, decision).await,
        }
    }

    /// A person who looks at the far side before they say what became of a call: done, not done and
    /// so to be run, or to be left as it is.
    fn recover(&self, question: &Value) -> &'static str {
        let key = question["correlation_key"].as_str().unwrap().split_once("run_").unwrap().1;
        let ledger = std::fs::read_to_string(&self.0.ledger).unwrap();
        match ledger.lines().any(|it| it.strip_prefix("run_") == Some(key)) {
            _ if self.roll(4) == 0 => "denied",
            true => "supplied",
            false => "granted",
        }
    }

    async fn say(&self, id: &str, decision: &'static str) {
        let body = match decision {
            "supplied" => json!({"decision": "grant", "result": "a person looked: it was done"}),
            "granted" => json!({"decision": "grant"}),
            _ => json!({"decision": "deny"}),
        };
        // Before it is said: nothing that waits for it may come earlier in this file.
        let mut ledger = std::fs::File::options().append(true).open(&self.0.ledger).unwrap();
        ledger.write_all(format!("! {id}\n").as_bytes()).unwrap();
        let (api, path) = (self.door(), format!("/api/permissions/{id}/decision"));
        let told = tokio::time::timeout(PATIENCE, api.try_post(&path, "-", &body)).await;
        let status = told.ok().flatten().map(|(status, _)| status);
        lock(&self.0.answers).push(Answer { question: id.to_owned(), decision, status });
    }

    /// Sends what a run waits for: once, twice, or at two servers at once.
    async fn signal(&self, run: &str) {
        let api = self.door();
        let found = tokio::time::timeout(PATIENCE, api.try_get(&format!("/api/runs/{run}"))).await;
        let Ok(Some((200, found))) = found else { return };
        let keys = found["wait"]["correlation_keys"].as_array().cloned().unwrap_or_default();
        for key in keys.iter().filter_map(Value::as_str).filter(|it| it.starts_with("go-")) {
            match self.roll(3) {
                0 => self.send(run, key).await,
                1 => {
                    self.send(run, key).await;
                    self.send(run, key).await;
                }
                _ => {
                    tokio::join!(self.send(run, key), self.send(run, key));
                }
            }
        }
    }

    async fn send(&self, run: &str, key: &str) {
        let (api, payload) = (self.door(), json!({"number": self.roll(100)}));
        let told = tokio::time::timeout(PATIENCE, api.signal(run, key, &payload)).await;
        let (run, key, status) = (run.to_owned(), key.to_owned(), told.ok().flatten());
        lock(&self.0.signals).push(Signal { run, key, status });
    }
}
