//! What the tests need beside Rust: installed where we may, else asked for in one sentence.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cluster;
use crate::keeper::Keeper;
use crate::process::{answers, command, run};

/// A Debian package, and how to tell that what it brings is there.
struct Need {
    package: &'static str,
    present: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need { package: "git", present: || answers("git", &["--version"]) },
    Need { package: "postgresql", present: || cluster::programs().is_some() },
    // For the test that checks a signed anchor as a stranger would.
    Need { package: "openssl", present: || answers("openssl", &["version"]) },
    // For the tests that set a server's clock back.
    Need { package: "faketime", present: || answers("faketime", &["--version"]) },
    // For the proofs; it brings the compiler of what is extracted from them.
    Need { package: "coq", present: || answers("coqc", &["--version"]) },
    // The solver of `policy prove`.
    Need { package: "cvc5", present: || answers("cvc5", &["--version"]) },
    // For the tests of the console.
    Need { package: "chromium", present: || answers("chromium", &["--version"]) },
    Need { package: "chromium-driver", present: || answers("chromedriver", &["--version"]) },
    Need { package: "nodejs", present: || answers("node", &["--version"]) },
    Need { package: "npm", present: || answers("npm", &["--version"]) },
    // Debian ships the module `venv` without what it needs to work.
    Need { package: "python3-venv", present: || answers("python3", &["-c", "import ensurepip"]) },
];

pub fn ensure(keeper: &mut Keeper) -> Result<()> {
    let missing: Vec<&str> =
        NEEDS.iter().filter(|need| !(need.present)()).map(|need| need.package).collect();
    if !missing.is_empty() {
        install(keeper, &missing)?;
    }
    if !answers("cargo", &["nextest", "--version"]) {
        let mut install = command("cargo");
        install.args(["install", "cargo-nextest", "--locked"]);
        // Its artefacts are no one's cache.
        install.env_remove("CARGO_TARGET_DIR");
        run(keeper, &mut install)?;
    }
    Ok(())
}

fn install(keeper: &mut Keeper, packages: &[&str]) -> Result<()> {
    let apt = Path::new("/usr/bin/apt-get").exists();
    if !(apt && cluster::is_root()?) {
        bail!("these are missing, install them and run this again: {}", packages.join(", "));
    }
    println!("installing {}", packages.join(", "));
    run(keeper, command("apt-get").args(["update", "-q"]))?;
    let mut install = command("apt-get");
    install.args(["install", "-q", "-y", "--no-install-recommends"]).args(packages);
    run(keeper, install.env("DEBIAN_FRONTEND", "noninteractive"))
}
