//! When all is over: every log from its first event, and every table that is to be empty.

use std::collections::BTreeMap;

use chancery_domain::event::{Event, Recorded};
use chancery_domain::history::History;
use chancery_domain::id::RunId;
use chancery_domain::run::{Outcome, Run};
use chancery_store::StoreError;
use chancery_store::audit::AuditFilter;
use futures_util::FutureExt;

use super::super::Scenario;
use super::super::check::{self, Orphan};
use super::super::family;
use super::super::people::{Law, People};
use super::Company;

impl Company {
    /// Nobody is left behind, nothing is due.
    pub(super) fn nothing_is_left(&self) -> bool {
        let orphans = now(self.record.orphans(1)).is_ok_and(|it| it.is_empty());
        orphans && now(self.record.deposits_due()) == Ok(0)
    }

    pub(super) fn log(&self, run: RunId) -> Result<Vec<Recorded>, String> {
        now(self.record.events(run, 0, u32::MAX))
    }

    pub(super) fn judge(&self) -> Result<(), String> {
        let mut logs = BTreeMap::new();
        for run in self.ledger.runs() {
            logs.insert(run, self.log(run)?);
        }
        let mut orphans: BTreeMap<RunId, Vec<Orphan>> = BTreeMap::new();
        for (run, orphan) in &self.orphans {
            orphans.entry(*run).or_default().push(orphan.clone());
        }
        for (run, log) in &logs {
            let left = orphans.remove(run).unwrap_or_default();
            let told = |wrong: String| {
                let kinds: Vec<_> = log.iter().map(|it| (it.seq, it.event.kind())).collect();
                format!("{wrong}; {run}: {kinds:?}")
            };
            self.judge_one(*run, log, &left).map_err(told)?;
            family::family_holds(*run, log, &logs).map_err(told)?;
        }
        let (queued, _) = now(self.record.queue_depth())?;
        if queued > 0 {
            return Err(format!("{queued} runs are in the queue when all have ended"));
        }
        let audit = now(self.record.audit_verify(None))?;
        match audit.first_bad {
            Some(bad) => Err(format!("audit: {bad}")),
            None => Ok(()),
        }
    }

    fn judge_one(&self, run: RunId, log: &[Recorded], orphans: &[Orphan]) -> Result<(), String> {
        let world = &self.stage.world;
        if let Some(at) = self.ledger.lenient_until(run) {
            world.knew_late(run, at);
        }
        check::whole(run, log, world)?;
        check::by_right(run, log, world)?;
        check::orphans_surfaced(log, orphans, &self.scenario())?;
        let history = History::fold(run, log).map_err(|it| it.to_string())?;
        let grouped = history.created().room.is_some();
        if !grouped {
            check::heard_all(log)?;
        }
        let filter = AuditFilter { run: Some(run), ..AuditFilter::default() };
        let (kept, due) =
            (now(self.record.audit_after(&filter, 0, 10_000))?, check::entries_due(log));
        if kept.len() != due {
            return Err(format!("audit: {} entries, not {due}", kept.len()));
        }
        let completed = matches!(history.run(), Run::Finished(Outcome::Completed { .. }));
        let deposits = now(self.record.deposits_of(run))?;
        let wanted = u64::from(completed && grouped && says_something(log));
        if deposits != wanted {
            return Err(format!("{deposits} deposits, not {wanted}"));
        }
        let row = now(self.record.run(run))?.ok_or("a run without a row")?;
        if (row.status.as_str(), row.seq) != (history.run().status(), history.seq()) {
            return Err(format!("the row says {} at {}", row.status, row.seq));
        }
        Ok(())
    }

    /// What the checks of one run's log have to know of the terms.
    fn scenario(&self) -> Scenario {
        let people = People { law: Law::Usual, ..People::default() };
        let (script, on_unknown) = (Vec::new(), self.fate.on_unknown);
        let (recover, attempts) = (self.fate.recover, self.fate.attempts);
        Scenario { script, on_unknown, recover, attempts, people }
    }
}

fn says_something(log: &[Recorded]) -> bool {
    log.iter().any(|it| match &it.event {
        Event::Completed(it) => !it.output.trim().is_empty(),
        Event::Concluded(it) => !it.answer.trim().is_empty(),
        _ => false,
    })
}

/// What the record answers, on the spot.
fn now<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    match asked.now_or_never() {
        Some(answer) => answer.map_err(|it| it.to_string()),
        None => Err("the record does not answer at once".to_owned()),
    }
}
