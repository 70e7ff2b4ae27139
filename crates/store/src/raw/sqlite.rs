//! SQLite with nothing around it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::{BODY, Rate, Shape};
use crate::StoreError;

pub(super) fn single(dir: &Path, shape: Shape, time: Duration) -> Result<Rate, StoreError> {
    let connection = open(dir, "raw-single.db")?;
    let began = Instant::now();
    let mut latencies = Vec::new();
    let mut n = 0;
    while began.elapsed() < time {
        let asked = Instant::now();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        match shape {
            Shape::Row => row(&connection, n % 64, n)?,
            Shape::Step => step(&connection, n % 64, 2 * (n / 64))?,
        }
        connection.execute_batch("COMMIT")?;
        latencies.push(asked.elapsed());
        n += 1;
    }
    Ok(Rate::of(latencies, began.elapsed()))
}

pub(super) fn group(dir: &Path, clients: usize, time: Duration) -> Result<Rate, StoreError> {
    let connection = open(dir, "raw-group.db")?;
    let (jobs, queue) = mpsc::channel::<(i64, i64, mpsc::SyncSender<()>)>();
    let stop = AtomicBool::new(false);
    let stop = &stop;
    let began = Instant::now();
    let latencies = std::thread::scope(|scope| {
        let writer = scope.spawn(move || write(&connection, &queue));
        let askers: Vec<_> = (0..clients as i64)
            .map(|run| {
                let jobs = jobs.clone();
                scope.spawn(move || ask(run, &jobs, stop))
            })
            .collect();
        drop(jobs);
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let latencies: Vec<Duration> =
            askers.into_iter().flat_map(|it| it.join().unwrap_or_default()).collect();
        let written = writer.join();
        written.map_err(|_| StoreError::Failed("the raw writer panicked".to_owned()))??;
        Ok::<_, StoreError>(latencies)
    })?;
    Ok(Rate::of(latencies, began.elapsed()))
}

fn write(
    connection: &Connection,
    queue: &mpsc::Receiver<(i64, i64, mpsc::SyncSender<()>)>,
) -> Result<(), StoreError> {
    while let Ok(first) = queue.recv() {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut answers = Vec::new();
        let mut next = Some(first);
        while let Some((run, seq, answer)) = next {
            step(connection, run, seq)?;
            answers.push(answer);
            next = queue.try_recv().ok();
        }
        connection.execute_batch("COMMIT")?;
        for answer in answers {
            let _ = answer.send(());
        }
    }
    Ok(())
}

fn ask(
    run: i64,
    jobs: &mpsc::Sender<(i64, i64, mpsc::SyncSender<()>)>,
    stop: &AtomicBool,
) -> Vec<Duration> {
    let (answer, answered) = mpsc::sync_channel(1);
    let mut latencies = Vec::new();
    let mut seq = 0;
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        if jobs.send((run, seq, answer.clone())).is_err() || answered.recv().is_err() {
            break;
        }
        latencies.push(asked.elapsed());
        seq += 2;
    }
    latencies
}

fn row(connection: &Connection, run: i64, seq: i64) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, 'e', ?4)")?;
    insert.execute(params![run, seq, seq, BODY])?;
    Ok(())
}

fn step(connection: &Connection, run: i64, seq: i64) -> rusqlite::Result<()> {
    row(connection, run, seq + 1)?;
    row(connection, run, seq + 2)?;
    connection
        .prepare_cached("UPDATE heads SET seq = ?2 WHERE id = ?1 AND seq = ?3")?
        .execute(params![run, seq + 2, seq])?;
    Ok(())
}

fn open(dir: &Path, name: &str) -> Result<Connection, StoreError> {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(dir.join(format!("{name}{suffix}")));
    }
    let connection = Connection::open(dir.join(name))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(
        "CREATE TABLE heads (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
         CREATE TABLE events (run_id INTEGER, seq INTEGER, at INTEGER, kind TEXT, body TEXT,
           PRIMARY KEY (run_id, seq)) WITHOUT ROWID;",
    )?;
    for run in 0..64 {
        connection.execute("INSERT INTO heads VALUES (?1, 0)", [run])?;
    }
    Ok(connection)
}
