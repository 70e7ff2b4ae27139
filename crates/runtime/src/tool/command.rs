//! The operator's own tools: programs that `tools.yaml` names under `commands:`.
//!
//! A `{name}` in the command stands for the value of one argument and stays within its one
//! element: there is no shell, and a value can never become two words. A value may not begin
//! with `-` where it would be read as an option; see [`template`].

mod template;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{Call, CallResult, RequestKind};
use chancery_domain::text::{visible, visible_line};
use serde_json::{Value, json};

use super::process::{self, Behind, Ended, How, Program};
use super::{CallContext, Description, Done, Tool, ToolSpec};

use crate::sandbox::{Isolation, Walls};

pub use template::{Template, TemplateError};

/// How much of each output goes into the result: more than a model reads with profit.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// So many processors at work for all of a command's time are a burn.
const CPUS: u64 = 16;

#[derive(Debug)]
pub struct Command {
    pub(super) spec: ToolSpec,
    /// With its first element already the program's place.
    pub(super) template: Template,
    /// As the operator wrote it: the same on every server, wherever its programs lie.
    pub(super) definition: Value,
    pub(super) timeout: Duration,
    /// As the operator says, for those who are asked.
    pub(super) mutating: bool,
    pub(super) network: bool,
    pub(super) workspace: PathBuf,
    /// Where programs are looked for.
    pub(super) search: String,
    pub(super) isolation: Isolation,
    /// What it may read and run outside the workspace, beside the system's own.
    pub(super) programs: Vec<PathBuf>,
}

#[async_trait]
impl Tool for Command {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let argv = match self.template.fill(&permit.call().arguments) {
            Ok(argv) => argv,
            Err(error) => {
                return Done::Result(CallResult::error("INVALID_ARGUMENTS", error.to_string()));
            }
        };
        let program = Program {
            argv,
            environment: self.environment(context),
            directory: self.workspace.clone(),
            behind: Behind::Walls(self.isolation.clone(), Box::new(self.walls(context))),
        };
        let ran = process::run(&program, self.timeout, OUTPUT_BYTES_MAX, &context.cancelled).await;
        Done::Result(match ran {
            Ok(ended) => self.result(&ended),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.refused(&error),
            Err(error) => CallResult::error(
                "COMMAND_FAILED",
                format!("command `{}` cannot be started: {error}", self.spec.name),
            ),
        })
    }

    fn definition(&self) -> Value {
        self.definition.clone()
    }

    async fn describe(&self, call: &Call) -> Description {
        let argv = self.template.fill(&call.arguments).unwrap_or_default();
        let signature = signature(&argv);
        let payload = json!({
            "command": shown(&argv),
            "argv": argv.iter().map(|it| visible_line(it)).collect::<Vec<_>>(),
            "command_signature": signature,
            "command_info": {
                "risk": self.spec.risk,
                "why": self.spec.description,
                "touches": {
                    "mutating": self.mutating,
                    "network": self.network,
                    "directory": "the workspace",
                    "capabilities": self.spec.capabilities,
                },
            },
        });
        let payload = payload.as_object().cloned().unwrap_or_default();
        Description { kind: RequestKind::Command, payload, signature: Some(signature) }
    }
}

/// The program and, where it has one, its subcommand: what a remembered answer covers.
fn signature(argv: &[String]) -> String {
    let mut words = argv.iter();
    let program = words.next().map_or("", |it| it.rsplit('/').next().unwrap_or(it));
    let plain = |it: &&String| {
        !it.is_empty()
            && it.len() <= 64
            && it.starts_with(|it: char| it.is_ascii_alphabetic())
            && it.chars().all(|it| it.is_ascii_alphanumeric() || it == '-' || it == '_')
    };
    match words.next().filter(plain) {
        Some(subcommand) => format!("{program} {subcommand}"),
        None => program.to_owned(),
    }
}

/// As one would type it, so that a person can read it: what is not plain is quoted.
fn shown(argv: &[String]) -> String {
    let plain = |it: &str| {
        !it.is_empty()
            && it.chars().all(|it| it.is_ascii_alphanumeric() || "-_./=:,+@%".contains(it))
    };
    let quoted = |it: &String| {
        if plain(it) { it.clone() } else { format!("'{}'", visible(it).replace('\'', "'\\''")) }
    };
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

impl Command {
    /// All that the program gets to see: none of the server's secrets.
    fn environment(&self, context: &CallContext) -> BTreeMap<String, String> {
        [
            ("PATH", self.search.clone()),
            ("HOME", self.workspace.to_string_lossy().into_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("CHANCERY_IDEMPOTENCY_KEY", context.idempotency_key.clone()),
            ("CHANCERY_RUN", context.run.to_string()),
            ("CHANCERY_AGENT", context.speaker.agent.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn walls(&self, context: &CallContext) -> Walls {
        let mut walls = Walls::of(context, &self.workspace, self.network);
        // The wall clock ends it; what it leaves behind, if it could, would end by this.
        walls.programs.clone_from(&self.programs);
        walls.limits.cpu_seconds = Some(self.timeout.as_secs().saturating_mul(CPUS).max(CPUS));
        walls
    }

    fn refused(&self, why: &dyn std::fmt::Display) -> CallResult {
        let text = format!(
            "command `{}` was not started: it must be isolated by the kernel, and cannot be here: \
             {why}",
            self.spec.name
        );
        CallResult::error("ISOLATION_UNAVAILABLE", text)
    }

    fn result(&self, ended: &Ended) -> CallResult {
        let (code, head) = match ended.how {
            How::Exited(status) if status.success() => (None, "exit code 0".to_owned()),
            How::Exited(status) => (Some("COMMAND_FAILED"), exit(status)),
            How::TimedOut => {
                (Some("TIMEOUT"), format!("killed: it ran longer than {:?}", self.timeout))
            }
            How::Cancelled => (Some("CANCELLED"), "killed: the call was cancelled".to_owned()),
        };
        let mut text = head;
        for (name, output) in [("output", &ended.stdout), ("errors", &ended.stderr)] {
            if output.total > 0 {
                text.push_str(&format!("\n--- {name}\n{}", output.text().trim_end_matches('\n')));
            }
        }
        match code {
            None => CallResult::ok(text),
            Some(code) => CallResult::error(code, text),
        }
    }
}

fn exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended for no known reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use chancery_domain::policy::Risk;

    use super::super::Effect;
    use super::super::testing::{call, code};
    use super::*;

    fn command(argv: &[&str]) -> Command {
        let argv: Vec<String> = argv.iter().map(|it| (*it).to_owned()).collect();
        let parameters = json!({"properties": {"to": {}}});
        Command {
            spec: ToolSpec {
                name: "probe".to_owned(),
                description: String::new(),
                parameters: parameters.clone(),
                risk: Risk::Low,
                capabilities: vec![],
                effect: Effect::Outside,
                idempotent: false,
                supports_parallel: false,
            },
            template: Template::new(&argv, &parameters).unwrap(),
            definition: Value::Null,
            timeout: Duration::from_millis(1500),
            mutating: true,
            network: false,
            workspace: std::env::temp_dir(),
            search: "/usr/bin:/bin".to_owned(),
            isolation: Isolation::Off,
            programs: vec![],
        }
    }

    #[tokio::test]
    async fn a_value_is_one_argument_and_no_shell_reads_it() {
        let tool = command(&["printf", "<%s>", "{to}", "end"]);
        let value = "a b; $(touch /tmp/x) `id` \"'*";
        let result = call(&tool, json!({"to": value})).await;
        assert_eq!(result, CallResult::ok(format!("exit code 0\n--- output\n<{value}><end>")));
    }

    #[tokio::test]
    async fn how_it_ended_is_said() {
        let fails = call(&command(&["/bin/sh", "-c", "echo no >&2; exit 3"]), json!({})).await;
        assert_eq!(fails, CallResult::error("COMMAND_FAILED", "exit code 3\n--- errors\nno"));
        let killed = call(&command(&["/bin/sh", "-c", "kill -9 $$"]), json!({})).await;
        assert_eq!(killed, CallResult::error("COMMAND_FAILED", "ended by signal 9"));
        let slow = call(&command(&["/bin/sh", "-c", "echo so far; sleep 60"]), json!({})).await;
        assert_eq!(
            slow,
            CallResult::error("TIMEOUT", "killed: it ran longer than 1.5s\n--- output\nso far")
        );
        assert_eq!(code(&call(&command(&["no-such-program"]), json!({})).await), "COMMAND_FAILED");
    }

    #[tokio::test]
    async fn the_environment_is_ours_alone() {
        let result = call(&command(&["env"]), json!({})).await;
        let names: Vec<_> =
            result.text.lines().filter_map(|it| it.split_once('=')).map(|it| it.0).collect();
        assert_eq!(
            names,
            ["CHANCERY_AGENT", "CHANCERY_IDEMPOTENCY_KEY", "CHANCERY_RUN", "HOME", "LANG", "PATH"]
        );
    }
}
