//! Scenarios as people write them, played against conversations as runs have them.

use std::sync::Arc;

use chancery_domain::event::{Call, CallResult};
use chancery_domain::id::{AgentId, RunId};
use serde_json::{Value, json};

use super::*;

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

/// A reply as it comes back in the next request.
fn assistant(reply: &Reply) -> Message {
    let call = |raw: &RawCall| {
        Arc::new(Call {
            id: raw.id.as_str().into(),
            tool: raw.tool.clone(),
            arguments: serde_json::from_str(&raw.arguments).unwrap(),
        })
    };
    Message::Assistant { text: reply.text.clone(), calls: reply.calls.iter().map(call).collect() }
}

fn result(call: &str, text: &str) -> Message {
    Message::Tool { call: call.into(), result: CallResult::ok(text) }
}

async fn ask(model: &ScriptedModel, agent: &str, messages: &[Message]) -> Reply {
    let agent = AgentId::from(agent);
    let request = Request {
        run: Some("run_00000000000000000000000000000007".parse::<RunId>().unwrap()),
        agent: &agent,
        system: "be brief",
        messages,
        tools: &[],
    };
    model.generate(request).await.unwrap()
}

/// What was said and called: `(text, [(id, tool, arguments)])`.
fn gist(reply: &Reply) -> (&str, Vec<(&str, &str, Value)>) {
    let call = |it: &'_ RawCall| serde_json::from_str::<Value>(&it.arguments).unwrap();
    let calls = reply.calls.iter().map(|it| (it.id.as_str(), it.tool.as_str(), call(it)));
    (&reply.text, calls.collect())
}

const PRICING: &str = r#"
lang: [en, zh]
agents:
  pa/lin:
    - when: {user_matches: "(?i)pricing|定价|发布"}
      say:  {en: "This needs the release group.", zh: "这件事需要发布小组，我来叫人。"}
      call: {tool: escalate_to_group, args: {group_id: grp_release, goal: "Do: {{input}}"}}
    - when: {tool_result: escalate_to_group}
      say:  {en: "Done: {{result.summary}}", zh: "完成：{{result.summary}}"}
  devops_worker:
    - calls:
        - {tool: read_logs, args: {service: web, lines: 3}}
        - {tool: docker_build, args: {tags: ["shop/web:{{input}}"]}}
  backend_worker:
    - calls: [{tool: send_mail, args: {to: ceo}}]
      expect: {denied: C-03}
fallback: {en: "Try one of the buttons."}
"#;

#[tokio::test]
async fn a_scenario_is_played_in_order_and_then_falls_back() {
    let model = ScriptedModel::parse(PRICING).unwrap();
    let mut talk = vec![user("Fix the pricing")];
    let first = ask(&model, "pa", &talk).await;
    let goal = json!({"group_id": "grp_release", "goal": "Do: Fix the pricing"});
    let call = ("call_1", "escalate_to_group", goal);
    assert_eq!(gist(&first), ("This needs the release group.", vec![call]));
    assert_eq!(first.usage, Usage { input_tokens: 5, output_tokens: 9, ..Usage::default() });
    assert_eq!(first.model, "scripted");
    talk.extend([assistant(&first), result("call_1", r#"{"summary": "shipped"}"#)]);
    let second = ask(&model, "pa", &talk).await;
    assert_eq!(gist(&second), ("Done: shipped", vec![]));
    talk.extend([assistant(&second), user("And pricing again")]);
    assert_eq!(gist(&ask(&model, "pa", &talk).await), ("Try one of the buttons.", vec![]));
}

#[tokio::test]
async fn the_same_conversation_gives_the_same_answer_however_often_it_is_asked() {
    let model = ScriptedModel::parse(PRICING).unwrap();
    let talk = [user("pricing")];
    let first = ask(&model, "pa", &talk).await;
    assert_eq!(ask(&model, "pa", &talk).await, first);
    assert!(!first.calls.is_empty());
}

#[tokio::test]
async fn whoever_writes_chinese_is_answered_in_chinese() {
    let model = ScriptedModel::parse(PRICING).unwrap();
    let reply = ask(&model, "pa", &[user("请修复定价")]).await;
    assert_eq!(reply.text, "这件事需要发布小组，我来叫人。");
    let other = ask(&model, "pa", &[user("你好")]).await;
    assert_eq!(other.text, "Try one of the buttons.");
}

#[tokio::test]
async fn calls_are_one_batch_numbered_through_the_run() {
    let text = "agents: {w: [{calls: [{tool: a}, {tool: b}], repeat: 2}]}";
    let model = ScriptedModel::parse(text).unwrap();
    let mut talk = vec![user("go")];
    let first = ask(&model, "w", &talk).await;
    let call = |id, tool| (id, tool, json!({}));
    assert_eq!(gist(&first), ("", vec![call("call_1", "a"), call("call_2", "b")]));
    talk.extend([assistant(&first), result("call_1", "x"), result("call_2", "y")]);
    let second = ask(&model, "w", &talk).await;
    assert_eq!(gist(&second), ("", vec![call("call_3", "a"), call("call_4", "b")]));
    talk.extend([assistant(&second), result("call_3", "x"), result("call_4", "y")]);
    assert_eq!(
        gist(&ask(&model, "w", &talk).await),
        ("I am the scripted model and have no lines left.", vec![])
    );
}

#[tokio::test]
async fn blanks_are_filled_in_nested_arguments_and_numbers_stay_numbers() {
    let model = ScriptedModel::parse(PRICING).unwrap();
    let reply = ask(&model, "devops_worker", &[user("1.8.3")]).await;
    assert_eq!(
        gist(&reply).1,
        vec![
            ("call_1", "read_logs", json!({"service": "web", "lines": 3})),
            ("call_2", "docker_build", json!({"tags": ["shop/web:1.8.3"]})),
        ]
    );
}

#[tokio::test]
async fn the_result_of_an_earlier_turn_does_not_count_as_fresh() {
    let text = r#"
agents:
  w:
    - {when: {user_matches: one}, call: {tool: look}}
    - {when: {tool_result: other}, say: never}
    - {when: {user_matches: two}, say: second}
    - {when: {tool_result: look}, say: looked, repeat: 2}
"#;
    let model = ScriptedModel::parse(text).unwrap();
    let first = ask(&model, "w", &[user("one")]).await;
    let mut talk = vec![user("one"), assistant(&first), result("call_1", "seen")];
    let second = ask(&model, "w", &talk).await;
    assert_eq!(second.text, "looked");
    talk.extend([assistant(&second), user("two")]);
    let third = ask(&model, "w", &talk).await;
    assert_eq!(third.text, "second");
    talk.extend([assistant(&third), user("and now?")]);
    assert_eq!(
        ask(&model, "w", &talk).await.text,
        "I am the scripted model and have no lines left."
    );
}

#[tokio::test]
async fn an_entry_may_depend_on_what_a_result_says() {
    let model = ScriptedModel::parse(
        r#"
agents:
  pa:
    - when: {tool_result: pay, result_matches: "(denied|not carried out)"}
      say: not paid
    - when: {tool_result: pay}
      say: paid
    - call: {tool: pay}
"#,
    );
    let model = model.unwrap();
    let first = ask(&model, "pa", &[user("go")]).await;
    for (text, said) in [("User denied the request.", "not paid"), ("10 to mei", "paid")] {
        let messages = [user("go"), assistant(&first), result(&first.calls[0].id, text)];
        assert_eq!(ask(&model, "pa", &messages).await.text, said);
    }
}

#[tokio::test]
async fn an_agent_has_its_own_lines_or_those_of_its_office_or_those_of_anyone() {
    let text = r#"
agents:
  pa: [{say: own}]
  qa/kim: [{say: office}]
  "*": [{say: anyone}]
"#;
    let model = ScriptedModel::parse(text).unwrap();
    for (agent, expected) in
        [("pa", "own"), ("qa", "office"), ("qa/kim", "office"), ("kim", "anyone")]
    {
        assert_eq!(ask(&model, agent, &[user("hi")]).await.text, expected, "{agent}");
    }
}

#[tokio::test]
async fn blanks_know_paths_and_say_what_they_miss_and_leave_other_braces_alone() {
    let facts = [user("{{result}}"), result("c", r#"{"a": [{"b": 7}], "s": "x {{input}}"}"#)];
    let facts = Facts::of(&facts);
    for (text, expected) in [
        ("{{ result.a.0.b }}!", "7!"),
        ("{{result.a}}", r#"[{"b":7}]"#),
        ("{{result.s}}", "x {{input}}"),
        ("{{input}}", "{{result}}"),
        ("{{result.z.y}}", "[no result.z.y]"),
        ("{{.Names}} {{", "{{.Names}} {{"),
        ("{{{{input}}", "{{{{result}}"),
    ] {
        assert_eq!(facts.fill(text), expected, "{text}");
    }
}

#[tokio::test]
async fn without_a_scenario_it_says_that_it_is_the_scripted_model() {
    let model = ScriptedModel::without_scenario().unwrap();
    let reply = ask(&model, "pa", &[user("hello")]).await;
    assert!(reply.text.starts_with("I am the scripted model"), "{}", reply.text);
    assert_eq!(reply.calls, []);
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_kept_and_an_entry_may_have_its_own() {
    let text = "{delay_ms: 40, agents: {w: [{say: a, delay_ms: 5000}, {say: b}]}}";
    let model = ScriptedModel::parse(text).unwrap();
    let start = tokio::time::Instant::now();
    let first = ask(&model, "w", &[user("x")]).await;
    assert_eq!(start.elapsed().as_millis(), 5000);
    ask(&model, "w", &[user("x"), assistant(&first), user("y")]).await;
    assert_eq!(start.elapsed().as_millis(), 5040);
}

#[test]
fn what_is_wrong_with_a_scenario_is_said_when_it_is_read() {
    for (text, expected) in [
        ("agents: {w: [{sya: hi}]}", "unknown field `sya`"),
        ("agent: {}", "unknown field `agent`"),
        ("agents: {w: [{when: {user: x}, say: hi}]}", "unknown field `user`"),
        ("agents: {w: [{call: {tool: x, arg: {}}}]}", "unknown field `arg`"),
        ("agents: {w: [{say: [1]}]}", "one for each language"),
        ("agents: {w: [{say: hi}, {}]}", "entry 2 of agent `w` neither says nor calls anything"),
        ("agents: {w: [{calls: []}]}", "entry 1 of agent `w` neither says nor calls anything"),
        ("agents: {w: [{call: {tool: x}, calls: []}]}", "has both `call` and `calls`"),
        ("agents: {w: [{say: hi, repeat: 0}]}", "`repeat` is 0"),
        ("agents: {w: [{say: hi, when: {user_matches: '('}}]}", "is no pattern"),
        ("delay_ms: 60001", "`delay_ms` is 60001, more than 60000"),
        ("agents: [", "cannot be read"),
    ] {
        let error = ScriptedModel::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains("Written") && !error.contains("Words"), "{text}: {error}");
    }
}

#[tokio::test]
async fn a_file_gives_the_model_its_name_and_errors_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pricing.yaml");
    std::fs::write(&path, PRICING).unwrap();
    let model = ScriptedModel::load(&path).unwrap();
    assert_eq!(ask(&model, "pa", &[user("hi")]).await.model, "scripted/pricing");

    std::fs::write(&path, "agents: {w: [{}]}").unwrap();
    let error = ScriptedModel::load(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("in the scenario `{}`", path.display()));
    let missing = folder.path().join("none.yaml");
    let error = ScriptedModel::load(&missing).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read the scenario `{}`", missing.display()));
}
