//! A release: the binary, its digest and what it is made of, in a folder. No path and no time of
//! the machine is to be in it, so that two who build one commit with the same compilers can compare.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::graph::{BINARY, TARGET};
use crate::keeper::Keeper;
use crate::process::{command, output, run};
use crate::{sbom, stages, tidy};

pub fn release(into: &Path) -> Result<()> {
    let root = tidy::root();
    let git = |words: &[&str]| -> Result<String> {
        let said = output(command("git").args(words).current_dir(&root))?;
        Ok(String::from_utf8(said)?.trim().to_owned())
    };
    if !git(&["status", "--porcelain"])?.is_empty() {
        bail!("there are changes that are not committed: a release is of a commit");
    }
    let (commit, time) = (git(&["rev-parse", "HEAD"])?, git(&["log", "-1", "--format=%ct"])?);
    let target = stages::target_dir()?;
    let mut build = command("cargo");
    build.args(["build", "--locked", "--release", "--package", BINARY, "--target", TARGET]);
    // Symbols stay, for backtraces; what the debugger alone reads does not.
    build.args(["--config", "profile.release.strip=\"debuginfo\""]).current_dir(&root);
    build.env("CARGO_TARGET_DIR", &target).env("CARGO_INCREMENTAL", "0");
    let places =
        [(root.clone(), "/chancery"), (cargo_home()?, "/cargo"), (target.clone(), "/target")];
    build.env("CARGO_ENCODED_RUSTFLAGS", rust_flags(&places)).env_remove("RUSTFLAGS");
    build.env("CFLAGS", c_flags(&places)).env("CXXFLAGS", c_flags(&places));
    build.env("SOURCE_DATE_EPOCH", time).env("LC_ALL", "C").env("TZ", "UTC");
    run(&mut Keeper::start()?, &mut build)?;
    fs::create_dir_all(into).with_context(|| format!("{}", into.display()))?;
    fs::copy(target.join(TARGET).join("release/chancery"), into.join("chancery"))?;
    fs::write(into.join("chancery.cdx.json"), sbom::text()?)?;
    let digests =
        output(command("sha256sum").args(["chancery", "chancery.cdx.json"]).current_dir(into))?;
    fs::write(into.join("SHA256SUMS"), &digests)?;
    println!("{}{commit} is in {}", String::from_utf8_lossy(&digests), into.display());
    Ok(())
}

/// The linker would put a number of its own into every build, and the compiler its places.
fn rust_flags(places: &[(PathBuf, &str)]) -> String {
    let remapped =
        places.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let linked = "-Clink-arg=-Wl,--build-id=none".to_owned();
    remapped.chain([linked]).collect::<Vec<_>>().join("\u{1f}")
}

fn c_flags(places: &[(PathBuf, &str)]) -> String {
    let remapped =
        places.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    remapped.collect::<Vec<_>>().join(" ")
}

fn cargo_home() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.context("set `CARGO_HOME` or `HOME`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_of_the_machine_is_left_in_what_is_built() {
        let places = [(PathBuf::from("/tree/x"), "/chancery"), (PathBuf::from("/c"), "/cargo")];
        let flags = rust_flags(&places);
        let flags: Vec<&str> = flags.split('\u{1f}').collect();
        assert_eq!(
            flags,
            [
                "--remap-path-prefix=/tree/x=/chancery",
                "--remap-path-prefix=/c=/cargo",
                "-Clink-arg=-Wl,--build-id=none",
            ]
        );
        let c = c_flags(&places);
        assert_eq!(c, "-ffile-prefix-map=/tree/x=/chancery -ffile-prefix-map=/c=/cargo");
    }
}
