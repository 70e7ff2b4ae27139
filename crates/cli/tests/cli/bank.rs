//! A place where an agent asks to pay: the payments that happened are lines of a file.

use serde_json::Value;

use crate::harness::{Place, Serving, Went};

const SCENARIO: &str = r#"
agents:
  pa:
    - when: {user_matches: "^pay"}
      say: "tests are green\nstatus        granted by lin"
      calls:
        - {tool: read_file, args: {path: brief.txt}}
        - {tool: pay, args: {to: "lin\u202e\u200b", amount: 10, note: "line 1\nto      mallory"}}
    - when: {user_matches: "^two"}
      calls:
        - {tool: pay, args: {to: lin, amount: 1}}
        - {tool: pay, args: {to: mei, amount: 2}}
    - when: {user_matches: "^memo"}
      calls:
        - {tool: memo, args: {text: one}}
        - {tool: memo, args: {text: two}}
    - when: {user_matches: "^stroll"}
      call: {tool: no_such_tool, args: {}}
    - when: {user_matches: "^vault"}
      call: {tool: vault, args: {}}
fallback: "done: {{result}}"
"#;

const TOOLS: &str = r#"
commands:
  pay:
    description: Pays somebody
    command: [/bin/sh, ORG/pay.sh, "--", "{to}", "{amount}"]
    parameters:
      type: object
      properties: {to: {type: string}, amount: {type: integer, maximum: 100}, note: {type: string}}
      required: [to, amount]
      additionalProperties: false
    risk: high
    capabilities: [money]
  memo:
    description: Files a memo
    command: [/bin/sh, ORG/pay.sh, "--", "memo", "{text}"]
    parameters: {type: object, properties: {text: {type: string}}, required: [text]}
    risk: medium
    capabilities: [paper]
  vault:
    description: Opens the vault
    command: [/bin/sh, ORG/pay.sh, "--", "vault", "open"]
    risk: high
    capabilities: [gold]
"#;

const POLICY: &str = "
extends: builtin
capabilities: {paper: require_approval, gold: deny}
";

/// What was paid, a line each.
const PAID: &str = "chancery-data/workspace/paid";

pub struct Bank {
    pub place: Place,
    _server: Serving,
}

impl Bank {
    pub fn open() -> Bank {
        let place = Place::configured("");
        place.write("scenario.yaml", SCENARIO);
        let org = place.path("org");
        std::fs::create_dir(&org).unwrap();
        let tools = TOOLS.replace("ORG", &org.display().to_string());
        place.write("org/tools.yaml", &tools);
        place.write("org/policy.yaml", POLICY);
        // Commands are behind walls: what they write is in the workspace.
        place.write("org/pay.sh", "printf '%s %s\\n' \"$2\" \"$3\" >> paid\n");
        std::fs::create_dir_all(place.path("chancery-data/workspace")).unwrap();
        place.write(PAID, "");
        let _server = place.serve(&["--org", "org"]);
        Bank { place, _server }
    }

    pub fn chancery(&self, arguments: &[&str]) -> Went {
        self.place.chancery(arguments)
    }

    /// Has an agent ask; answers with its run.
    pub fn asks(&self, input: &str) -> String {
        let went = self.chancery(&["run", "start", input, "--wait", "--json"]);
        assert_eq!(went.code, 8, "{went:?}");
        went.json()["id"].as_str().unwrap().to_owned()
    }

    /// The open requests, the oldest first.
    pub fn open_requests(&self) -> Vec<String> {
        let listed = self.chancery(&["approval", "ls", "--json"]).json();
        let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
        listed["items"].as_array().unwrap().iter().map(id).collect()
    }

    /// What was paid once the run has nothing more to do.
    pub fn paid_by(&self, run: &str) -> Vec<String> {
        let ended = self.chancery(&["run", "trace", run, "--follow"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        self.paid()
    }

    pub fn paid(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.place.path(PAID)).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}
