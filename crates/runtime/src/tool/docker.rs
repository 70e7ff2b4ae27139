//! `docker_build` and `docker_deploy`: the docker CLI, with the options that the operator gives
//! it. An agent names an image and an environment, and nothing that reaches the machine.
//!
//! Nothing goes to production without a live approval of this very deployment, by somebody who may
//! still give it.

mod image;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{Call, CallResult};
use chancery_domain::id::AgentId;
use chancery_domain::mail::{Draft, Known, route};
use chancery_domain::org::Org;
use chancery_domain::policy::{Access, Risk};
use chancery_domain::text::visible;
use chancery_store::{Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::desk::wrong;
use super::files::{Reach, Workspace, is_protected, text};
use super::process::{self, Behind, Ended, How, Program};
use super::settings::DockerSettings;
use super::spec::{object, spec};
use super::{CallContext, Caller, Done, Objection, Prospect, Tool, ToolSpec, Touched};
use crate::clock;

const BUILD_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const DEPLOY_TIMEOUT: Duration = Duration::from_secs(10 * 60);
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
const CONTEXT_FILES_MAX: usize = 10_000;
const APPROVAL: &str = "deployment_approval";

/// Lower-case names with a tag or a digest, as registries have them; never an option.
const IMAGE: &str = "^[a-z0-9][a-z0-9._/-]{0,180}(:[0-9]{1,5}/[a-z0-9._/-]{1,100})?(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Build,
    Deploy,
}

#[derive(Debug)]
pub struct DockerTool {
    spec: ToolSpec,
    what: What,
    docker: Arc<Docker>,
}

/// The docker CLI as the operator has it.
#[derive(Debug)]
pub struct Docker {
    pub settings: DockerSettings,
    pub workspace: Arc<Workspace>,
    /// Where approvals are; without it nothing goes to production.
    pub store: Option<Store>,
    /// All that the CLI gets to see of the environment.
    pub environment: BTreeMap<String, String>,
}

pub fn specs() -> impl Iterator<Item = ToolSpec> {
    [What::Build, What::Deploy].into_iter().map(spec_of)
}

pub fn tools(
    docker: &Arc<Docker>,
    changed: impl Fn(ToolSpec) -> ToolSpec,
) -> impl Iterator<Item = DockerTool> {
    let all = [What::Build, What::Deploy].into_iter();
    all.map(move |what| DockerTool { spec: changed(spec_of(what)), what, docker: docker.clone() })
}

fn spec_of(what: What) -> ToolSpec {
    let image = json!({"type": "string", "pattern": IMAGE,
                       "description": "`name:tag`, with a registry before it or a digest after it"});
    match what {
        What::Build => spec(
            "docker_build",
            Risk::Medium,
            "Builds an image from a folder of the workspace that you may read. An image that is \
             approved for production is not built again under its name.",
            object(
                json!({
                    "tag": image,
                    "context": {"type": "string", "minLength": 1,
                                "description": "The folder that is built"},
                    "dockerfile": {"type": "string", "minLength": 1,
                                   "description": "In that folder; absent: `Dockerfile`"},
                }),
                &["tag", "context"],
            ),
        ),
        What::Deploy => {
            let mut spec = spec(
                "docker_deploy",
                Risk::High,
                "Deploys an image to an environment in place of what runs there. Production needs \
                 a `deployment_approval` to you that names this environment and this deployment.",
                object(
                    json!({
                        "environment": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,31}$"},
                        "deployment": image,
                        "service": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,31}$",
                                    "description": "Absent: the image's own name"},
                    }),
                    &["environment", "deployment"],
                ),
            );
            spec.capabilities = vec!["deploy".to_owned()];
            spec.idempotent = false;
            spec
        }
    }
}

#[async_trait]
impl Tool for DockerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let given = &permit.call().arguments;
        let done = match self.what {
            What::Build => self.docker.build(given, context).await,
            What::Deploy => self.docker.deploy(given, context).await,
        };
        Done::Result(done.unwrap_or_else(|it| it))
    }

    fn touches(&self, call: &Call, _: Caller<'_>) -> Vec<Touched> {
        if self.what == What::Deploy {
            return Vec::new();
        }
        let reads = |path: String| Touched::Path(Access::Read, path);
        let folder = text(&call.arguments, "context");
        vec![reads(dockerfile(&call.arguments)), reads(folder)]
    }

    async fn objects(
        &self,
        call: &Call,
        who: &Prospect<'_>,
    ) -> Result<Option<Objection>, StoreError> {
        let given = &call.arguments;
        let (environment, image) = (text(given, "environment"), text(given, "deployment"));
        if self.what != What::Deploy || !self.docker.settings.production.contains(&environment) {
            return Ok(None);
        }
        let approved = self.docker.approval(who.org, who.agent, &environment, &image).await?;
        Ok(match approved {
            Some(_) => None,
            None => Some(Objection::denied(APPROVAL, unapproved(&environment, &image))),
        })
    }

    fn definition(&self) -> Value {
        // Where it goes and with which options is part of what somebody grants.
        json!({"docker": serde_json::to_value(&self.docker.settings).unwrap_or_default()})
    }
}

fn dockerfile(given: &Value) -> String {
    let name = given["dockerfile"].as_str().unwrap_or("Dockerfile");
    format!("{}/{name}", text(given, "context").trim_end_matches('/'))
}

type Answer = Result<CallResult, CallResult>;

fn unapproved(environment: &str, image: &str) -> String {
    format!(
        "nothing goes to `{environment}` without an approval: there is no live `{APPROVAL}` to you \
         that names `{environment}` and `{image}`"
    )
}

fn unreadable(error: &StoreError) -> CallResult {
    tracing::warn!(%error, "Approvals cannot be looked up: {error}");
    CallResult::error("UNAVAILABLE", "approvals cannot be looked up just now")
}

impl Docker {
    async fn build(&self, given: &Value, context: &CallContext) -> Answer {
        let tag = text(given, "tag");
        self.check_not_approved(&tag, context).await?;
        let (folder, file) = (text(given, "context"), dockerfile(given));
        let folder = format!("./{}", folder.trim_start_matches("./").trim_end_matches('/'));
        let file = format!("./{}", file.trim_start_matches("./"));
        let reach = Reach::of(&self.workspace, context);
        let (at, named) = (folder.clone(), file.clone());
        let looked = tokio::task::spawn_blocking(move || check_context(&reach, &at, &named)).await;
        looked.map_err(|_| CallResult::error("IO_ERROR", "the folder was not looked at"))??;
        let agent = format!("chancery.agent={}", context.speaker.agent);
        let args = ["build", "--tag", &tag, "--file", &file, "--label", &agent, "--", &folder];
        let ended = self.run(&args, self.settings.host.as_deref(), BUILD_TIMEOUT, context).await?;
        let said = ended_well("docker build", &ended, BUILD_TIMEOUT)?;
        Ok(CallResult::ok(format!("built `{tag}`\n{said}")))
    }

    /// What somebody approved is what stays under its name, however that is written.
    async fn check_not_approved(&self, tag: &str, context: &CallContext) -> Result<(), CallResult> {
        let org = &context.org;
        for tag in image::spellings(tag) {
            for environment in &self.settings.production {
                for (agent, _) in org.agents() {
                    let approved = self.approval(org, agent, environment, &tag).await;
                    if approved.map_err(|it| unreadable(&it))?.is_some() {
                        let why = format!(
                            "`{tag}` is approved for `{environment}` as it is: build under \
                             another tag, and have that approved"
                        );
                        return Err(CallResult::error("ALREADY_APPROVED", why));
                    }
                }
            }
        }
        Ok(())
    }

    async fn deploy(&self, given: &Value, context: &CallContext) -> Answer {
        let (environment, image) = (text(given, "environment"), text(given, "deployment"));
        let Some(target) = self.settings.environments.get(&environment) else {
            let known: Vec<&str> = self.settings.environments.keys().map(String::as_str).collect();
            let detail =
                format!("there is no environment `{environment}`: there are {}", known.join(", "));
            return Err(CallResult::error("NOT_CONFIGURED", detail));
        };
        let mut approved_by = None;
        if self.settings.production.contains(&environment) {
            let agent = &context.speaker.agent;
            let approval = self.approval(&context.org, agent, &environment, &image).await;
            let Some(from) = approval.map_err(|it| unreadable(&it))? else {
                return Err(CallResult::error("NOT_APPROVED", unapproved(&environment, &image)));
            };
            approved_by = Some(from);
        }
        let service = given["service"].as_str().map_or_else(|| own_name(&image), str::to_owned);
        // Neither of them has a `_`, so that no two of them have one name.
        let name = format!("{environment}_{service}");
        let host = target.host.as_deref().or(self.settings.host.as_deref());
        let there =
            self.run(&["image", "inspect", "--", &image], host, DEPLOY_TIMEOUT, context).await?;
        if !succeeded(&there) {
            let pulled = self.run(&["pull", "--", &image], host, DEPLOY_TIMEOUT, context).await?;
            ended_well("docker pull", &pulled, DEPLOY_TIMEOUT)?;
        }
        // Whether there was one to take the place of does not matter.
        self.run(&["rm", "--force", "--", &name], host, DEPLOY_TIMEOUT, context).await?;
        let label = format!("chancery.run={}", context.run);
        let mut args = vec!["run", "--detach", "--name", &name, "--label", &label];
        args.extend(target.options.iter().map(String::as_str));
        args.extend(["--", &image]);
        let ended = self.run(&args, host, DEPLOY_TIMEOUT, context).await?;
        let said = ended_well("docker run", &ended, DEPLOY_TIMEOUT)?;
        let by = approved_by.map(|it| format!(", approved by `{it}`")).unwrap_or_default();
        Ok(CallResult::ok(format!("`{image}` runs in `{environment}` as `{name}`{by}\n{said}")))
    }

    /// Who approved a deployment to an agent, and may still do so.
    async fn approval(
        &self,
        org: &Org,
        agent: &AgentId,
        environment: &str,
        deployment: &str,
    ) -> Result<Option<String>, StoreError> {
        let Some(store) = &self.store else { return Ok(None) };
        let lasts = SignedDuration::try_from(self.settings.approval_lasts.0);
        let since = clock::now().checked_sub(lasts.unwrap_or(SignedDuration::MAX));
        let since = since.unwrap_or(Timestamp::MIN);
        let agent = agent.as_str();
        let given = store.deployment_approvals(agent, environment, deployment, since).await?;
        let mut senders = given.into_iter().map(|it| it.from);
        let draft = Draft::bare(agent, APPROVAL);
        Ok(senders.find(|from| route(org, from, &draft, &Known::default()).is_ok()))
    }

    async fn run(
        &self,
        args: &[&str],
        host: Option<&str>,
        timeout: Duration,
        context: &CallContext,
    ) -> Result<Ended, CallResult> {
        let mut argv = vec![self.settings.program.clone()];
        argv.extend(args.iter().map(|it| (*it).to_owned()));
        let mut environment = self.environment.clone();
        if let Some(host) = host {
            environment.insert("DOCKER_HOST".to_owned(), host.to_owned());
        }
        let directory: PathBuf = self.workspace.path().to_owned();
        // It talks to the daemon, which is outside of every wall; what it may ask is checked above.
        let program = Program { argv, environment, directory, behind: Behind::Nothing };
        let ran = process::run(&program, timeout, OUTPUT_BYTES_MAX, &context.cancelled).await;
        ran.map_err(|error| {
            CallResult::error(
                "NOT_CONFIGURED",
                format!(
                    "`{}` cannot be started: {error}; install the docker CLI, or name it in \
                     `[tools.docker] program`",
                    self.settings.program
                ),
            )
        })
    }
}

/// What goes to the daemon is what the agent may read, and no secret of anybody. Blocking.
fn check_context(reach: &Reach, folder: &str, file: &str) -> Result<(), CallResult> {
    let inner = |path: &str| path.trim_start_matches("./").to_owned();
    reach.rule(Access::Read, &inner(folder))?;
    reach.rule(Access::Read, &inner(file))?;
    if reach.read(&inner(file), OUTPUT_BYTES_MAX).is_err() {
        return Err(wrong(format!("`{file}` cannot be read")));
    }
    match reach.all_names(&inner(folder), CONTEXT_FILES_MAX)?.iter().find(|it| is_protected(it)) {
        None => Ok(()),
        Some(secret) => Err(CallResult::error(
            "PROTECTED_FILE",
            format!("`{secret}` may hold credentials, and would be part of the image"),
        )),
    }
}

fn own_name(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    let last = last.split([':', '@']).next().unwrap_or(last);
    last.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect()
}

fn succeeded(ended: &Ended) -> bool {
    matches!(ended.how, How::Exited(status) if status.success())
}

fn ended_well(what: &str, ended: &Ended, timeout: Duration) -> Result<String, CallResult> {
    let said = format!("{}{}", ended.stdout.text(), ended.stderr.text());
    let said = visible(said.trim());
    match ended.how {
        How::Exited(status) if status.success() => Ok(said),
        How::Exited(_) => {
            Err(CallResult::error("COMMAND_FAILED", format!("`{what}` failed:\n{said}")))
        }
        How::TimedOut => Err(CallResult::error(
            "TIMEOUT",
            format!("`{what}` was ended: it took longer than {timeout:?}"),
        )),
        How::Cancelled => Err(CallResult::error("CANCELLED", format!("`{what}` was ended"))),
    }
}
