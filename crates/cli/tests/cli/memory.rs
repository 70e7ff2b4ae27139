//! Memory on the command line: what an agent remembered is found, shown, carried away, forgotten.

use serde_json::Value;

use crate::harness::Place;

const SCENARIO: &str = r#"
agents:
  pa:
    - when: {user_matches: "^remember"}
      call: {tool: memory_write, args: {content: "short reports in Chinese", pa_preference: true}}
    - when: {user_matches: "^recall"}
      call: {tool: memory_search, args: {query: "which reports"}}
    - when: {tool_result: memory_write}
      say: "remembered"
    - when: {tool_result: memory_search}
      say: "found {{result}}"
fallback: "heard: {{input}}"
"#;

#[test]
fn what_an_agent_remembers_is_found_shown_carried_away_and_forgotten() {
    let place = Place::configured("");
    place.write("scenario.yaml", SCENARIO);
    let server = place.serve(&[]);
    let run = |input: &str| {
        let went = place.chancery(&["run", "start", input, "--wait", "--json"]);
        went.json()
    };
    let remembered = run("remember this");
    assert_eq!(remembered["output"], "remembered", "{remembered}");
    let recalled = run("recall it");
    assert!(recalled["output"].as_str().unwrap().contains("short reports in Chinese"));

    let listed = place.chancery(&["memory", "ls", "--json"]).json();
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "what was recalled is not kept again: {listed}");
    let id = items[0]["id"].as_str().unwrap();
    assert_eq!(items[0]["sources"][0]["run_id"], remembered["id"]);
    let found = place.chancery(&["memory", "search", "reports", "--as", "pa/operator", "--json"]);
    assert_eq!(found.json()["items"][0]["tier_name"], "preferences");
    let found = place.chancery(&["memory", "search", "reports", "--as", "pa/operator"]);
    assert!(found.done().contains("1 preferences") && found.out.contains(id), "{found:?}");
    assert!(place.chancery(&["memory", "ls"]).done().contains("user operator, agent pa"));

    let shown = place.chancery(&["memory", "show", &id[..12]]);
    assert!(shown.done().contains("short reports in Chinese"), "{shown:?}");
    assert!(shown.out.contains(remembered["id"].as_str().unwrap()), "{shown:?}");
    let exported = place.chancery(&["memory", "export"]);
    let line: Value = serde_json::from_str(exported.done().trim()).unwrap();
    assert_eq!(line["id"], id);

    place.chancery(&["memory", "search", "x", "--as", "pa"]).usage();
    place.chancery(&["memory", "show", "run_1"]).usage();
    assert_eq!(place.chancery(&["memory", "show", &format!("mem_{}", "0".repeat(32))]).code, 1);
    let forgotten = place.chancery(&["memory", "forget", id]);
    assert!(forgotten.done().starts_with(&format!("{id} is forgotten")), "{forgotten:?}");
    assert_eq!(place.chancery(&["memory", "forget", id]).code, 1);
    assert_eq!(
        place.chancery(&["memory", "search", "reports", "--json"]).json()["items"][0],
        Value::Null
    );
    assert_eq!(server.stop(), 0);
}

#[test]
fn the_bench_measures_recall_by_the_rule_of_the_set() {
    let place = Place::new();
    let memories = [
        r#"{"id":"a","space":"s","order":0,"at":"2024-05-03","text":"we met in Lisbon"}"#,
        r#"{"id":"b","space":"s","order":1,"at":"2024-05-04","text":"我在学弹古筝"}"#,
        r#"{"id":"c","space":"other","order":0,"at":"2024-05-04","text":"Lisbon, Lisbon, 古筝"}"#,
    ];
    let questions = [
        r#"{"id":"1","space":"s","text":"where did we meet, was it Lisbon?","relevant":["a"]}"#,
        r#"{"id":"2","space":"s","text":"我学什么？古筝吗？","relevant":["b"]}"#,
        r#"{"id":"3","space":"s","text":"what about 5月4号?","relevant":["b","c"]}"#,
    ];
    place.write("small.memories.jsonl", &memories.join("\n"));
    place.write("small.queries.jsonl", &questions.join("\n"));
    place.write("again.queries.jsonl", questions[0]);
    let went = place.chancery(&["bench", "memory", "--data-set", ".", "--quality", "--json"]);
    let figures: Vec<(String, f64)> = went
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["what"].as_str().unwrap().to_owned(), it["value"].as_f64().unwrap()))
        .collect();
    assert_eq!(figures[0], ("again: R@5 of 1 questions".to_owned(), 100.0));
    assert_eq!(figures[3].0, "small: R@10 of 3 questions");
    assert!((figures[3].1 - 250.0 / 3.0).abs() < 1e-9, "{figures:?}");
    let none = Place::new();
    assert_eq!(none.chancery(&["bench", "memory", "--data-set", "."]).code, 1);
}
