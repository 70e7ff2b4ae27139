//! Makes a registry of a [`ToolsConfig`]: the built-in tools, the commands and the MCP servers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chancery_domain::policy::{Risk, is_glob};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::super::command::{Command, Template};
use super::super::contract;
use super::super::desk;
use super::super::docker::{self, Docker};
use super::super::files::{ReadFile, Workspace, WriteFile};
use super::super::git::{self, Git, Remote};
use super::super::group::{Conclude, EscalateToGroup, ListAvailableGroups};
use super::super::mail;
use super::super::mcp::{ConnectError, Endpoint, Server, prefix, resolve};
use super::super::memory;
use super::super::process::{Behind, Program};
use super::super::program;
use super::super::settings::Settings;
use super::super::staff::{self, CharterPlace};
use super::super::wait_for_signal::WaitForSignal;
use super::super::web;
use super::super::{Effect, Tool, ToolSpec, Tools};
use super::{CommandConfig, McpConfig, ToolsConfig};
use crate::embedding::Memories;
use crate::mailroom::Mailroom;
use crate::sandbox::{Isolation, Walls};

/// Where tools work.
#[derive(Clone)]
pub struct Place {
    pub workspace: PathBuf,
    /// Where the programs of commands are looked for that are named with a `/`: the directory of
    /// the file that names them. Not the workspace, where agents write.
    pub programs: PathBuf,
    /// Where agents remember; without it they do not.
    pub memory: Option<Memories>,
    /// Where their mail goes; without it they have none.
    pub mailroom: Option<Mailroom>,
    /// Who changes the organisation for them.
    pub charter: CharterPlace,
    /// What the operator says of the world outside.
    pub settings: Settings,
    /// What `env:NAME` is looked up in, and where `PATH` and `HOME` are taken from.
    pub environment: BTreeMap<String, String>,
    /// What commands are kept behind.
    pub isolation: Isolation,
}

/// What there is to tell about a registry that was built.
#[derive(Debug)]
pub struct Report {
    pub warnings: Vec<String>,
    /// Their status changes as servers come.
    pub servers: Vec<Arc<Server>>,
}

/// Everything that is wrong with a file that could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct BuildError(pub Vec<String>);

const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
const MCP_CALL_TIMEOUT: Duration = Duration::from_secs(60);
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Every server is tried once before this returns; those that do not answer are tried again in
/// the background, and their tools come when they do.
pub async fn build(config: &ToolsConfig, place: &Place) -> Result<(Tools, Report), BuildError> {
    let Local { mut tools, workspace, mut warnings } = local(config, place)?;
    let servers = start_servers(config, place, workspace.path(), &mut tools).await;
    for name in config.tools.0.keys() {
        // Those of a server that is not there yet cannot be known.
        if tools.spec(name).is_none() && !name.starts_with("mcp__") && !is_glob(name) {
            warnings.push(format!("`tools` says something about `{name}`, which does not exist"));
        }
    }
    Ok((tools, Report { warnings, servers }))
}

/// What building would come to, without starting anything: the same mistakes, and the tools with
/// the places of those that servers would bring. The warnings name servers that could not be
/// reached whatever they are.
pub fn plan(config: &ToolsConfig, place: &Place) -> Result<(Tools, Vec<String>), BuildError> {
    let Local { mut tools, workspace, mut warnings } = local(config, place)?;
    for (name, given) in &config.mcp {
        tools.later(&prefix(name));
        if let Err(why) = endpoint(given, place, workspace.path()) {
            warnings.push(format!("MCP server `{name}`: {why}"));
        }
    }
    Ok((tools, warnings))
}

/// What is there without asking anybody.
struct Local {
    tools: Tools,
    workspace: Arc<Workspace>,
    warnings: Vec<String>,
}

fn local(config: &ToolsConfig, place: &Place) -> Result<Local, BuildError> {
    let workspace = Workspace::open(&place.workspace).map_err(|it| {
        BuildError(vec![format!("workspace `{}`: {it}", place.workspace.display())])
    })?;
    let workspace = Arc::new(workspace);
    let mut tools = Tools::default();
    let mut mistakes = Vec::new();
    let mut warnings = Vec::new();
    let outside = outside(config, place, &workspace).unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        Vec::new()
    });
    let organisation = writing(config, place, &workspace).chain(outside);
    let organisation = organisation.filter(|it| !is_stood_for(config, it.spec()));
    let built_in = built_in(config, &workspace).into_iter().chain(remembering(config, place));
    for tool in built_in.chain(organisation) {
        if let Err(error) = tools.register(tool) {
            mistakes.push(error.to_string());
        }
    }
    for (name, given) in &config.commands {
        let added = command(config, name, given, place, workspace.path(), &mut warnings)
            .and_then(|it| tools.register(Arc::new(it)).map_err(|it| it.to_string()));
        if let Err(mistake) = added {
            mistakes.push(format!("command `{name}`: {mistake}"));
        }
    }
    let wrong = config.mcp.keys().filter(|it| !is_server_name(it));
    mistakes.extend(wrong.map(|name| {
        format!(
            "MCP server `{name}`: a server's name has at most 32 letters, digits, `-` and single \
             `_`, none of these last at its ends"
        )
    }));
    if mistakes.is_empty() {
        Ok(Local { tools, workspace, warnings })
    } else {
        Err(BuildError(mistakes))
    }
}

/// The tools that are known without asking anybody, each with the schema of its arguments.
pub fn schemas(config: &ToolsConfig) -> Vec<(String, Value)> {
    let built_in = specs().filter(|it| !is_stood_for(config, it));
    let built_in = built_in.map(|it| (it.name, it.parameters));
    let commands = config.commands.iter().map(|(name, it)| (name.clone(), it.parameters.clone()));
    built_in.chain(commands).collect()
}

/// What the tools that are built in say of themselves.
pub fn specs() -> impl Iterator<Item = ToolSpec> {
    let built_in = [
        ReadFile::spec(),
        WriteFile::spec(),
        WaitForSignal::spec(),
        EscalateToGroup::spec(),
        ListAvailableGroups::spec(),
        Conclude::spec(),
    ];
    let organisation = mail::specs().chain(contract::specs()).chain(staff::specs());
    let organisation = organisation.chain(outside_specs());
    built_in.into_iter().chain(memory::specs()).chain(organisation)
}

fn built_in(config: &ToolsConfig, workspace: &Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    let changed = |mut spec: ToolSpec| {
        config.tools.apply(&mut spec);
        spec
    };
    vec![
        Arc::new(ReadFile::new(changed(ReadFile::spec()), workspace.clone())),
        Arc::new(WriteFile::new(changed(WriteFile::spec()), workspace.clone())),
        Arc::new(WaitForSignal::new(changed(WaitForSignal::spec()))),
        Arc::new(EscalateToGroup::new(changed(EscalateToGroup::spec()))),
        Arc::new(ListAvailableGroups::new(changed(ListAvailableGroups::spec()))),
        Arc::new(Conclude::new(changed(Conclude::spec()))),
    ]
}

fn remembering(config: &ToolsConfig, place: &Place) -> Vec<Arc<dyn Tool>> {
    let Some(memories) = &place.memory else { return Vec::new() };
    let changed = |mut spec: ToolSpec| {
        config.tools.apply(&mut spec);
        spec
    };
    memory::tools(memories, changed).into_iter().map(|it| Arc::new(it) as Arc<dyn Tool>).collect()
}

fn writing(
    config: &ToolsConfig,
    place: &Place,
    workspace: &Arc<Workspace>,
) -> impl Iterator<Item = Arc<dyn Tool>> {
    let changed = |mut spec: ToolSpec| {
        config.tools.apply(&mut spec);
        spec
    };
    let mails = place.mailroom.iter().flat_map(move |it| mail::tools(it, changed));
    let contracts =
        place.mailroom.iter().flat_map(move |it| contract::tools(it, workspace, changed));
    let staff = place
        .mailroom
        .iter()
        .flat_map(move |it| staff::tools(it, workspace, &place.charter, changed));
    let mails = mails.map(|it| Arc::new(it) as Arc<dyn Tool>);
    let contracts = contracts.map(|it| Arc::new(it) as Arc<dyn Tool>);
    mails.chain(contracts).chain(staff.map(|it| Arc::new(it) as Arc<dyn Tool>))
}

/// The organisation's tools that work on files, programs and the web.
fn outside(
    config: &ToolsConfig,
    place: &Place,
    workspace: &Arc<Workspace>,
) -> Result<Vec<Arc<dyn Tool>>, String> {
    let changed = |mut spec: ToolSpec| {
        config.tools.apply(&mut spec);
        spec
    };
    let git = Arc::new(repository(place, workspace.path())?);
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    tools.extend(desk::tools(workspace, changed).map(|it| Arc::new(it) as Arc<dyn Tool>));
    tools.extend(git::tools(&git, workspace, changed).map(|it| Arc::new(it) as Arc<dyn Tool>));
    let docker = Arc::new(docker_here(place, workspace));
    tools.extend(docker::tools(&docker, changed).map(|it| Arc::new(it) as Arc<dyn Tool>));
    let (search, read) = web::tools(&place.settings.web, changed)?;
    tools.extend([Arc::new(search) as Arc<dyn Tool>, Arc::new(read)]);
    tools.extend(program::tools(changed).map(|it| Arc::new(it) as Arc<dyn Tool>));
    Ok(tools)
}

fn outside_specs() -> impl Iterator<Item = ToolSpec> {
    let reaching = docker::specs().chain(web::specs());
    desk::specs().chain(git::specs()).chain(program::specs()).chain(reaching)
}

fn docker_here(place: &Place, workspace: &Arc<Workspace>) -> Docker {
    // Its own settings name programs too: they are the operator's, never the workspace's.
    let own = ["HOME", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_HOST"];
    let own =
        own.iter().filter_map(|it| Some(((*it).to_owned(), place.environment.get(*it)?.clone())));
    let mut environment: BTreeMap<String, String> = own.collect();
    environment.insert("PATH".to_owned(), search_path(place));
    environment.insert("LANG".to_owned(), "C.UTF-8".to_owned());
    Docker {
        settings: place.settings.docker.clone(),
        workspace: workspace.clone(),
        store: place.mailroom.as_ref().map(|it| it.store().clone()),
        environment,
    }
}

fn repository(place: &Place, workspace: &Path) -> Result<Git, String> {
    let settings = &place.settings.git;
    let authorization = settings.authorization.as_ref().map(|value| {
        resolve("`tools.git.authorization`", value, &place.environment).map_err(|it| it.to_string())
    });
    let authorization = authorization.transpose()?;
    let remote = settings.remote.clone().map(|url| {
        let over_ssh = url.starts_with("ssh://") || !url.contains("://") && !url.starts_with('/');
        let home = place.environment.get("HOME").filter(|_| over_ssh).cloned();
        Remote { url, authorization, home }
    });
    Git::new(workspace, &settings.repository, search_path(place), remote)
}

/// The commands that are in the place of a tool that is built in, and hold to nothing of what that
/// one holds to. Tools that are nothing without a program of the operator's are made for that.
pub fn displaced(config: &ToolsConfig) -> impl Iterator<Item = String> {
    let made_for_it: Vec<String> = program::specs().map(|it| it.name).collect();
    let displaced =
        specs().filter(move |it| is_stood_for(config, it) && !made_for_it.contains(&it.name));
    displaced.map(|it| it.name)
}

/// Whether the operator has a command of that name, which is then in its place.
fn is_stood_for(config: &ToolsConfig, spec: &ToolSpec) -> bool {
    config.commands.contains_key(&spec.name)
}

fn command(
    config: &ToolsConfig,
    name: &str,
    given: &CommandConfig,
    place: &Place,
    workspace: &Path,
    warnings: &mut Vec<String>,
) -> Result<Command, String> {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with("mcp__") {
        return Err("a name has at most 64 letters, digits, `-` and `_`, and does not begin with \
                    `mcp__`"
            .to_owned());
    }
    let mut argv = given.command.clone();
    if let Some(program) = argv.first_mut().filter(|it| it.contains('/')) {
        let at = place.programs.join(&*program);
        if at.canonicalize().is_ok_and(|it| it.starts_with(workspace)) {
            warnings.push(format!(
                "command `{name}` runs `{}`, which lies in the workspace: who may write there \
                 decides what it does",
                at.display()
            ));
        }
        *program = at.to_string_lossy().into_owned();
    }
    let template = Template::new(&argv, &given.parameters).map_err(|it| it.to_string())?;
    // Files that the operator names by hand, such as the script of an interpreter. What stands
    // for an argument is not among them: that is the model's word.
    let named = argv.iter().filter(|it| it.starts_with('/') && !it.contains(['{', '}']));
    let programs = named.map(PathBuf::from).filter(|it| it.is_file()).collect();
    let mut spec = ToolSpec {
        name: name.to_owned(),
        description: given.description.clone(),
        parameters: given.parameters.clone(),
        risk: given.risk.unwrap_or(if given.mutating { Risk::Medium } else { Risk::Low }),
        capabilities: given.capabilities.clone(),
        effect: Effect::Outside,
        idempotent: given.idempotent,
        supports_parallel: given.supports_parallel,
    };
    config.tools.apply(&mut spec);
    let definition = json!({
        "command": given.command,
        "timeout": given.timeout.map(|it| it.0.as_millis()),
        "mutating": given.mutating,
        "network": given.network,
    });
    Ok(Command {
        spec,
        template,
        definition,
        timeout: given.timeout.map_or(COMMAND_TIMEOUT, |it| it.0),
        mutating: given.mutating,
        network: given.network,
        workspace: workspace.to_owned(),
        search: search_path(place),
        isolation: place.isolation.clone(),
        programs,
    })
}

async fn start_servers(
    config: &ToolsConfig,
    place: &Place,
    workspace: &Path,
    tools: &mut Tools,
) -> Vec<Arc<Server>> {
    let mut servers = Vec::new();
    let mut starting = Vec::new();
    for (name, given) in &config.mcp {
        let timeout = given.timeout.map_or(MCP_CALL_TIMEOUT, |it| it.0);
        let server = Server::new(name, endpoint(given, place, workspace), timeout);
        let later = tools.later(&server.prefix());
        servers.push(server.clone());
        let overrides = config.tools.clone();
        starting.push(async move { server.start(later, overrides).await });
    }
    join_all(starting).await;
    servers
}

fn endpoint(given: &McpConfig, place: &Place, workspace: &Path) -> Result<Endpoint, ConnectError> {
    let resolved = |kind: &str, values: &BTreeMap<String, String>| {
        values
            .iter()
            .map(|(name, value)| {
                let what = format!("{kind} `{name}`");
                Ok((name.clone(), resolve(&what, value, &place.environment)?))
            })
            .collect::<Result<BTreeMap<_, _>, ConnectError>>()
    };
    match (&given.command, &given.url) {
        (Some(argv), None) if given.headers.is_empty() => {
            let mut environment = BTreeMap::from([
                ("PATH".to_owned(), search_path(place)),
                ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ]);
            // Package runners keep what they fetch there.
            if let Some(home) = place.environment.get("HOME") {
                environment.insert("HOME".to_owned(), home.clone());
            }
            environment.extend(resolved("variable", &given.env)?);
            Ok(Endpoint::stdio(Program {
                argv: argv.clone(),
                environment,
                directory: workspace.to_owned(),
                behind: match given.network {
                    Some(network) => {
                        let walls = Walls::around(workspace, network);
                        Behind::Walls(place.isolation.clone(), Box::new(walls))
                    }
                    None => Behind::Nothing,
                },
            }))
        }
        (None, Some(url)) if given.env.is_empty() => {
            Endpoint::http(url, resolved("header", &given.headers)?)
        }
        _ => Err(ConnectError::Way),
    }
}

fn search_path(place: &Place) -> String {
    place.environment.get("PATH").map_or(SEARCH_PATH, |it| it).to_owned()
}

/// Names in which `mcp__<server>__<tool>` has one reading.
fn is_server_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-')
        && !name.contains("__")
        && !name.starts_with('_')
        && !name.ends_with('_')
}

// Without the environment, which holds secrets.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("workspace", &self.workspace)
            .field("programs", &self.programs)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// With the environment of this process, and without isolation.
    pub fn here(workspace: &Path, programs: &Path) -> Place {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let (workspace, programs) = (workspace.to_owned(), programs.to_owned());
        Place {
            workspace,
            programs,
            memory: None,
            mailroom: None,
            charter: CharterPlace::default(),
            settings: Settings::default(),
            environment,
            isolation: Isolation::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use chancery_domain::event::CallResult;

    use super::super::super::testing::context;
    use super::super::super::{Done, mcp};
    use super::*;

    async fn built(text: &str, dir: &Path) -> Result<(Tools, Report), BuildError> {
        std::fs::create_dir_all(dir.join("ws")).unwrap();
        let config = ToolsConfig::parse("tools.yaml", text).unwrap();
        build(&config, &Place::here(&dir.join("ws"), dir)).await
    }

    /// Those that need no store.
    fn built_in_count() -> usize {
        let mails = mail::specs().chain(contract::specs()).chain(staff::specs());
        let in_store = memory::specs().len() + mails.count();
        schemas(&ToolsConfig::default()).len() - in_store
    }

    #[tokio::test]
    async fn a_file_becomes_tools() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"
tools: {greet: {idempotent: true}, read_file: {supports_parallel: false}, nobody: {risk: low}}
commands:
  greet: {description: Greets, command: [printf, "hello %s", "{name}"],
          parameters: {type: object, properties: {name: {type: string}}, required: [name]}}
"#;
        let (tools, report) = built(text, dir.path()).await.unwrap();
        assert_eq!(tools.specs().count(), built_in_count() + 1);
        assert!(tools.spec("greet").unwrap().idempotent);
        assert!(!tools.spec("read_file").unwrap().supports_parallel);
        assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
        let permit = chancery_testkit::permit("greet", json!({"name": "Lin"}));
        assert_eq!(
            tools.call(permit, &context()).await,
            Done::Result(CallResult::ok("exit code 0\n--- output\nhello Lin"))
        );
    }

    #[tokio::test]
    async fn every_mistake_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"
commands:
  read_file: {description: d, command: [x]}
  mcp__x: {description: d, command: [x]}
  lost: {description: d, command: [x, "{who}"]}
  bad: {description: d, command: [x], parameters: {type: 7}}
mcp: {a__b: {url: "http://x"}}
"#;
        let BuildError(mistakes) = built(text, dir.path()).await.unwrap_err();
        assert_eq!(mistakes.len(), 5, "{mistakes:#?}");
        let config = ToolsConfig::parse("tools.yaml", text).unwrap();
        let planned = plan(&config, &Place::here(&dir.path().join("ws"), dir.path()));
        assert_eq!(planned.unwrap_err(), BuildError(mistakes));
    }

    #[tokio::test]
    async fn a_program_in_the_workspace_is_warned_of() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("ws")).unwrap();
        std::fs::write(dir.path().join("ws/pay"), "").unwrap();
        let text = "commands: {pay: {description: d, command: [./ws/pay]}}";
        let (_, report) = built(text, dir.path()).await.unwrap();
        assert!(report.warnings[0].contains("lies in the workspace"), "{:?}", report.warnings);
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_is_reported_and_the_rest_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"
mcp:
  secret: {url: "https://tracker.invalid/mcp", headers: {Authorization: "Bearer env:NO_SUCH_VARIABLE_HERE"}}
  both: {url: "https://tracker.invalid/mcp", command: [x]}
  gone: {command: [no-such-program-anywhere]}
"#;
        let (tools, report) = built(text, dir.path()).await.unwrap();
        assert_eq!(tools.specs().count(), built_in_count());
        let config = ToolsConfig::parse("tools.yaml", text).unwrap();
        let place = Place::here(&dir.path().join("ws"), dir.path());
        let (planned, warnings) = plan(&config, &place).unwrap();
        assert_eq!(planned.awaited(), ["mcp__both__", "mcp__gone__", "mcp__secret__"]);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let states: Vec<_> =
            report.servers.iter().map(|it| (it.name(), it.status().state)).collect();
        let misconfigured = |why: &str| mcp::State::Misconfigured { why: why.to_owned() };
        assert_eq!(
            states[0],
            ("both", misconfigured("a server has either a `command` or a `url`"))
        );
        assert!(
            matches!(&states[1], ("gone", mcp::State::Unreachable { why })
            if why.starts_with("`no-such-program-anywhere` cannot be started")),
            "{:?}",
            states[1]
        );
        assert_eq!(
            states[2],
            (
                "secret",
                misconfigured(
                    "header `Authorization` names the environment variable \
                     `NO_SUCH_VARIABLE_HERE`, which is not set"
                )
            )
        );
    }
}
