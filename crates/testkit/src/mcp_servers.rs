//! Real servers for tests (MCP, mail), a tester of APIs and clients of others: published packages at
//! fixed versions, installed once into a cache.
//!
//! The cache is `$CHANCERY_TEST_CACHE`, or `~/.cache/chancery/mcp`. Nothing is skipped: a package
//! that cannot be installed is an error that says what to install.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const NPM: &[&str] = &[
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-everything@2026.8.31",
];
const PYPI: &[&str] = &["mcp-server-time==2026.10.19"];
/// The official clients: what agents outside speak with.
const SDK: &[&str] = &["mcp==2.3.0"];
const INSPECTOR: &[&str] = &["@modelcontextprotocol/inspector@2.12.0"];
/// Apart from the others, whose dependencies are not its own.
const SCHEMATHESIS: &[&str] = &["schemathesis==4.32.5"];
const OPENAI_PYTHON: &[&str] = &["openai==3.49.0"];
const OPENAI_NODE: &[&str] = &["openai@7.53.0"];

/// What makes clients of a document.
const PYTHON_CLIENT: &[&str] = &["openapi-python-client==0.29.1"];
const TYPESCRIPT_CLIENT: &[&str] = &[
    "openapi-typescript@7.13.0",
    "openapi-fetch@0.17.0",
    "typescript@5.9.3",
    "@types/node@20.19.25",
];
/// A certified OpenID provider.
const OIDC_PROVIDER: &[&str] = &["oidc-provider@9.13.3"];
const SMTP: &[&str] = &["aiosmtpd==1.4.6"];

/// What looks for barriers in a page. Apart from the servers, so that neither waits for the other.
const AXE: &[&str] = &["axe-core@4.14.0"];

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("the cache for test packages cannot be used (set `CHANCERY_TEST_CACHE`)")]
    Cache(#[from] io::Error),
    #[error("`{command}` failed: these tests need {needs} and a way to fetch packages; {detail}")]
    Failed { command: String, needs: &'static str, detail: String },
}

/// The command of the file system server, which serves `directory`.
pub fn filesystem(directory: &Path) -> Result<Vec<String>, InstallError> {
    let script = npm()?.join("@modelcontextprotocol/server-filesystem/dist/index.js");
    Ok(vec!["node".to_owned(), text(&script), text(directory)])
}

/// The command of the server that has one of everything, over streamable HTTP on `$PORT`.
pub fn everything_over_http() -> Result<Vec<String>, InstallError> {
    let script = npm()?.join("@modelcontextprotocol/server-everything/dist/index.js");
    Ok(vec!["node".to_owned(), text(&script), "streamableHttp".to_owned()])
}

/// The command of the server that knows what time it is.
pub fn time() -> Result<Vec<String>, InstallError> {
    let python = pypi()?.join("bin/python");
    Ok(["-m", "mcp_server_time", "--local-timezone", "Etc/UTC"].into_iter().fold(
        vec![text(&python)],
        |mut argv, it| {
            argv.push(it.to_owned());
            argv
        },
    ))
}

/// The program that holds a server to its OpenAPI document.
pub fn schemathesis() -> Result<PathBuf, InstallError> {
    Ok(venv("schemathesis", SCHEMATHESIS)?.join("bin/schemathesis"))
}

/// A Python's directory of programs, with one that makes Python clients.
pub fn python_client() -> Result<PathBuf, InstallError> {
    Ok(venv("python_client", PYTHON_CLIENT)?.join("bin"))
}

/// The `node_modules` with what makes TypeScript clients.
pub fn typescript_client() -> Result<PathBuf, InstallError> {
    modules("typescript_client", TYPESCRIPT_CLIENT)
}

/// A Python that has a mail server among its modules, `aiosmtpd`.
pub fn smtp_python() -> Result<PathBuf, InstallError> {
    Ok(venv("smtp", SMTP)?.join("bin/python"))
}

/// A Python that has OpenAI's client.
pub fn openai_python() -> Result<PathBuf, InstallError> {
    Ok(venv("openai-python", OPENAI_PYTHON)?.join("bin/python"))
}

/// The directory beneath which Node.js finds OpenAI's client.
pub fn openai_node() -> Result<PathBuf, InstallError> {
    packages_in("openai-node", OPENAI_NODE)
}

/// The directory beneath which Node.js finds an OpenID provider.
pub fn oidc_provider() -> Result<PathBuf, InstallError> {
    packages_in("oidc-provider", OIDC_PROVIDER)
}

/// The script that looks for barriers in a page.
pub fn axe() -> Result<PathBuf, InstallError> {
    Ok(modules("axe", AXE)?.join("axe-core/axe.min.js"))
}

/// A Python that has the official SDK.
pub fn python_with_sdk() -> Result<PathBuf, InstallError> {
    Ok(venv("sdk", SDK)?.join("bin/python"))
}

/// The command of the MCP Inspector, without its page.
pub fn inspector() -> Result<Vec<String>, InstallError> {
    let script = modules("inspector", INSPECTOR)?.join(".bin/mcp-inspector");
    Ok(vec![text(&script), "--cli".to_owned()])
}

fn npm() -> Result<PathBuf, InstallError> {
    modules("npm", NPM)
}

fn modules(kind: &str, packages: &[&str]) -> Result<PathBuf, InstallError> {
    Ok(packages_in(kind, packages)?.join("node_modules"))
}

/// The directory that has these packages in its `node_modules`.
fn packages_in(kind: &str, packages: &[&str]) -> Result<PathBuf, InstallError> {
    installed(kind, packages, |dir| {
        let mut npm = program("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
            .arg(dir)
            .args(packages);
        run(npm, "Node.js 20 with npm")
    })
}

fn pypi() -> Result<PathBuf, InstallError> {
    venv("pypi", PYPI)
}

fn venv(kind: &str, packages: &[&str]) -> Result<PathBuf, InstallError> {
    installed(kind, packages, |dir| {
        let needs = "Python 3.10 with venv and pip";
        let mut venv = program("python3");
        venv.args(["-m", "venv"]).arg(dir);
        run(venv, needs)?;
        let mut pip = program(dir.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
        run(pip, needs)
    })
}

/// The directory with these packages in it, which `install` fills if nobody has yet. Tests run
/// at the same time as processes of their own, so a file lock keeps them in line.
fn installed(
    kind: &str,
    packages: &[&str],
    install: impl FnOnce(&Path) -> Result<(), InstallError>,
) -> Result<PathBuf, InstallError> {
    let cache = cache();
    let dir = cache.join(kind);
    fs::create_dir_all(&cache)?;
    let lock = File::create(cache.join(format!("{kind}.lock")))?;
    lock.lock()?;
    let done = dir.join("installed.txt");
    let wanted = packages.join("\n");
    if fs::read_to_string(&done).is_ok_and(|it| it == wanted) {
        return Ok(dir);
    }
    // Half an installation, or one of other versions, is none.
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    install(&dir)?;
    fs::write(&done, wanted)?;
    Ok(dir)
}

fn cache() -> PathBuf {
    match std::env::var_os("CHANCERY_TEST_CACHE") {
        Some(given) => PathBuf::from(given),
        None => PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into()))
            .join(".cache/chancery/mcp"),
    }
}

#[expect(clippy::disallowed_methods, reason = "installs packages for tests, not for agents")]
fn program(name: impl AsRef<OsStr>) -> Command {
    Command::new(name)
}

fn run(mut command: Command, needs: &'static str) -> Result<(), InstallError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |detail: String| InstallError::Failed { command: name, needs, detail };
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            Err(failed(String::from_utf8_lossy(&output.stderr).chars().take(2000).collect()))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
