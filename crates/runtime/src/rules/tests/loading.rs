//! What is wrong with rules is said at once, with its place.

use super::*;

/// Every mistake as `file:line:column: the beginning of the detail`.
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let mistakes = load_files(files).map(|_| ()).unwrap_err();
    let said: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "expected {expected:?} in {said:#?}");
    }
}

#[test]
fn a_mistyped_attribute_is_found_at_its_line_and_column() {
    let text = "\n// 谁\nforbid (principal, action == Action::\"send_email\", resource)\n\
                unless { context.task.emails.containsAll(context.input.recipent) };\n";
    check(&[("rules/a.cedar", text)], &["rules/a.cedar:4:42: attribute `input.recipent`"]);
    let mistakes = load(text).unwrap_err();
    let hint = mistakes[0].hint.as_deref().unwrap();
    assert!(hint.contains("recipients"), "{hint}");
}

#[test]
fn all_mistakes_of_all_files_are_told() {
    check(
        &[
            (
                "rules/a.cedar",
                "forbid (principal, action == Action::\"send_emial\", resource);\n\
                 forbid (principal, action == Action::\"now\", resource) when { context.tsk };\n\
                 forbid (principal, action == Action::\"now\", resource) when { 1 + };\n\
                 permit (principal, action, resource);\n",
            ),
            (
                "rules/b.cedar",
                "@aks(\"x\")\nforbid (principal, action, resource);\n\
                 forbid (principal, action == Action::\"share_file\", resource)\n\
                 when { context.input.permission == 1 };\n\
                 @ask(\"a\") @deny(\"b\") forbid (principal, action, resource);\n\
                 @id(\"\") forbid (principal, action, resource);\n\
                 forbid (principal == ?principal, action, resource);\n\
                 forbid (principal, action, resource)",
            ),
        ],
        &[
            "rules/a.cedar:1:30: unrecognized action",
            "rules/a.cedar:2:",
            "rules/a.cedar:3:",
            "rules/a.cedar:4:1: `permit` permits nothing here (a rule can only tighten",
            "rules/b.cedar:1:1: `@aks` means nothing",
            "rules/b.cedar:4:",
            "rules/b.cedar:5:11: a rule asks or denies",
            "rules/b.cedar:6:1: `@id`",
            "rules/b.cedar:7:",
            "rules/b.cedar:8:",
        ],
    );
}

#[test]
fn an_optional_argument_must_be_asked_for_first() {
    let text = r#"forbid (principal, action == Action::"send_email", resource)
        when { context.input.cc.contains("a@b.co") };"#;
    check(&[("rules/a.cedar", text)], &["rules/a.cedar:2:16: unable to guarantee safety"]);
    let text = text.replace("context.input.cc.", "context.input has cc && context.input.cc.");
    assert!(load(&text).is_ok());
}

#[test]
fn a_mistyped_attribute_is_found_behind_has_too() {
    let text = r#"forbid (principal, action == Action::"send_email", resource)
        when { (context.input has bcc && context.input.bcc.isEmpty()) || context.user == "x" };"#;
    check(
        &[("rules/a.cedar", text)],
        &["rules/a.cedar:1:1: no tool of this rule has `context.input.bcc`"],
    );
}

#[test]
fn a_rule_that_can_never_match_is_a_mistake() {
    let text = "forbid (principal, action, resource) when { false };";
    check(&[("rules/a.cedar", text)], &["rules/a.cedar:1:1: policy is impossible"]);
}

#[test]
fn a_rule_on_all_tools_that_speaks_of_one_tools_argument_is_told_how_to_say_it() {
    let text = "forbid (principal, action, resource) when { context.input.path like \"*\" };";
    let mistakes = load(text).unwrap_err();
    assert_eq!(mistakes.len(), 1, "{mistakes:#?}");
    assert_eq!((mistakes[0].line, mistakes[0].column), (1, 45));
    assert!(mistakes[0].hint.as_deref().unwrap().contains("names no action"), "{mistakes:?}");
}

#[test]
fn an_example_that_does_not_do_as_it_says_is_a_mistake() {
    let rule = r#"forbid (principal, action == Action::"send_email", resource)
        unless { context.task.emails.containsAll(context.input.recipients) };"#;
    for (example, expected) in [
        (
            "@matches(\"{input: {recipients: [a@b.co]}, words: to a@b.co}\")",
            "rules/a.cedar:2:1: the example `@matches` fails: the rule does not match it",
        ),
        (
            "@matches_not_2(\"input: {recipients: [a@b.co]}\")",
            "rules/a.cedar:2:1: the example `@matches_not_2` fails: the rule matches it",
        ),
        (
            "@matches(\"input: {recipent: [a@b.co]}\")",
            "rules/a.cedar:2:1: the example `@matches` fails: `send_email` has no argument `recipent`",
        ),
        (
            "@matches(\"input: {recipients: 7}\")",
            "rules/a.cedar:2:1: the example `@matches` fails: `recipients` is not what",
        ),
        (
            "@matches(\"input: {}\")",
            "rules/a.cedar:2:1: the example `@matches` fails: `recipients` is missing",
        ),
        ("@matches(\"inputs: {}\")", "rules/a.cedar:2:1: `@matches` cannot be read"),
        (
            "@matches(\"tool: now\")",
            "rules/a.cedar:2:1: the example `@matches` fails: the rule is not on the tool `now`",
        ),
        (
            "@matches(\"{time: noon, input: {recipients: []}}\")",
            "rules/a.cedar:2:1: the example `@matches` fails: `noon` is no time",
        ),
    ] {
        check(&[("rules/a.cedar", &format!("// It.\n{example}\n{rule}"))], &[expected]);
    }
}

#[test]
fn an_example_can_say_everything_that_a_rule_can_ask() {
    let text = r#"
    @matches("
      tool: now
      time: 2026-11-15T23:30+08:00[Asia/Shanghai]
      agent: pa
      role: intern
      user: anna
      contacts: [bob@corp.com]
      words:
        - write to bob@corp.com
        - '把它发给「张伟」: 现在'
    ")
    @matches_not("{tool: now, time: 2026-11-15T23:30}")
    forbid (principal in Role::"intern", action in [Action::"now", Action::"send_email"], resource)
    when { context.time.weekday == 7 && context.time.hour == 23 && context.agent == "pa" &&
           context.user == "anna" && context.contacts.containsAll(context.task.emails) &&
           context.task.quoted.contains("张伟") };"#;
    assert!(load(text).is_ok(), "{:#?}", load(text).unwrap_err());
}

#[test]
fn an_id_is_had_once() {
    let text = "@id(\"a\") forbid (principal, action, resource);";
    check(
        &[("rules/a.cedar", text), ("rules/b.cedar", text)],
        &["rules/b.cedar:1:1: two rules have the id `a` (the other one is `a (rules/a.cedar:1)`)"],
    );
}

#[test]
fn any_schema_of_a_tool_makes_a_schema_for_rules() {
    let twice = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}});
    let round = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    let wide = json!({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}}});
    let away = json!({"properties": {"a": {"$ref": "https://evil.example/x"}, "__cedar": {"type": "string"}, "": {"type": "string"}, "a\"]\n": {"type": "string"}}});
    let clash = json!({"properties": {"x": {}, "x_json": {"type": "string"}}});
    for schema in [twice, round, wide, away, clash, json!(true), json!(null), json!([1])] {
        for name in ["t", "mcp__a__b", "mcp__a", "mcp____", "", "a b\"c::", "工具"] {
            let text = "forbid (principal, action, resource) when { context.user == \"x\" };";
            let tools = [(name, &schema), ("mcp__a__c", &schema)];
            let files = [("a".to_owned(), text.to_owned())];
            let rules = Rules::load(&files, tools.into_iter());
            assert!(rules.is_ok(), "{name} {schema}: {rules:#?}");
        }
    }
}

#[test]
fn the_rules_in_the_document_hold_what_their_examples_say() {
    let document = include_str!("../../../../../docs/rules.md");
    let rules: Vec<(String, String)> = document
        .split("```cedar\n")
        .skip(1)
        .map(|it| ("docs/rules.md".to_owned(), it.split("```").next().unwrap().to_owned()))
        .collect();
    let text = json!({"type": "string"});
    let object = |properties: Value| {
        let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        json!({"type": "object", "properties": properties, "required": required})
    };
    let list = json!({"type": "array", "items": text});
    let tools = [
        ("send_email", object(json!({"recipients": list, "subject": text, "body": text}))),
        ("transfer", object(json!({"to": text, "amount": {"type": "number"}}))),
        ("send_message", object(json!({"recipient": text, "body": text}))),
        ("deploy", object(json!({"environment": text}))),
        ("mcp__files__list", object(json!({}))),
        ("mcp__files__write", object(json!({"path": text, "content": text}))),
    ];
    let loaded = Rules::load(&rules, tools.iter().map(|(name, schema)| (*name, schema)));
    assert_eq!(loaded.unwrap_or_else(|it| panic!("{it:#?}")).len(), 7);
}
