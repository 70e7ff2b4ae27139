//! Directories, commands in them, and servers that end with the test.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub const SCENARIO: &str = r#"
agents:
  pa:
    - when: {user_matches: "^wait"}
      call: {tool: wait_for_signal, args: {correlation_key: "go; rm x"}}
    - when: {tool_result: wait_for_signal}
      say: "went on with {{result.note}}"
    - when: {user_matches: "^escape"}
      say: "\e[2Jred\u202e\r"
fallback: "heard: {{input}}"
"#;

/// A directory of one's own, and nothing of the machine's settings.
pub struct Place {
    pub dir: TempDir,
}

/// How a command went.
#[derive(Debug, Clone, PartialEq)]
pub struct Went {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub struct Serving {
    child: Child,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: TempDir::new().unwrap() }
    }

    /// With `chancery.toml`, on a free port, with [`SCENARIO`].
    pub fn configured(more: &str) -> Place {
        let place = Place::new();
        place.write("scenario.yaml", SCENARIO);
        place.write(
            "chancery.toml",
            &format!(
                "listen = \"127.0.0.1:0\"\n{more}\n[models.default]\nprovider = \"scripted\"\n\
                 scenario = \"scenario.yaml\"\n"
            ),
        );
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(Path::new(env!("CARGO_BIN_EXE_chancery")));
        command.args(arguments).current_dir(self.dir.path()).env_clear();
        command.env("HOME", self.dir.path()).env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn chancery(&self, arguments: &[&str]) -> Went {
        went(self.command(arguments))
    }

    /// With these words on standard input.
    pub fn told(&self, arguments: &[&str], input: &str) -> Went {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        of(child.wait_with_output().unwrap())
    }

    /// A server, once it answers.
    pub fn serve(&self, arguments: &[&str]) -> Serving {
        let mut command = self.command(&[&["serve"], arguments].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        // Written last, and before anything is served: what asks meanwhile waits its turn.
        while !self.path("chancery-data/server").exists() {
            assert_eq!(child.try_wait().unwrap(), None, "the server ended");
            assert!(began.elapsed() < Duration::from_secs(30), "the server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Serving { child }
    }
}

impl Serving {
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(program(Path::new("kill")).args([name, &pid]).status().unwrap().success());
    }

    /// Asks it to stop; answers with its exit code.
    pub fn stop(mut self) -> i32 {
        self.signal("-TERM");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < Duration::from_secs(20), "the server does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Went {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|it| panic!("{it}: {self:?}"))
    }

    /// Asserts that it failed so, with one line that says why and nothing else.
    #[track_caller]
    pub fn failed(&self, code: i32) -> &str {
        assert_eq!((self.code, &*self.out), (code, ""), "{self:?}");
        let said = self.err.strip_prefix("error: ").unwrap_or_else(|| panic!("{self:?}"));
        assert_eq!(said.matches('\n').count(), 1, "{self:?}");
        said.trim_end()
    }

    /// Asserts that the command line was not understood.
    #[track_caller]
    pub fn usage(&self) {
        assert_eq!((self.code, &*self.out), (2, ""), "{self:?}");
    }

    #[track_caller]
    pub fn done(&self) -> &str {
        assert_eq!((self.code, &*self.err), (0, ""), "{self:?}");
        &self.out
    }
}

pub fn went(mut command: Command) -> Went {
    of(command.output().unwrap())
}

pub fn of(output: std::process::Output) -> Went {
    Went {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[expect(clippy::disallowed_methods, reason = "the program under test")]
pub fn program(path: &Path) -> Command {
    Command::new(path)
}
