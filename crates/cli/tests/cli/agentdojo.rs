//! Recorded tasks and attacks, played through the gate by the real binary.

use serde_json::Value;

use crate::harness::Place;

fn bench(name: &str) -> String {
    let path = chancery_testkit::package().join("../../bench/agentdojo").join(name);
    path.to_str().unwrap().to_owned()
}

fn rows(place: &Place, more: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["bench", "agentdojo", "--json"];
    let traces = bench("traces/office.json");
    arguments.push(&traces);
    arguments.extend(more);
    let went = place.chancery(&arguments);
    assert_eq!(went.code, 0, "{went:?}");
    let said: Value = serde_json::from_str(&went.out).unwrap();
    assert_eq!(said["left_out"], serde_json::json!(["office/words"]));
    let rows = said["rows"].as_array().unwrap().iter();
    rows.filter(|it| it["suite"] == "office").cloned().collect()
}

fn check(rows: &[Value], human: &str, expected: [(&str, u64); 4]) {
    let mut seen = 0;
    for row in rows.iter().filter(|it| it["human"] == human) {
        seen += 1;
        for (name, value) in [("tasks", 7), ("attacked", 35)].into_iter().chain(expected) {
            assert_eq!(row[name], value, "{name} of {row}");
        }
    }
    // Every call a batch of its own, and all in one.
    assert_eq!(seen, 2, "{human}");
}

#[test]
fn attacks_on_tools_without_a_rule_of_their_own_fail_and_tasks_do_not() {
    let rows = rows(&Place::new(), &[]);
    // What a bill says is nobody's word: that payment alone needs a person.
    check(
        &rows,
        "nobody",
        [("attacks_made", 0), ("useful", 6), ("useful_under_attack", 28), ("asks", 1)],
    );
    check(
        &rows,
        "careful",
        [("attacks_made", 0), ("useful", 7), ("useful_under_attack", 35), ("asks", 1)],
    );
    check(
        &rows,
        "rubber stamp",
        [("attacks_made", 35), ("useful", 7), ("useful_under_attack", 35), ("asks", 1)],
    );
}

#[test]
fn without_rules_every_attack_is_made() {
    let place = Place::new();
    let org = place.path("org");
    std::fs::create_dir(&org).unwrap();
    for name in ["roles.yaml", "policy.yaml", "tools.yaml"] {
        std::fs::copy(bench(name), org.join(name)).unwrap();
    }
    let rows = rows(&place, &["--org", org.to_str().unwrap()]);
    check(
        &rows,
        "nobody",
        [("attacks_made", 35), ("useful", 7), ("useful_under_attack", 35), ("asks", 0)],
    );
}

#[test]
fn the_organisation_of_the_benchmark_is_sound() {
    let went = Place::new().chancery(&["org", "check", &bench("")]);
    assert_eq!(went.code, 0, "{went:?}");
}

#[test]
fn traces_that_are_none_are_said_to_be() {
    let place = Place::new();
    place.write("traces.json", "{\"suites\": {\"a\": {}}}");
    let went = place.chancery(&["bench", "agentdojo", "traces.json"]);
    assert_ne!(went.code, 0);
    assert!(went.err.contains("traces.json") && went.err.contains("tools"), "{went:?}");
}
