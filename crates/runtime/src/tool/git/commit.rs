//! A commit of files as they are, on top of a branch that nobody has checked out.
//!
//! The files are read by us, within the agent's file scope, and handed to git as copies: git
//! follows no link and asks no filter.

use chancery_domain::event::CallResult;
use chancery_domain::policy::Access;

use super::super::CallContext;
use super::super::desk::wrong;
use super::super::files::{FileError, Reach};
use super::repository::{Bench, Git, GitError};

const FILES_MAX: usize = 500;
const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;
const ALL_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many files git is told of at once: what an argument list holds easily.
const AT_ONCE: usize = 100;
/// How often a commit is made again because the branch moved meanwhile.
const TRIES_MAX: usize = 3;

pub(super) struct Wanted {
    pub branch: String,
    pub paths: Vec<String>,
    pub delete: Vec<String>,
    pub message: String,
}

struct Taken {
    /// As the repository knows it.
    path: String,
    bytes: Vec<u8>,
    program: bool,
}

type Answer = Result<CallResult, CallResult>;

pub(super) async fn commit(
    git: &Git,
    wanted: Wanted,
    context: &CallContext,
    reach: Reach,
) -> Answer {
    let bench = git.bench(context)?;
    let mut tip = bench.tip(&wanted.branch).await?;
    if tip.is_none() && bench.head().await?.is_some() {
        let detail = format!("there is no branch `{}`: make it with `git_branch`", wanted.branch);
        return Err(CallResult::error("NOT_FOUND", detail));
    }
    let deleted = deleted(git, &wanted, &reach)?;
    let prefix = git.prefix().to_owned();
    let paths = wanted.paths.clone();
    let taken = tokio::task::spawn_blocking(move || take(&prefix, &paths, &reach)).await;
    let taken = taken.map_err(|_| CallResult::error("GIT_FAILED", "the files were cut off"))??;
    let blobs = store(&bench, &taken).await?;
    let message = format!("{}\n\nChancery-Run: {}\n", wanted.message.trim_end(), context.run);
    std::fs::write(bench.file("message"), message).map_err(GitError::Start)?;
    for _ in 0..TRIES_MAX {
        let made = make(&bench, tip.as_deref(), &taken, &blobs, &deleted).await?;
        let Some(made) = made else {
            let at = tip.unwrap_or_default();
            let detail = format!("nothing to commit: `{}` at {at} holds it all", wanted.branch);
            return Ok(CallResult::ok(detail));
        };
        if bench.move_branch(&wanted.branch, &made, tip.as_deref()).await? {
            let (files, gone) = (taken.len(), deleted.len());
            let detail = format!("`{}` is at {made}: {files} files, {gone} deleted", wanted.branch);
            return Ok(CallResult::ok(detail));
        }
        tip = bench.tip(&wanted.branch).await?;
    }
    Err(CallResult::error("CONFLICT", "others write to this branch at the same time"))
}

fn deleted(git: &Git, wanted: &Wanted, reach: &Reach) -> Result<Vec<String>, CallResult> {
    let named = wanted.delete.iter().map(|path| {
        reach.rule(Access::Write, path)?;
        let plain = plain(path)?;
        git.within(&plain).map(str::to_owned).ok_or_else(|| outside(path))
    });
    named.collect()
}

fn outside(path: &str) -> CallResult {
    wrong(format!("`{path}` is not a path in the repository"))
}

/// A path without its empty parts.
fn plain(path: &str) -> Result<String, CallResult> {
    let parts = chancery_domain::policy::scope_components(path).ok_or_else(|| outside(path))?;
    if parts.iter().any(|it| it.eq_ignore_ascii_case(".git")) {
        return Err(outside(path));
    }
    Ok(parts.join("/"))
}

/// The files that are named, and those of the folders that are named. Blocking.
fn take(prefix: &str, paths: &[String], reach: &Reach) -> Result<Vec<Taken>, CallResult> {
    let mut taken: Vec<Taken> = Vec::new();
    let mut bytes_in_all = 0;
    let mut one = |path: &str| -> Result<Option<FileError>, CallResult> {
        let (bytes, program) = match reach.written(path, FILE_BYTES_MAX) {
            Err(FileError::Directory(_)) => return Ok(Some(FileError::Directory(path.to_owned()))),
            read => read?,
        };
        let known = path.strip_prefix(prefix).filter(|it| !it.is_empty());
        let known = known.ok_or_else(|| outside(path))?.to_owned();
        bytes_in_all += bytes.len();
        if taken.len() >= FILES_MAX || bytes_in_all > ALL_BYTES_MAX {
            return Err(CallResult::error(
                "TOO_LARGE",
                format!("a commit has at most {FILES_MAX} files and {ALL_BYTES_MAX} bytes"),
            ));
        }
        if !taken.iter().any(|it| it.path == known) {
            taken.push(Taken { path: known, bytes, program });
        }
        Ok(None)
    };
    for path in paths {
        let path = plain(path)?;
        let folder = if path.is_empty() { "." } else { &path };
        reach.rule(Access::Write, folder)?;
        if path.is_empty() || one(&path)?.is_some() {
            for file in reach.walk(folder, FILES_MAX)? {
                // In a folder, what is not the caller's to write is left out.
                if reach.rule(Access::Write, &file).is_ok() {
                    one(&file)?;
                }
            }
        }
    }
    Ok(taken)
}

/// Puts the files among the repository's objects; answers their names there.
async fn store(bench: &Bench<'_>, taken: &[Taken]) -> Result<Vec<String>, GitError> {
    let mut names = Vec::new();
    for (number, batch) in taken.chunks(AT_ONCE).enumerate() {
        let mut args = vec![
            "hash-object".to_owned(),
            "-w".to_owned(),
            "--no-filters".to_owned(),
            "--".to_owned(),
        ];
        for (place, file) in batch.iter().enumerate() {
            let copy = bench.file(&format!("files/{number}-{place}"));
            std::fs::write(&copy, &file.bytes).map_err(GitError::Start)?;
            args.push(copy.to_string_lossy().into_owned());
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        names.extend(bench.run(&args).await?.lines().map(str::to_owned));
    }
    if names.len() == taken.len() {
        Ok(names)
    } else {
        Err(GitError::Refused("the files were not all taken".to_owned()))
    }
}

/// The commit on top of a tip. `None`: it would change nothing.
async fn make(
    bench: &Bench<'_>,
    tip: Option<&str>,
    taken: &[Taken],
    blobs: &[String],
    deleted: &[String],
) -> Result<Option<String>, GitError> {
    match tip {
        Some(tip) => bench.run(&["read-tree", tip]).await?,
        None => bench.run(&["read-tree", "--empty"]).await?,
    };
    for batch in deleted.chunks(AT_ONCE) {
        let mut args = vec!["update-index", "--force-remove", "--"];
        args.extend(batch.iter().map(String::as_str));
        bench.run(&args).await?;
    }
    let entries: Vec<String> = taken
        .iter()
        .zip(blobs)
        .map(|(file, blob)| {
            let mode = if file.program { "100755" } else { "100644" };
            format!("{mode},{blob},{}", file.path)
        })
        .collect();
    for batch in entries.chunks(AT_ONCE) {
        let mut args = vec!["update-index", "--add", "--replace"];
        args.extend(batch.iter().flat_map(|it| ["--cacheinfo", it.as_str()]));
        bench.run(&args).await?;
    }
    let tree = bench.run(&["write-tree"]).await?.trim().to_owned();
    if let Some(tip) = tip {
        let name = format!("{tip}^{{tree}}");
        if bench.run(&["rev-parse", "--verify", &name]).await?.trim() == tree {
            return Ok(None);
        }
    }
    let message = bench.file("message").to_string_lossy().into_owned();
    let mut args = vec!["commit-tree", &tree, "-F", &message];
    if let Some(tip) = tip {
        args.extend(["-p", tip]);
    }
    Ok(Some(bench.run(&args).await?.trim().to_owned()))
}
