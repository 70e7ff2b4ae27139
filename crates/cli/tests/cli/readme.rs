//! What the READMEs tell people to type is typed here, in their order, beside a server.

use crate::harness::{Place, Serving, Went};

const READMES: [&str; 2] =
    [include_str!("../../../../README.md"), include_str!("../../../../README.zh-CN.md")];
const DEMO: &str = include_str!("../../scenarios/demo.yaml");
const TOOLS: &str = include_str!("../../scenarios/demo/tools.yaml");
const POLICY: &str = include_str!("../../scenarios/demo/policy.yaml");
const RULES: &str = "\
agents:
  qa_worker:
    - call: {tool: git_push, args: {branch: feature/x}}
      expect: deny
";
/// Nobody is there: what is shown is that the option is read and the failure is told.
const NO_DATABASE: &str = "postgres://nobody:x@127.0.0.1:1/none";

/// The lines of a text's blocks that are commands of ours, word by word, without what is said of
/// them.
fn commands(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|it| it.starts_with("chancery "));
    lines.map(|it| words(it.split(" #").next().unwrap_or(it))).collect()
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for it in line.chars() {
        match it {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            it => word.push(it),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words.remove(0);
    words
}

/// A machine as the READMEs suppose it: a server with the demo's agents, a scenario, files for a
/// next version.
struct Machine {
    place: Place,
    /// Ends with it.
    _serving: Serving,
}

impl Machine {
    fn new() -> Machine {
        let place = Place::new();
        for org in ["org", "next"] {
            std::fs::create_dir(place.path(org)).unwrap();
            place.write(&format!("{org}/tools.yaml"), TOOLS);
            place.write(&format!("{org}/policy.yaml"), POLICY);
        }
        // The demo's agent hands on whatever it hears.
        let alone = "  pa:\n    - {when: {user_matches: \"^Summarise\"}, say: They say little.}\n";
        place.write("demo.yaml", &DEMO.replacen("  pa:\n", alone, 1));
        std::fs::create_dir(place.path("scenarios")).unwrap();
        place.write("scenarios/rules.yaml", RULES);
        place.write(
            "chancery.toml",
            "listen = \"127.0.0.1:0\"\norg = \"org\"\n[isolation]\nmode = \"off\"\n\
             [models.default]\nprovider = \"scripted\"\nscenario = \"demo.yaml\"\n",
        );
        let serving = place.serve(&[]);
        Machine { place, _serving: serving }
    }

    /// A word as it is typed: what stands for something of one's own is found.
    fn typed(&self, word: &str) -> String {
        let newest = |list: &[&str]| {
            let items = self.place.chancery(&[list, &["--json"]].concat()).json();
            items["items"][0]["id"].as_str().unwrap().to_owned()
        };
        match word {
            "run_01…" => newest(&["run", "ls"]),
            "CTR-…" => newest(&["contract", "ls"]),
            "postgres://…" => NO_DATABASE.to_owned(),
            "scenarios/*.yaml" => "scenarios/rules.yaml".to_owned(),
            it => it.to_owned(),
        }
    }

    fn run(&self, command: &[String]) -> Went {
        let typed: Vec<String> = command.iter().map(|it| self.typed(it)).collect();
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        if typed[0] == "serve" && !typed.contains(&NO_DATABASE) {
            return serves(&typed[1..]);
        }
        self.place.chancery(&typed)
    }
}

/// A server of its own, which the same directory would not have beside the other.
fn serves(arguments: &[&str]) -> Went {
    let place = Place::configured("");
    place.chancery(&["org", "init", "company"]).done();
    let code = place.serve(arguments).stop();
    Went { code, out: String::new(), err: String::new() }
}

/// What a command ends with, where that is not 0.
fn ends_with(command: &[String]) -> i32 {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    match &command[..] {
        ["serve", "--database", ..] => 1,
        // Policy says no.
        ["can-i", "qa_worker", ..] | ["can-mail", "backend_worker", "ceo", ..] => 6,
        // A person is asked first.
        ["run", "start", goal, ..] if goal.contains("pricing") => 8,
        _ => 0,
    }
}

#[test]
fn every_command_of_the_readmes_does_what_it_says() {
    for readme in READMES {
        let machine = Machine::new();
        let commands = commands(readme);
        assert!(commands.len() > 5, "{commands:?}");
        for command in commands {
            let went = machine.run(&command);
            assert_eq!(went.code, ends_with(&command), "{command:?}: {went:?}");
        }
    }
}
