//! Changes of several runs in one transaction: a child is made with its parent's wait for it, and
//! ends with the end of that wait.

use chancery_domain::escalation;
use chancery_domain::event::Event;
use chancery_domain::history::{Change, History};
use chancery_domain::id::RunId;
use jiff::Timestamp;

use super::Verdict;
use crate::projection::{self, Birth, Prepared};
use crate::{Database, Store, StoreError};

/// What is written together or not at all.
#[derive(Debug, Clone)]
pub(crate) struct Joint {
    pub appends: Vec<Prepared>,
    pub births: Vec<(Prepared, Birth)>,
}

impl Store {
    /// Appends a change with what it does to the runs around it. What comes back is about the
    /// change itself.
    pub(super) async fn append_jointly(
        &self,
        change: &Change,
        attempt: i64,
        at: Timestamp,
    ) -> Result<Verdict, StoreError> {
        loop {
            let mut appends = vec![self.prepare(change, attempt, at)?];
            let parent = match change.hands_back_to() {
                Some(parent) => self.parent_change(parent, change).await?,
                None => None,
            };
            #[cfg(feature = "faults")]
            let parent = parent.filter(|_| !self.has_plant(crate::fault::Plant::ParentNotTold));
            if let Some(parent) = &parent {
                appends.push(self.prepare(parent, 0, at)?);
            }
            let births = change.children().iter().map(|it| self.birth(it, at));
            let births = births.collect::<Result<Vec<_>, _>>()?;
            let joint = Joint { appends, births };
            let verdicts = match &self.inner.database {
                Database::Sqlite(sqlite) => sqlite.append_jointly(joint).await?,
                Database::Postgres(postgres) => postgres.append_jointly(joint).await?,
            };
            let own = verdicts.first().copied().unwrap_or(Verdict::Absent);
            let parent_is_stale =
                verdicts.get(1).is_some_and(|it| matches!(it, Verdict::Stale { .. }));
            match own {
                // The parent has changed since it was read, for instance because a second child
                // has ended: it is read again.
                Verdict::Current if parent_is_stale => {}
                Verdict::Current => return Ok(Verdict::Absent),
                Verdict::Appended => {
                    #[cfg(feature = "faults")]
                    for it in change.children().iter().chain(&parent) {
                        self.witnessed(0, it);
                    }
                    self.announce_around(change, parent.as_ref());
                    return Ok(own);
                }
                refused => return Ok(refused),
            }
        }
    }

    /// What a child's end is to its parent, if that waits for it.
    async fn parent_change(
        &self,
        parent: RunId,
        child: &Change,
    ) -> Result<Option<Change>, StoreError> {
        let log = self.events(parent, 0, u32::MAX).await?;
        // A parent that is not there cannot wait.
        if log.is_empty() {
            return Ok(None);
        }
        let unreadable = |it: &dyn std::fmt::Display| StoreError::Unreadable(it.to_string());
        let history = History::fold(parent, &log).map_err(|it| unreadable(&it))?;
        let told = escalation::hand_back(history, child).map_err(|it| unreadable(&it))?;
        Ok(told.and_then(|mut it| it.change()))
    }

    pub(super) fn birth(
        &self,
        change: &Change,
        at: Timestamp,
    ) -> Result<(Prepared, Birth), StoreError> {
        let Some(Event::Created(created)) = change.events().first() else {
            return Err(StoreError::Failed("a log begins with `run.created`".to_owned()));
        };
        Ok((self.prepare(change, 0, at)?, projection::birth(created)?))
    }

    fn announce_around(&self, change: &Change, parent: Option<&Change>) {
        for child in change.children() {
            self.announce(crate::Changed::Outside(child.run()), true);
        }
        if let Some(parent) = parent {
            self.announce(crate::Changed::Outside(parent.run()), parent.after().wants_worker);
        }
    }
}
