//! One simulated server: a runtime of its own with real workers in it, which moves when it is
//! given turns and is dead when it is dropped.

use std::time::Duration;

use chancery_domain::id::WorkerId;
use chancery_runtime::authority::InForce;
use chancery_runtime::deposit::{self, Retention};
use chancery_runtime::worker::Workers;
use chancery_store::Store;
use chancery_store::fault::Seat;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fate::Fate;
use super::stage::Stage;

/// How many tasks are polled at most between two looks of the director's.
const POLLS: u32 = 3;
/// How long steps in flight have when a server stops.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct Server {
    pub worker: WorkerId,
    pub seat: Seat,
    pub store: Store,
    /// By how much its clock is off.
    pub skew: i64,
    pub in_force: InForce,
    asleep_until: i64,
    /// The company's time when it started, and its own.
    born: (i64, Instant),
    passed: u64,
    stop: CancellationToken,
    workers: Option<Workers>,
    stopping: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl Server {
    pub fn start(
        worker: WorkerId,
        record: &Store,
        fate: &Fate,
        stage: &Stage,
        (time, skew): (i64, i64),
    ) -> Result<Server, String> {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .event_interval(POLLS)
            .build()
            .map_err(|it| it.to_string())?;
        let seat = Seat::new(fate.regime, fate.plant(), stage.ledger());
        let store = record.seated(worker, &seat);
        let parts = stage.parts(fate, &store, &seat);
        let in_force = parts.authority.clone();
        let stop = CancellationToken::new();
        let (workers, born) = runtime.block_on(async {
            let born = Instant::now();
            let kept =
                deposit::deposit(store.clone(), Retention::default(), fate.lease, stop.clone());
            tokio::spawn(kept);
            (Workers::start(parts).await, born)
        });
        let workers = Some(workers.map_err(|it| it.to_string())?);
        let (asleep_until, passed, stopping) = (0, 0, None);
        let born = (time, born);
        let runtime = Some(runtime);
        Ok(Server {
            worker,
            seat,
            store,
            skew,
            in_force,
            asleep_until,
            born,
            passed,
            stop,
            workers,
            stopping,
            runtime,
        })
    }

    /// Lets it move a little. Answers whether it did.
    pub fn turn(&mut self, time: i64, turns: u64) -> bool {
        let Some(runtime) = &self.runtime else { return false };
        let (born, began) = self.born;
        let due = Duration::from_micros((time - born).max(0) as u64);
        runtime.block_on(async {
            let behind = due.saturating_sub(began.elapsed());
            if !behind.is_zero() {
                tokio::time::advance(behind).await;
            }
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        });
        let before = std::mem::replace(&mut self.passed, self.seat.passed());
        self.passed != before
    }

    /// Has it do something beside its work.
    pub fn spawn(&self, act: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(act));
        }
    }

    pub fn sleep_until(&mut self, time: i64) {
        self.asleep_until = time;
    }

    pub fn sleeps(&self, time: i64) -> bool {
        self.asleep_until > time
    }

    /// Nothing keeps it from its work any more.
    pub fn mend(&mut self, time: i64) {
        self.asleep_until = time;
        self.skew = 0;
        self.seat.go_away(0);
        self.seat.slow_down(Duration::ZERO);
    }

    /// It is told to stop, in good order.
    pub fn stop(&mut self) {
        self.stop.cancel();
        if let (Some(runtime), Some(workers)) = (&self.runtime, self.workers.take()) {
            self.stopping = Some(runtime.spawn(workers.stop(GRACE)));
        }
    }

    pub fn has_stopped(&self) -> bool {
        self.stopping.as_ref().is_some_and(JoinHandle::is_finished)
    }

    pub fn is_at_work(&self) -> bool {
        self.stopping.is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // All that it was about is gone with its runtime, wherever it was.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
