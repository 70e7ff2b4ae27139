//! The organisation of a running server: which version is in force, and how another comes to be.
//!
//! A version is good as a whole or it is not put in force at all; the old one stays.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::Actor;
use chancery_domain::org::Org;
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::clock;
use chancery_runtime::tool::config::{Place, Report};
use chancery_store::org::{NewOrgVersion, OrgSource, OrgVersion};
use chancery_store::{Store, StoreError};
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::difference::{Difference, difference};
use super::mistake::{Mistake, Mistakes};
use super::switch::{self, Switch};
use super::{Files, Loaded, load, read_files};

/// How often the directory is looked at, and the store for what other servers were given. What
/// has changed is read when it has stayed the same for as long: an editor may still be writing.
const LOOK: Duration = Duration::from_secs(1);

/// How often a change begins again because another server has made one. People change the
/// organisation, and seldom: whoever is overtaken this often is told.
const REVISIONS_MAX: usize = 8;

/// The organisation in force. All clones are one.
#[derive(Debug, Clone)]
pub struct Organisation(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    dir: Option<PathBuf>,
    switch: Switch,
    state: RwLock<State>,
    /// One change at a time.
    changing: Mutex<()>,
}

#[derive(Debug, Clone)]
pub struct State {
    pub version: OrgVersion,
    pub loaded: Arc<Loaded>,
    /// What keeps the directory, as it is now, from being in force.
    pub pending: Arc<[Mistake]>,
    /// The digest of the directory when it was last good.
    found: Arc<str>,
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("{}", summary(.0))]
    Mistakes(Vec<Mistake>),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the organisation has changed meanwhile")]
    Overtaken,
}

/// Where a version comes from, and on which it stands.
struct Origin {
    by: Actor,
    source: OrgSource,
    made_from: Option<u64>,
}

/// All of them in one text.
pub fn summary(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Organisation {
    /// Reads what there is, keeps it as a version, and puts it in force.
    pub async fn start(
        store: &Store,
        dir: Option<PathBuf>,
        place: Place,
    ) -> Result<(Organisation, InForce, Report), ChangeError> {
        let (files, mistakes) = read_files(dir.as_deref());
        let found = load(files, mistakes).map_err(ChangeError::Mistakes)?;
        let digest = found.files.digest();
        let (version, mut loaded) = settle(store, dir.is_some(), found).await?;
        switch::planned(&mut loaded, &place).map_err(ChangeError::Mistakes)?;
        warn(&loaded.warnings);
        let built = switch::tools(&loaded.tools, &place).await;
        let (tools, report) = built.map_err(ChangeError::Mistakes)?;
        let org = numbered(&loaded.org, version.number);
        let compiled = switch::compile(org, tools, &loaded.files);
        let authority = InForce::new(compiled.map_err(ChangeError::Mistakes)?);
        let inner = Inner {
            store: store.clone(),
            dir,
            switch: Switch::new(authority.clone(), place),
            state: RwLock::new(State {
                version,
                loaded: Arc::new(loaded),
                pending: Arc::new([]),
                found: digest.into(),
            }),
            changing: Mutex::new(()),
        };
        Ok((Organisation(Arc::new(inner)), authority, report))
    }

    pub fn state(&self) -> State {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What putting these files in force would come to. Nothing is started and nothing changes.
    pub fn check(&self, files: Files, mistakes: Mistakes) -> Result<Loaded, Vec<Mistake>> {
        self.draft(files, mistakes).map(|(loaded, _)| loaded)
    }

    /// The same, with what would rule then.
    pub fn draft(
        &self,
        files: Files,
        mistakes: Mistakes,
    ) -> Result<(Loaded, Authority), Vec<Mistake>> {
        let mut loaded = load(files, mistakes)?;
        let authority = self.0.switch.check(&self.state().loaded.tools, &mut loaded)?;
        Ok((loaded, authority))
    }

    /// Puts these files in force, if they can be.
    pub async fn change(
        &self,
        files: Files,
        mistakes: Mistakes,
        by: Actor,
        source: OrgSource,
    ) -> Result<State, ChangeError> {
        let alone = self.0.changing.lock().await;
        let made_from = None;
        self.enter(&alone, files, mistakes, Origin { by, source, made_from }).await
    }

    /// Puts in force what `edit` makes of the version that is. Nothing is lost that others put in
    /// force meanwhile: where another server did, that is taken up, and `edit` is asked again.
    pub(super) async fn revise<E: From<ChangeError>>(
        &self,
        by: &Actor,
        edit: impl Fn(&State) -> Result<(Files, Mistakes), E>,
    ) -> Result<State, E> {
        let alone = self.0.changing.lock().await;
        for _ in 0..REVISIONS_MAX {
            let before = self.state();
            let (files, mistakes) = edit(&before)?;
            let made_from = Some(before.version.number);
            let origin = Origin { by: by.clone(), source: OrgSource::Api, made_from };
            match self.enter(&alone, files, mistakes, origin).await {
                Err(ChangeError::Overtaken) => self.catch_up(&alone).await?,
                entered => return Ok(entered?),
            }
        }
        Err(ChangeError::Overtaken.into())
    }

    async fn enter(
        &self,
        _alone: &MutexGuard<'_, ()>,
        files: Files,
        mistakes: Mistakes,
        origin: Origin,
    ) -> Result<State, ChangeError> {
        let mut loaded = load(files, mistakes).map_err(ChangeError::Mistakes)?;
        self.0.switch.warn(&mut loaded).map_err(ChangeError::Mistakes)?;
        let Origin { by, source, made_from } = origin;
        let new = NewOrgVersion {
            digest: loaded.files.digest(),
            at: clock::now(),
            by,
            source,
            files: texts(&loaded.files),
            made_from,
        };
        let old = self.state();
        let prepared = self.0.switch.prepare(&old.loaded.tools, &loaded.tools).await;
        let tools = prepared.map_err(ChangeError::Mistakes)?;
        switch::compile(Arc::new(loaded.org.clone()), tools.clone(), &loaded.files)
            .map_err(ChangeError::Mistakes)?;
        let differences = difference(&old.loaded, &loaded);
        let version = keep(&self.0.store, &new, &differences).await?;
        let org = numbered(&loaded.org, version.number);
        // It was compiled once before it was kept: it compiles now.
        let compiled = switch::compile(org, tools, &loaded.files);
        self.0.switch.replace(compiled.map_err(ChangeError::Mistakes)?);
        Ok(self.entered(version, loaded))
    }

    /// Puts a version in force that the store has.
    async fn follow(&self, _alone: &MutexGuard<'_, ()>, number: u64) -> Result<(), ChangeError> {
        if number <= self.state().version.number {
            return Ok(());
        }
        let Some((version, files)) = self.0.store.org_version(number).await? else {
            return Ok(());
        };
        let mut loaded = load_texts(files).map_err(ChangeError::Mistakes)?;
        self.0.switch.warn(&mut loaded).map_err(ChangeError::Mistakes)?;
        let old = self.state();
        let prepared = self.0.switch.prepare(&old.loaded.tools, &loaded.tools).await;
        let tools = prepared.map_err(ChangeError::Mistakes)?;
        let org = numbered(&loaded.org, number);
        let compiled = switch::compile(org, tools, &loaded.files);
        self.0.switch.replace(compiled.map_err(ChangeError::Mistakes)?);
        self.entered(version, loaded);
        Ok(())
    }

    /// Puts the newest version in force that the store has.
    async fn catch_up(&self, alone: &MutexGuard<'_, ()>) -> Result<(), ChangeError> {
        match self.0.store.newest_org_version().await? {
            Some(newest) => self.follow(alone, newest.number).await,
            None => Ok(()),
        }
    }

    fn entered(&self, version: OrgVersion, loaded: Loaded) -> State {
        let mut place = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        let old = place.version.number;
        (place.version, place.loaded) = (version, Arc::new(loaded));
        let state = place.clone();
        drop(place);
        if state.version.number != old {
            announce_change(&state);
        }
        state
    }

    fn put_off(&self, mistakes: Vec<Mistake>) {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        state.pending = mistakes.into();
    }

    /// The directory is as it was when it was last put in force, or is in force now.
    fn is_good(&self, digest: &str) {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        (state.pending, state.found) = (Arc::new([]), digest.into());
    }

    /// Looks for changes until the server stops.
    pub async fn watch(self, stop: CancellationToken) {
        // The first look reads it once more: it may have changed since the start.
        let (mut seen, mut read) = (self.fingerprint().await, None);
        while stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_some() {
            let now = self.fingerprint().await;
            let settled = now == seen;
            seen = now;
            if settled && self.0.dir.is_some() && read.as_ref() != Some(&seen) {
                read = Some(seen.clone());
                self.reread().await;
            }
            if self.0.store.is_shared() {
                self.look_for_newer().await;
            }
        }
    }

    async fn reread(&self) {
        let dir = self.0.dir.clone();
        let read = tokio::task::spawn_blocking(move || read_files(dir.as_deref())).await;
        let Ok((files, mistakes)) = read else { return };
        let digest = files.digest();
        if !mistakes.has_errors() && *digest == *self.state().found {
            return self.is_good(&digest);
        }
        match self.change(files, mistakes, Actor::System, OrgSource::Files).await {
            Ok(state) => {
                self.is_good(&digest);
                warn(&state.loaded.warnings);
            }
            Err(ChangeError::Mistakes(mistakes)) => {
                tracing::error!(
                    "The organisation's files are not put in force: {}",
                    summary(&mistakes)
                );
                self.put_off(mistakes);
            }
            Err(error @ (ChangeError::Store(_) | ChangeError::Overtaken)) => {
                tracing::error!("The organisation's files are not put in force: {error}");
            }
        }
    }

    async fn look_for_newer(&self) {
        let newest = match self.0.store.newest_org_version().await {
            Ok(newest) => newest,
            // It is away, and says so elsewhere.
            Err(_) => return,
        };
        let Some(newest) = newest.filter(|it| it.number > self.state().version.number) else {
            return;
        };
        let alone = self.0.changing.lock().await;
        if let Err(error) = self.follow(&alone, newest.number).await {
            let number = newest.number;
            tracing::error!("Version {number} of the organisation is not put in force: {error}");
            if let ChangeError::Mistakes(mistakes) = error {
                self.put_off(mistakes);
            }
        }
    }

    /// What changes when a file does.
    async fn fingerprint(&self) -> Vec<(String, Option<SystemTime>, u64)> {
        let Some(dir) = self.0.dir.clone() else { return Vec::new() };
        let look = move || {
            let mut found = Vec::new();
            for dir in [dir.clone(), dir.join("rules")] {
                for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                    let path = entry.path();
                    let Ok(metadata) = std::fs::metadata(&path) else { continue };
                    let name = path.to_string_lossy().into_owned();
                    if name.ends_with(".yaml") || name.ends_with(".cedar") {
                        found.push((name, metadata.modified().ok(), metadata.len()));
                    }
                }
            }
            found.sort_unstable();
            found
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }
}

/// Which version is in force at the start: the one that was found, unless somebody has sent
/// another since it was found last.
async fn settle(
    store: &Store,
    from_files: bool,
    found: Loaded,
) -> Result<(OrgVersion, Loaded), ChangeError> {
    let digest = found.files.digest();
    let newest = store.newest_org_version().await?;
    if let Some(newest) = newest.filter(|it| it.source == OrgSource::Api) {
        let last = store.newest_org_version_found().await?;
        if last.is_some_and(|it| it.digest == digest)
            && let Some((version, files)) = store.org_version(newest.number).await?
        {
            match load_texts(files) {
                Ok(loaded) => return Ok((version, loaded)),
                Err(mistakes) => {
                    let number = version.number;
                    let why = summary(&mistakes);
                    tracing::error!("Version {number} of the organisation cannot be used: {why}");
                }
            }
        }
    }
    let source = if from_files { OrgSource::Files } else { OrgSource::BuiltIn };
    let files = texts(&found.files);
    let (at, by, made_from) = (clock::now(), Actor::System, None);
    let new = NewOrgVersion { digest, at, by, source, files, made_from };
    Ok((keep(store, &new, &[]).await?, found))
}

/// In the audit a change is what it means; nobody reads more of them than this.
const DIFFERENCES_MAX: usize = 200;

async fn keep(
    store: &Store,
    new: &NewOrgVersion,
    differences: &[Difference],
) -> Result<OrgVersion, ChangeError> {
    let shown = differences.iter().take(DIFFERENCES_MAX);
    let shown: Vec<String> = shown.map(|it| format!("{}: {}", it.subject, it.detail)).collect();
    let kept = store
        .add_org_version(new, |number| Entry {
            reference: Some(number.to_string()),
            detail: json!({
                "version": number,
                "digest": new.digest,
                "source": new.source.as_str(),
                "differences": shown,
                "left_out": differences.len() - shown.len(),
            }),
            ..Entry::new(clock::new_audit_id(), kind::ORG_CHANGED, new.by.clone())
        })
        .await?;
    kept.ok_or(ChangeError::Overtaken)
}

pub fn texts(files: &Files) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// What a store has kept, read again.
pub fn load_texts(files: BTreeMap<String, String>) -> Result<Loaded, Vec<Mistake>> {
    let mut mistakes = Mistakes::default();
    let files = Files::new(files, &mut mistakes);
    load(files, mistakes)
}

fn numbered(org: &Org, version: u64) -> Arc<Org> {
    let mut org = org.clone();
    org.version = version;
    Arc::new(org)
}

fn warn(warnings: &[Mistake]) {
    // Nobody here can do anything about what is built in.
    for warning in warnings.iter().filter(|it| !it.file.starts_with("builtin/")) {
        tracing::warn!("{warning}");
    }
}

fn announce_change(state: &State) {
    let OrgVersion { number, source, .. } = &state.version;
    tracing::info!("Version {number} of the organisation is in force, from {}", source.as_str());
}
