//! A server with an organisation, tools that leave a trace, and a model whose every word is in
//! what it is asked to do.

use std::time::{Duration, Instant};

use chancery_server::config::{Config, ModelConfig, Provider};
use chancery_server::start;
use chancery_testkit::fake_model::{Answer as Said, Behaviour, FakeModel, Raw, Seen};
use chancery_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::harness::{Answer, Caller, Server, id};

/// Every test of this kind holds on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
}

macro_rules! on_both {
    ($($name:ident;)*) => {
        mod on_sqlite {
            $(#[tokio::test] async fn $name() { super::$name(crate::house::On::Sqlite).await })*
        }
        mod on_postgres {
            $(#[tokio::test] async fn $name() { super::$name(crate::house::On::Postgres).await })*
        }
    };
}
pub(crate) use on_both;

const ROLES: &str = r#"
extends: builtin
roles:
  clerk: {prompt: You are a clerk.}
  payer: {prompt: You pay., tools: [pay, note, conclude, wait_for_signal]}
  patterns: {prompt: You pay., tools: ["pa*", "note"]}
  narrow: {prompt: You may not deploy., deny_tools: [deploy]}
agents:
  pa: {role: clerk}
  payer: {role: payer}
  patterns: {role: patterns}
  narrow: {role: narrow}
  gone: {role: clerk, active: false}
"#;

/// Each writes one line into the ledger, so that what ran can be counted from outside.
const TOOLS: &str = r#"
extends: builtin
commands:
  note:
    description: Notes something
    command: [/bin/sh, -c, 'echo "note $1" >> ledger; echo "noted $1"', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to], additionalProperties: false}
    risk: low
  pay:
    description: Pays somebody
    command: [/bin/sh, -c, 'echo "pay $1" >> ledger; echo "paid $1"', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to], additionalProperties: false}
    risk: high
    capabilities: [payment]
  deploy:
    description: Deploys
    command: [/bin/sh, -c, 'echo "deploy $1" >> ledger; echo "deployed $1"', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    risk: high
    capabilities: [deploy]
  wire:
    description: Wires money
    command: [/bin/sh, -c, 'echo "wire $1" >> ledger; echo "wired $1"', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    capabilities: [transfer]
  burn:
    description: Burns money
    command: [/bin/sh, -c, 'echo "burn $1" >> ledger', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    capabilities: [arson]
tools:
  write_file: {risk: high}
"#;

const POLICY: &str = r#"
risk: {low: allow, medium: allow, high: require_approval}
capabilities: {transfer: require_human, arson: deny}
"#;

const GROUPS: &str = r#"
groups:
  grp_pay: {name: Payroll, description: Pays salaries and invoices, tags: [salary, invoice], members: [payer, narrow], lead: payer}
  grp_talk: {name: Talkers, description: Talks things over, tags: [discuss], members: [narrow, pa, payer], lead: narrow, rounds: 2}
  grp_deep: {name: Depth, description: Hands everything on, tags: [deep], members: [pa]}
  grp_next: {name: Next, description: Hands everything on as well, tags: [next], members: [pa]}
  grp_gone: {name: Gone, description: Nobody is there, tags: [ghost], members: [gone]}
"#;

pub struct House {
    pub server: Server,
    pub model: FakeModel,
    _database: Option<TestDatabase>,
}

impl House {
    pub async fn open(on: On) -> House {
        House::with(on, |_| {}).await
    }

    pub async fn with(on: On, change: impl FnOnce(&mut Config)) -> House {
        House::with_environment(on, change, &[]).await
    }

    pub async fn with_environment(
        on: On,
        change: impl FnOnce(&mut Config),
        environment: &[(&str, &str)],
    ) -> House {
        let model = FakeModel::start().await.unwrap();
        model.otherwise(|_, seen| as_scripted(seen));
        let database = match on {
            On::Sqlite => None,
            On::Postgres => Some(TestDatabase::create().await),
        };
        let (model_url, url) = (model.chat_url(), database.as_ref().map(TestDatabase::url));
        let settle = |config: &mut Config| {
            let org = config.data.with_file_name("org");
            std::fs::create_dir(&org).unwrap();
            for (name, text) in files("", "", "") {
                std::fs::write(org.join(name), text).unwrap();
            }
            config.org = Some(org);
            config.database = url;
            let fake = ModelConfig {
                base_url: Some(model_url),
                model: Some("fake".to_owned()),
                retries: Some(0),
                ..ModelConfig::new(Provider::Openai)
            };
            config.models.insert("default".to_owned(), fake);
            change(config);
        };
        let server = Server::with_environment(settle, environment).await;
        House { server, model, _database: database }
    }

    /// Puts the same organisation in force with something added to its roles and its policy.
    pub async fn change(&self, roles: &str, policy: &str) {
        self.put(files(roles, policy, "")).await;
    }

    /// Puts the same organisation in force without one of its agents at work.
    pub async fn dismiss(&self, agent: &str) {
        let mut files = files("", "", "");
        let at_work = format!("  {agent}: {{role: {agent}}}");
        assert!(files[0].1.contains(&at_work), "{agent}");
        let dismissed = format!("  {agent}: {{role: {agent}, active: false}}");
        files[0].1 = files[0].1.replace(&at_work, &dismissed);
        self.put(files).await;
    }

    /// The same with something added to its commands.
    pub async fn change_tools(&self, commands: &str) {
        self.put(files("", "", commands)).await;
    }

    /// The same with a command's line put otherwise.
    pub async fn redefine(&self, from: &str, to: &str) {
        let mut files = files("", "", "");
        assert!(files[1].1.contains(from), "{from}");
        files[1].1 = files[1].1.replace(from, to);
        self.put(files).await;
    }

    /// The same with something added to its roles, and rules over arguments.
    pub async fn rule(&self, roles: &str, rules: &str) {
        let rules = [("rules/house.cedar", rules.to_owned())];
        self.put(files(roles, "", "").into_iter().chain(rules)).await;
    }

    async fn put(&self, files: impl IntoIterator<Item = (&'static str, String)>) {
        let files = json!(files.into_iter().collect::<std::collections::BTreeMap<_, _>>());
        let request = self.server.operator().request(reqwest::Method::PUT, "/api/org");
        let changed = crate::harness::answer(request.json(&json!({"files": files}))).await;
        assert_eq!(changed.status, 200, "{changed:?}");
    }

    /// Stops the server and starts it again on what it has kept.
    pub async fn restart(mut self) -> House {
        let config = self.server.config.clone();
        self.server.running.stop().await;
        self.server.running = start(&config, []).await.unwrap();
        self
    }

    pub async fn close(self) {
        self.server.running.stop().await;
    }

    /// What ran, in order.
    pub fn ledger(&self) -> Vec<String> {
        let path = self.server.config.workspace().join("ledger");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub async fn lin(&self) -> Caller {
        self.server.human("lin").await
    }

    /// What the model was last shown of results: the content of each, in order.
    pub fn results(&self) -> Vec<String> {
        let requests = self.model.requests();
        let messages = requests.last().unwrap().body["messages"].clone();
        let tools = messages.as_array().unwrap().iter().filter(|it| it["role"] == "tool");
        tools.map(|it| it["content"].as_str().unwrap().to_owned()).collect()
    }
}

/// The organisation's files, with something added to each of them.
fn files(roles: &str, policy: &str, commands: &str) -> [(&'static str, String); 4] {
    [
        ("roles.yaml", format!("{ROLES}{roles}")),
        ("tools.yaml", TOOLS.replace("commands:\n", &format!("commands:\n{commands}"))),
        ("policy.yaml", format!("{POLICY}{policy}")),
        ("groups.yaml", GROUPS.to_owned()),
    ]
}

impl Caller {
    /// A run of an agent that will make these batches of calls, one after the other.
    pub async fn script(&self, agent: &str, batches: Value) -> String {
        let body = json!({"agent": agent, "input": batches.to_string()});
        let made = self.post("/api/runs", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        id(&made.json())
    }

    /// A run that waits for somebody, with what it asks, in the order of its calls.
    pub async fn asking(&self, agent: &str, batches: Value) -> (String, Vec<Value>) {
        let run = self.script(agent, batches).await;
        let waiting = self.until(&run, "waiting").await;
        assert_eq!(waiting["waiting_for"], "permission");
        let asked = self.asked(&run).await;
        (run, asked)
    }

    pub async fn asked(&self, run: &str) -> Vec<Value> {
        let path = format!("/api/permissions?status=pending&run={run}");
        let page = self.get(&path).await.json();
        page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
    }

    /// What a run asks, once it asks something.
    pub async fn asked_anew(&self, run: &str) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let asked = self.asked(run).await;
            if !asked.is_empty() {
                return asked;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{run} asks nothing");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn decide(&self, permission: &Value, body: Value) -> Answer {
        let id = permission["id"].as_str().unwrap();
        self.post(&format!("/api/permissions/{id}/decision"), &body).await
    }

    pub async fn grant(&self, permission: &Value) -> Answer {
        self.decide(permission, json!({"decision": "grant"})).await
    }

    pub async fn deny(&self, permission: &Value) -> Answer {
        self.decide(permission, json!({"decision": "deny"})).await
    }

    pub async fn kinds(&self, run: &str) -> Vec<String> {
        let page = self.get(&format!("/api/runs/{run}/events")).await.json();
        let items = page["items"].as_array().unwrap();
        items.iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until a request has that status.
    pub async fn permission_until(&self, permission: &Value, status: &str) -> Value {
        let path = format!("/api/permissions/{}", permission["id"].as_str().unwrap());
        let began = Instant::now();
        loop {
            let shown = self.get(&path).await.json();
            if shown["status"] == status {
                return shown;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "not {status}: {shown}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// What the model does: the next line of its script, or it fails if that says so.
pub fn as_scripted(seen: &Seen) -> Behaviour {
    let refuses = || Behaviour::Raw(Raw::new(400, "text/plain", ["no"]));
    line(seen).map_or_else(refuses, Behaviour::Stream)
}

/// The next line of the script that the first thing said is: its batches, and when they are all
/// made, the results. `None`: it is to fail.
fn line(seen: &Seen) -> Option<Said> {
    let messages = seen.body["messages"].as_array().cloned().unwrap_or_default();
    let first = messages.iter().find(|it| it["role"] == "user");
    let first = first.and_then(|it| it["content"].as_str()).unwrap_or_default();
    let script: Value = first
        .split("\n\n")
        .next()
        .map_or(Value::Null, |it| serde_json::from_str(it).unwrap_or_default());
    // In a group each member has lines of its own: calls to make, and words to say after them.
    let member = first.rsplit_once("It is your turn, ").map(|it| it.1.trim_end_matches('.'));
    let (script, said) = match member.map(|it| &script[it]) {
        Some(lines) if lines["fails"] == true => return None,
        Some(lines) => (lines["calls"].clone(), lines["say"].as_str().map(str::to_owned)),
        None => (script, None),
    };
    let batches: Vec<Vec<(String, Value)>> = serde_json::from_value(script).unwrap_or_default();
    let made = messages.iter().filter(|it| it["tool_calls"].is_array()).count();
    let heard = messages.iter().filter(|it| it["role"] == "user").skip(1);
    let heard: Vec<&str> = heard.filter_map(|it| it["content"].as_str()).collect();
    Some(match batches.get(made) {
        None => match said {
            Some(said) => Said::text(&said),
            None => Said::text(format!("done {}", heard.join("|")).trim()),
        },
        Some(batch) => {
            let said = batch.iter().fold(Said::text("I shall"), |said, (tool, arguments)| {
                let text = arguments.as_str().map_or(arguments.to_string(), str::to_owned);
                said.and_call(tool, &text)
            });
            Said { fragment: 1 << 16, ..said.with_ids(&format!("b{made}")) }
        }
    })
}
