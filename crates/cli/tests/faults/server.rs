//! A server as a process: started, made ready, and done everything to that can be done to one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::api::{Api, TOKEN};
use crate::until;

/// A debug build on a busy machine.
const START_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Start {
    /// Put in front of the program: what it is started by.
    pub launcher: Vec<String>,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// Killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    pub api: Api,
}

impl Start {
    /// The program with nothing of ours in its environment that would change its settings.
    #[expect(clippy::disallowed_methods, reason = "what is tested here is a process")]
    pub fn command(&self) -> Command {
        let mut words = self.launcher.clone();
        words.push(env!("CARGO_BIN_EXE_chancery").to_owned());
        words.extend(self.arguments.clone());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("CHANCERY_BOOTSTRAP_TOKEN", TOKEN);
        command.envs(self.environment.clone());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Starts it, and waits until it is ready.
    pub async fn serve(&self) -> Server {
        self.try_serve().await.expect("the server ended at once")
    }

    /// The same; `None` if it ends before.
    pub async fn try_serve(&self) -> Option<Server> {
        let mut child = self.command().spawn().unwrap();
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let stderr = child.stderr.take().unwrap();
        let heard = said.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lock(&heard).push(line);
            }
        });
        let mut server = Server { child, said, api: Api::at("") };
        until("the server is not ready", START_MAX, async || {
            if let Some(status) = server.ended() {
                println!("a server ended before it was ready: {status}, {:?}", server.said());
                return Some(false);
            }
            let url = server.said().iter().find_map(|it| api_line(it))?;
            server.api = Api::at(&url);
            server.api.ready().await.then_some(true)
        })
        .await
        .then_some(server)
    }

    /// Starts it where it is expected to end by itself, and answers with its code and its words.
    pub fn ends(&self) -> (Option<i32>, String) {
        let output = self.command().output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn api_line(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("API ")?;
    rest.split_whitespace().next().map(str::to_owned)
}

fn lock(said: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// What it said on standard error so far.
    pub fn said(&self) -> Vec<String> {
        lock(&self.said).clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and gone.
    pub fn kill(mut self) {
        self.kill_now();
    }

    /// The same, where its place is kept for the next.
    pub fn kill_now(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub async fn end(&mut self, patience: Duration) -> ExitStatus {
        until("the server still runs", patience, async || self.child.try_wait().unwrap()).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = self.said();
            let last = &said[said.len().saturating_sub(40)..];
            eprintln!("the server {} said last:\n{}", self.child.id(), last.join("\n"));
        }
    }
}
