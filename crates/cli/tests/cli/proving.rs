//! `policy prove`: that a version allows nothing more, or a call that shows that it does.

use serde_json::{Value, json};

use crate::harness::{Place, Went};

const TOOLS: &str = r#"
commands:
  pay:
    description: Pays somebody
    command: [/bin/true]
    parameters:
      type: object
      properties: {to: {type: string}, amount: {type: integer}}
      required: [to, amount]
    risk: low
"#;

fn over(limit: u32, how: &str) -> String {
    format!(
        "@id(\"large\") {how} forbid (principal, action == Action::\"pay\", resource) \
         when {{ context.input.amount > {limit} }};\n"
    )
}

/// Versions of an organisation, each in a directory of its own.
struct Versions(Place);

impl Versions {
    fn new() -> Versions {
        Versions(Place::configured(""))
    }

    fn with(self, name: &str, files: &[(&str, &str)]) -> Versions {
        std::fs::create_dir_all(self.0.path(name).join("rules")).unwrap();
        for (file, text) in [("tools.yaml", TOOLS)].iter().chain(files) {
            self.0.write(&format!("{name}/{file}"), text);
        }
        self
    }

    fn prove(&self, old: &str, new: &str) -> Went {
        self.0.chancery(&["policy", "prove", old, new, "--json"])
    }

    #[track_caller]
    fn proved(&self, old: &str, new: &str) {
        let went = self.prove(old, new);
        assert_eq!((went.code, &went.json()["proved"]), (0, &true.into()), "{went:?}");
    }

    #[track_caller]
    fn wider(&self, old: &str, new: &str) -> Vec<Value> {
        let went = self.prove(old, new);
        let json = went.json();
        assert_eq!((went.code, &json["proved"]), (1, &false.into()), "{went:?}");
        assert_eq!(json["undecided"], json!([]), "{went:?}");
        json["wider"].as_array().unwrap().clone()
    }

    /// What the gate of a server with this version says of an example.
    fn judged(&self, version: &str, example: &Value) -> String {
        let server = self.0.serve(&["--org", version]);
        let word = |name: &str| example[name].as_str().unwrap();
        let arguments = example["arguments"].to_string();
        let asked = ["policy", "explain", "--agent", word("agent"), "--tool", word("tool")];
        let asked = [&asked[..], &["--user", word("user"), "--args", &arguments, "--json"]];
        let ruled = self.0.chancery(&asked.concat()).json();
        server.stop();
        ruled["ruling"].as_str().unwrap().to_owned()
    }
}

#[test]
fn what_is_equal_or_narrower_is_proved() {
    let (old, new, ask) = (over(1000, ""), over(500, ""), over(1000, "@ask(\"why\")"));
    let other = over(1000, "@deny(\"in other words\")").replace("large", "renamed");
    let versions = Versions::new()
        .with("old", &[("rules/a.cedar", &old)])
        .with("other", &[("rules/b.cedar", &other)])
        .with("narrow", &[("rules/a.cedar", &new)])
        .with("ask", &[("rules/a.cedar", &ask)])
        .with("none", &[]);
    versions.proved("old", "old");
    versions.proved("old", "other");
    versions.proved("old", "narrow");
    versions.proved("ask", "old");
    versions.proved("none", "old");
    versions.proved("builtin", "builtin");
    let said = versions.0.chancery(&["policy", "prove", "old", "narrow"]);
    assert!(said.out.starts_with("Proved: it allows nothing more ("), "{said:?}");
    assert!(said.out.ends_with(" people, any arguments).\n"), "{said:?}");
}

#[test]
fn a_wider_rule_is_shown_by_a_call_that_the_gate_itself_rules_on_so() {
    let (old, new) = (over(1000, ""), over(2000, "") + &over(1500, "@ask(\"why\")"));
    let new = new.replacen("large", "larger", 1);
    let versions = Versions::new()
        .with("old", &[("rules/a.cedar", &old)])
        .with("new", &[("rules/a.cedar", &new)]);
    let wider = versions.wider("old", "new");
    let example = wider.iter().find(|it| it["agent"] == "pa").unwrap();
    assert_eq!((&example["before"], &example["after"]), (&"deny".into(), &"allow".into()));
    let amount = example["arguments"]["amount"].as_i64().unwrap();
    assert!((1001..=1500).contains(&amount), "{example}");
    assert_eq!(versions.judged("old", example), "deny");
    assert_eq!(versions.judged("new", example), "allow");
    let said = versions.0.chancery(&["policy", "prove", "old", "new"]);
    let line = "WIDER      pa for somebody may call pay: allow, was deny\n";
    assert!(said.out.contains(line), "{said:?}");
    assert!(
        said.out.contains("until now: the rule `large (rules/a.cedar:1)` forbids it"),
        "{said:?}"
    );
}

#[test]
fn the_other_layers_are_compared_too() {
    let roles = |tools: &str, more: &str| {
        format!(
            "roles:\n  clerk: {{tools: [{tools}], reports_to: [board]{more}}}\n\
             agents:\n  kim: {{role: clerk}}\n"
        )
    };
    let (few, more) = (roles("read_file", ""), roles("read_file, pay", ""));
    let scoped =
        |path: &str| roles("read_file", &format!(", file_scope: {{read: [{path}], write: []}}"));
    let (small, large) = (scoped("docs/a"), scoped("docs"));
    let asked = "extends: builtin\ntools: {pay: require_approval}\n";
    let versions = Versions::new()
        .with("few", &[("roles.yaml", &few)])
        .with("more", &[("roles.yaml", &more)])
        .with("small", &[("roles.yaml", &small)])
        .with("large", &[("roles.yaml", &large)])
        .with("asked", &[("roles.yaml", &more), ("policy.yaml", asked)]);
    versions.proved("more", "few");
    let wider = versions.wider("few", "more");
    let [example] = wider.as_slice() else { panic!("{wider:?}") };
    assert_eq!((&example["agent"], &example["tool"]), (&"kim".into(), &"pay".into()));
    assert_eq!((&example["before"], &example["after"]), (&"deny".into(), &"allow".into()));
    assert!(example["arguments"].is_null(), "{example}");
    let wider = versions.wider("asked", "more");
    assert_eq!(wider.len(), 1, "{wider:?}");
    assert_eq!(wider[0]["before"], "require_approval");
    versions.proved("large", "small");
    versions.proved("few", "large");
    let went = versions.prove("small", "large").json();
    assert_eq!(went["beyond"][0]["detail"], "may read `docs`", "{went}");
}

#[test]
fn a_tool_that_is_bound_but_forbidden_by_a_rule_is_no_wider() {
    let roles = |tools: &str| {
        format!(
            "roles:\n  clerk: {{tools: [{tools}], reports_to: [board]}}\n\
             agents:\n  kim: {{role: clerk}}\n"
        )
    };
    let (few, more) = (roles("read_file"), roles("read_file, pay"));
    let never = "forbid (principal, action == Action::\"pay\", resource) when { true };";
    let versions = Versions::new()
        .with("old", &[("roles.yaml", &few), ("rules/a.cedar", never)])
        .with("new", &[("roles.yaml", &more), ("rules/a.cedar", never)]);
    let went = versions.prove("old", "new").json();
    assert_eq!((&went["wider"], &went["undecided"]), (&json!([]), &json!([])), "{went}");
    // It may hand the tool on, though nobody can use it.
    let passed = json!([{"subject": "agent kim", "detail": "may pass on pay to a group"}]);
    assert_eq!(went["beyond"], passed, "{went}");
}

#[test]
fn what_cannot_be_compared_is_not_called_proved() {
    let other = TOOLS.replace("integer", "number");
    let program = TOOLS.replace("/bin/true", "/bin/false");
    let versions = Versions::new()
        .with("old", &[])
        .with("schema", &[("tools.yaml", &other)])
        .with("program", &[("tools.yaml", &program)]);
    for (new, why) in [
        ("schema", "it takes other arguments than it did"),
        ("program", "it is another program, or runs under other terms"),
    ] {
        let went = versions.prove("old", new);
        assert_eq!((went.code, &went.json()["proved"]), (1, &false.into()), "{went:?}");
        assert_eq!(went.json()["undecided"][0]["why"], why, "{went:?}");
    }
}

#[test]
fn without_a_solver_it_says_what_to_install() {
    let (old, new) = (over(1000, ""), over(2000, ""));
    let versions = Versions::new()
        .with("old", &[("rules/a.cedar", &old)])
        .with("new", &[("rules/a.cedar", &new)]);
    let mut command = versions.0.command(&["policy", "prove", "old", "new"]);
    let went = crate::harness::went({
        command.env("CVC5", "/nowhere/cvc5");
        command
    });
    assert!(went.failed(1).contains("Install cvc5 (Debian: the package `cvc5`)"), "{went:?}");
    // What the rules have no part in needs none.
    let mut command = versions.0.command(&["policy", "prove", "old", "old"]);
    command.env("CVC5", "/nowhere/cvc5");
    assert_eq!(crate::harness::went(command).code, 0);
    versions.0.chancery(&["policy", "prove"]).usage();
    versions.0.chancery(&["policy", "prove", "nowhere", "old"]).failed(1);
}
