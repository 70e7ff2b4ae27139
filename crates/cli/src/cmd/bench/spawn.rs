//! `bench spawn`: what walls cost a process that is started, beside one that has none. Once as we
//! are, and once with a lot in memory: starting must not depend on what the server holds.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use chancery_runtime::sandbox::{Input, Isolation, Launcher, Limits, Settings, Users, Walls};

use crate::Global;
use crate::isolation::told;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
pub struct SpawnArgs {
    /// How many processes are started of each kind
    #[arg(long, default_value_t = 300)]
    times: usize,
    /// What is held in memory the second time
    #[arg(long, default_value_t = 1024)]
    resident_mib: usize,
}

#[derive(Debug, serde::Serialize)]
struct Figures {
    resident_mib: usize,
    plain_p50_ms: f64,
    walled_p50_ms: f64,
    walled_p95_ms: f64,
}

const PROGRAM: &str = "/bin/true";

pub async fn run(global: &Global, args: &SpawnArgs) -> anyhow::Result<Outcome> {
    let dir = std::env::temp_dir().join(format!("chancery-bench-{}", std::process::id()));
    let workspace = dir.join("workspace");
    std::fs::create_dir_all(&workspace)?;
    let measured = measure(args, &workspace.canonicalize()?).await;
    // Best effort: it lies where temporary things lie.
    let _ = std::fs::remove_dir_all(&dir);
    let (isolation, figures) = measured?;
    if global.json {
        output::json(&figures)?;
        return Ok(Outcome::Done);
    }
    output::line(format_args!("{}", told(&isolation).1))?;
    for it in &figures {
        output::line(format_args!(
            "with {:>5} MiB more in memory: plain {:.2} ms, behind walls {:.2} ms (p95 {:.2} ms)",
            it.resident_mib, it.plain_p50_ms, it.walled_p50_ms, it.walled_p95_ms
        ))?;
    }
    Ok(Outcome::Done)
}

async fn measure(args: &SpawnArgs, workspace: &Path) -> anyhow::Result<(Isolation, Vec<Figures>)> {
    let isolation = Isolation::require(Settings {
        launcher: None,
        users: Some(Users::default()),
        programs: Vec::new(),
        limits: Limits::default(),
        workspace: workspace.to_owned(),
    })
    .await;
    let Isolation::On(launcher) = &isolation else { anyhow::bail!("{}", told(&isolation).1) };
    let mut figures = Vec::new();
    for resident_mib in [0, args.resident_mib] {
        // Written to, or it would not be there.
        let held = vec![1_u8; resident_mib << 20];
        let (mut plain, mut walled) = (Vec::new(), Vec::new());
        // In turn, so that what else the machine does falls on both.
        for _ in 0..args.times.max(1) {
            plain.push(once(None, workspace).await?);
            walled.push(once(Some(launcher), workspace).await?);
        }
        std::hint::black_box(&held);
        figures.push(Figures {
            resident_mib,
            plain_p50_ms: at(&mut plain, 0.5),
            walled_p50_ms: at(&mut walled, 0.5),
            walled_p95_ms: at(&mut walled, 0.95),
        });
    }
    Ok((isolation, figures))
}

async fn once(launcher: Option<&Launcher>, workspace: &Path) -> anyhow::Result<Duration> {
    let began = Instant::now();
    if let Some(launcher) = launcher {
        let argv = [PROGRAM.to_owned()];
        let walls = Walls::around(workspace, false);
        let mut launched =
            launcher.launch(&argv, &BTreeMap::new(), workspace, &walls, Input::Nothing)?;
        let ended = launched.end.wait().await?.map_err(anyhow::Error::msg)?;
        anyhow::ensure!(ended.success(), "{ended}");
        return Ok(began.elapsed());
    }
    #[expect(clippy::disallowed_methods, reason = "the bench measures what starting costs")]
    let mut command = tokio::process::Command::new(PROGRAM);
    command.env_clear().current_dir(workspace).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().await.context(PROGRAM)?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(began.elapsed())
}

fn at(times: &mut [Duration], part: f64) -> f64 {
    times.sort();
    let place = (times.len() as f64 * part) as usize;
    times.get(place.min(times.len().saturating_sub(1))).map_or(0.0, |it| it.as_secs_f64() * 1e3)
}
