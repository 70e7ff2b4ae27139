//! What the policy says, at the door: four rulings, people who must be asked, and rules that change
//! while a run waits. Seed 004, "能力与策略".

use serde_json::{Value, json};

use crate::harness::Caller;
use crate::house::{House, On, on_both};

on_both! {
    each_of_the_four_policies_does_what_it_says;
    a_capability_is_a_tools_own_or_is_given_to_it_by_its_name;
    what_a_person_must_be_asked_is_answered_by_a_person_each_time;
    where_there_is_an_approver_nobody_answers_for_themselves_what_a_person_must;
    what_an_edited_call_needs_is_needed_of_whoever_grants_it;
    a_rule_that_became_deny_still_denies_what_was_granted;
    a_rule_that_became_stricter_than_the_grant_asks_again;
    a_tool_that_has_become_another_is_asked_about_again;
    a_pattern_of_the_policy_holds_for_every_tool_that_it_matches;
    an_agent_that_was_dismissed_while_it_waited_does_nothing_more;
    edited_arguments_are_denied_with_reasons_where_the_rules_deny_by_now;
}

async fn service(house: &House) -> Caller {
    house.server.holder(json!({"kind": "service", "name": "door", "approve": true})).await
}

async fn each_of_the_four_policies_does_what_it_says(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[
        ["note", {"to": "a"}], ["pay", {"to": "b"}], ["wire", {"to": "c"}], ["burn", {"to": "d"}],
    ]]);
    let (run, asked) = lin.asking("pa", batch).await;
    let said: Vec<(&Value, &Value)> = asked.iter().map(|it| (&it["tool"], &it["ruling"])).collect();
    let due = [json!("pay"), json!("require_approval"), json!("wire"), json!("require_human")];
    assert_eq!(said, [(&due[0], &due[1]), (&due[2], &due[3])]);
    let reason = &asked[1]["reasons"][0];
    assert_eq!(
        (&reason["layer"], &reason["outcome"]),
        (&json!("capability"), &json!("require_human"))
    );
    assert!(reason["rule"].as_str().unwrap().starts_with("capabilities.transfer"), "{reason}");
    assert_eq!(house.ledger(), [""; 0]);
    assert_eq!(service(&house).await.grant(&asked[0]).await.status, 200);
    assert_eq!(lin.grant(&asked[1]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "pay b", "wire c"]);
    let denied = house.results().pop().unwrap();
    let words = ["PERMISSION_DENIED", "`burn`", "layer `capability`", "capabilities.arson"];
    assert!(words.iter().all(|it| denied.contains(it)), "{denied}");
    house.close().await;
}

async fn a_capability_is_a_tools_own_or_is_given_to_it_by_its_name(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    // Nothing is configured of what `payer` calls: nobody is asked.
    let run = lin.script("payer", json!([[["pay", {"to": "a"}], ["note", {"to": "b"}]]])).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay a", "note b"]);
    let given = "tools:\n  note: {capabilities: [transfer]}\n  pay: {capabilities: [arson]}\n";
    house.redefine("tools:\n", given).await;
    let batch = json!([[["pay", {"to": "c"}], ["note", {"to": "d"}]]]);
    let (run, asked) = lin.asking("payer", batch).await;
    assert_eq!((asked.len(), &asked[0]["ruling"]), (1, &json!("require_human")));
    assert_eq!(asked[0]["capabilities"], json!(["transfer"]));
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger()[2..], ["note d"]);
    assert!(house.results()[0].contains("capabilities.arson"), "{:?}", house.results());
    house.close().await;
}

async fn what_a_person_must_be_asked_is_answered_by_a_person_each_time(on: On) {
    let house = House::open(on).await;
    let (lin, door) = (house.lin().await, service(&house).await);
    let (run, asked) =
        lin.asking("pa", json!([[["wire", {"to": "a"}]], [["wire", {"to": "a"}]]])).await;
    door.grant(&asked[0]).await.problem(403, "forbidden");
    let signal = json!({"correlation_key": asked[0]["correlation_key"]});
    door.post(&format!("/api/jobs/{run}/signal"), &signal).await.problem(403, "forbidden");
    assert_eq!(asked[0]["payload"]["rememberable"], json!(false));
    for scope in ["run", "agent", "always"] {
        let remember = json!({"decision": "grant", "remember": scope});
        lin.decide(&asked[0], remember).await.problem(422, "not_rememberable");
    }
    assert_eq!(lin.kinds(&run).await.last().unwrap(), "batch.proposed");
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    // The very same call, and a person is asked again.
    lin.permission_until(&asked[0], "granted").await;
    let again = lin.asked_anew(&run).await;
    // A service may say no.
    assert_eq!(door.deny(&again[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["wire a"]);
    house.close().await;
}

async fn where_there_is_an_approver_nobody_answers_for_themselves_what_a_person_must(on: On) {
    let house = House::open(on).await;
    house.change("users: {boss: {approver: true}}\n", "").await;
    let (lin, mei) = (house.lin().await, house.server.human("mei").await);
    let boss = house.server.human("boss").await;
    let (run, asked) =
        lin.asking("pa", json!([[["pay", {"to": "a"}], ["wire", {"to": "b"}]]])).await;
    mei.grant(&asked[1]).await.problem(404, "not_found");
    lin.grant(&asked[1]).await.problem(403, "forbidden");
    let signal = json!({"correlation_key": asked[1]["correlation_key"]});
    lin.post(&format!("/api/runs/{run}/signal"), &signal).await.problem(403, "forbidden");
    // What only needs an approval is still one's own to give.
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    // An approver sees what is asked, though not the run.
    boss.get(&format!("/api/runs/{run}")).await.problem(404, "not_found");
    assert_eq!(boss.asked(&run).await.len(), 1);
    assert_eq!(boss.grant(&asked[1]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay a", "wire b"]);
    // And answers for their own runs, too.
    let (run, asked) = boss.asking("pa", json!([[["wire", {"to": "c"}]]])).await;
    assert_eq!(boss.grant(&asked[0]).await.status, 200);
    boss.until(&run, "completed").await;
    house.close().await;
}

async fn what_an_edited_call_needs_is_needed_of_whoever_grants_it(on: On) {
    let house = House::open(on).await;
    let rule = r#"
        @id("strangers")
        @ask("human: a stranger")
        forbid (principal, action == Action::"pay", resource)
        when { context.input.to like "stranger*" };
    "#;
    house.rule("users: {boss: {approver: true}}\n", rule).await;
    let (lin, boss) = (house.lin().await, house.server.human("boss").await);
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    assert_eq!(asked[0]["ruling"], "require_approval");
    let edited = json!({"decision": "grant", "arguments": {"to": "stranger"}});
    // What was asked about is lin's to grant; what lin would make of it is not.
    lin.decide(&asked[0], edited.clone()).await.problem(403, "forbidden");
    assert_eq!(lin.kinds(&run).await.last().unwrap(), "batch.proposed");
    assert_eq!(boss.decide(&asked[0], edited).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["pay stranger"]);
    house.close().await;
}

async fn a_rule_that_became_deny_still_denies_what_was_granted(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let batch = json!([[["pay", {"to": "a"}], ["wire", {"to": "b"}], ["note", {"to": "c"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    house.change("", "tools: {pay: deny, note: deny}\n").await;
    assert_eq!(lin.grant(&asked[1]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["wire b"]);
    let results = house.results();
    for (result, tool) in [(&results[0], "tools.pay"), (&results[2], "tools.note")] {
        assert!(result.contains("PERMISSION_DENIED") && result.contains(tool), "{result}");
    }
    house.close().await;
}

async fn a_rule_that_became_stricter_than_the_grant_asks_again(on: On) {
    let house = House::open(on).await;
    let (lin, door) = (house.lin().await, service(&house).await);
    let batch = json!([[["note", {"to": "a"}], ["pay", {"to": "b"}], ["pay", {"to": "c"}]]]);
    let (run, asked) = lin.asking("pa", batch).await;
    assert_eq!(door.grant(&asked[0]).await.status, 200);
    house.change("", "tools: {pay: require_human}\n").await;
    assert_eq!(lin.grant(&asked[1]).await.status, 200);
    // What ran has run; the one that a service granted is asked about again, by another key.
    let again = lin.asked_anew(&run).await;
    assert_eq!(again.len(), 1);
    let facts = (&again[0]["tool_call_id"], &again[0]["ruling"], &again[0]["arguments"]);
    assert_eq!(facts, (&json!("b0_2"), &json!("require_human"), &json!({"to": "b"})));
    assert_ne!(again[0]["correlation_key"], asked[0]["correlation_key"]);
    assert_eq!(house.ledger(), ["note a"]);
    // A late copy of the first answer is no answer to this question.
    assert_eq!(door.grant(&asked[0]).await.status, 200);
    let late = json!({"correlation_key": asked[0]["correlation_key"]});
    assert_eq!(door.post(&format!("/api/jobs/{run}/signal"), &late).await.status, 200);
    assert_eq!(lin.asked(&run).await.len(), 1);
    assert_eq!(lin.grant(&again[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a", "pay b", "pay c"]);
    assert_eq!(house.model.requests().len(), 2);
    house.close().await;
}

/// What somebody granted was a call of the tool that they were shown, through either door.
async fn a_tool_that_has_become_another_is_asked_about_again(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let schema = "properties: {to: {type: string}}, required: [to], additionalProperties: false}\n    risk: high";
    for (door, from, to, ran) in [
        ("decision", "echo \"pay $1\" >>", "echo \"pay $1 twice\" >>", "pay a twice"),
        ("signal", "echo \"pay $1\" >>", "echo \"pay $1 thrice\" >>", "pay a thrice"),
        ("decision", "description: Pays somebody", "description: Pays anybody", "pay a"),
        ("signal", schema, &schema.replace("to: {type", "sum: {}, to: {type"), "pay a"),
    ] {
        let answer = async |asked: &Value, run: &str| {
            let answered = match door {
                "decision" => lin.grant(asked).await,
                _ => {
                    let body = json!({"correlation_key": asked["correlation_key"]});
                    lin.post(&format!("/api/jobs/{run}/signal"), &body).await
                }
            };
            assert_eq!(answered.status, 200, "{answered:?}");
        };
        let before = house.ledger();
        let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
        house.redefine(from, to).await;
        answer(&asked[0], &run).await;
        let again = lin.asked_anew(&run).await;
        assert_eq!(house.ledger(), before, "{to}");
        let facts = (&again[0]["tool_call_id"], &again[0]["ruling"], again.len());
        assert_eq!(facts, (&json!("b0_1"), &json!("require_approval"), 1));
        let reason = &again[0]["reasons"][0];
        assert_eq!((&reason["layer"], &reason["rule"]), (&json!("tool"), &json!("definition")));
        assert_ne!(again[0]["correlation_key"], asked[0]["correlation_key"]);
        answer(&again[0], &run).await;
        lin.until(&run, "completed").await;
        assert_eq!(house.ledger()[before.len()..], [ran.to_owned()]);
        house.change("", "").await;
    }
    house.close().await;
}

async fn a_pattern_of_the_policy_holds_for_every_tool_that_it_matches(on: On) {
    let house = House::open(on).await;
    house.change("", "tools: {\"no*\": require_human, \"*ploy\": deny}\n").await;
    let lin = house.lin().await;
    let (run, asked) =
        lin.asking("pa", json!([[["note", {"to": "a"}], ["deploy", {"to": "b"}]]])).await;
    assert_eq!((asked.len(), &asked[0]["ruling"]), (1, &json!("require_human")));
    assert!(asked[0]["reasons"][0]["rule"].as_str().unwrap().starts_with("tools.no*"), "{asked:?}");
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note a"]);
    let denied = house.results().pop().unwrap();
    assert!(denied.contains("PERMISSION_DENIED") && denied.contains("tools.*ploy"), "{denied}");
    house.close().await;
}

async fn an_agent_that_was_dismissed_while_it_waited_does_nothing_more(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) =
        lin.asking("narrow", json!([[["note", {"to": "a"}], ["pay", {"to": "b"}]]])).await;
    let request = house.server.operator().request(reqwest::Method::PUT, "/api/org");
    let gone =
        "extends: builtin\nroles: {narrow: {}}\nagents: {narrow: {role: narrow, active: false}}\n";
    let changed =
        crate::harness::answer(request.json(&json!({"files": {"roles.yaml": gone}}))).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    let ended = lin.until(&run, "failed").await;
    assert!(ended["error"].as_str().unwrap().contains("narrow"), "{ended}");
    assert_eq!(house.ledger(), [""; 0]);
    let kinds = lin.kinds(&run).await;
    assert_eq!(kinds.iter().filter(|it| *it == "tool.refused").count(), 2, "{kinds:?}");
    house.close().await;
}

async fn edited_arguments_are_denied_with_reasons_where_the_rules_deny_by_now(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    house.change("", "tools: {pay: deny}\n").await;
    let edited = json!({"decision": "grant", "arguments": {"to": "b"}});
    let denied = lin.decide(&asked[0], edited).await;
    assert_eq!(denied.status, 403, "{denied:?}");
    let said = denied.json();
    assert_eq!(said["code"], "PERMISSION_DENIED");
    let reason = &said["reasons"][0];
    assert_eq!((&reason["layer"], &reason["outcome"]), (&json!("capability"), &json!("deny")));
    // Nothing was recorded: it can still be answered.
    assert_eq!(lin.kinds(&run).await.last().unwrap(), "batch.proposed");
    assert_eq!(lin.deny(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), [""; 0]);
    house.close().await;
}
