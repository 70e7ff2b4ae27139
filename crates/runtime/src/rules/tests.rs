//! Rules as an operator writes them, against tools as they are.

mod attacks;
mod loading;
mod unknown;

use chancery_domain::policy::{Reason, Ruling};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::*;

/// A few tools with the schemas that real ones have.
fn tools() -> Vec<(&'static str, Value)> {
    let optional_list =
        json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]});
    let text = json!({"type": "string"});
    vec![
        (
            "send_email",
            json!({
                "type": "object",
                "properties": {
                    "recipients": {"type": "array", "items": text},
                    "subject": text,
                    "body": text,
                    "cc": optional_list,
                    "attachments": {"anyOf": [{"type": "array", "items": {"type": "object"}}, {"type": "null"}]},
                },
                "required": ["recipients", "subject", "body"],
            }),
        ),
        (
            "share_file",
            json!({
                "type": "object",
                "$defs": {"Permission": {"enum": ["r", "rw"], "type": "string"}},
                "properties": {
                    "file_id": text, "email": text, "permission": {"$ref": "#/$defs/Permission"},
                },
                "required": ["file_id", "email", "permission"],
            }),
        ),
        (
            "transfer",
            json!({
                "type": "object",
                "properties": {
                    "to": {"anyOf": [text, {"type": "array", "items": text}]},
                    "amount": {"type": "number"},
                    "count": {"type": "integer"},
                    "urgent": {"type": "boolean"},
                    "lines": {"type": "array", "items": {"type": "object", "properties": {
                        "account": text, "amount": {"type": "number"}, "note": {},
                    }}},
                    "from": {"type": "object", "properties": {"account": text, "bank": text}, "required": ["account"]},
                    "odd name": text,
                    "__entity": {"type": "object", "properties": {"type": text, "id": text}},
                    "any": {},
                },
            }),
        ),
        (
            "send_message",
            json!({"type": "object", "properties": {"recipient": text, "body": text}, "required": ["recipient", "body"]}),
        ),
        (
            "mcp__files__read",
            json!({"type": "object", "properties": {"path": text}, "required": ["path"]}),
        ),
        (
            "mcp__files__write",
            json!({"type": "object", "properties": {"path": text, "content": text}, "required": ["path", "content"]}),
        ),
        ("now", json!({"type": "object", "properties": {}})),
    ]
}

fn load(text: &str) -> Result<Rules, Vec<Mistake>> {
    load_files(&[("rules/a.cedar", text)])
}

fn load_files(files: &[(&str, &str)]) -> Result<Rules, Vec<Mistake>> {
    let files: Vec<(String, String)> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Rules::load(&files, tools().iter().map(|(name, schema)| (*name, schema)))
}

/// One call under a rule.
struct Call {
    tool: &'static str,
    arguments: Value,
    words: &'static str,
    contacts: Vec<String>,
    role: &'static str,
    now: &'static str,
}

fn call(tool: &'static str, arguments: Value, words: &'static str) -> Call {
    let (role, now) = ("assistant", "2026-11-16T10:30:00Z");
    Call { tool, arguments, words, contacts: vec![], role, now }
}

impl Call {
    fn under(&self, rules: &Rules) -> Vec<Reason> {
        rules.speak(&Facts {
            agent: "pa",
            role: self.role,
            user: "anna",
            tool: self.tool,
            capabilities: &[],
            arguments: &self.arguments,
            task: &Literals::of([self.words].into_iter()),
            contacts: &Contacts::of(&self.contacts),
            now: self.now.parse().unwrap(),
            zone: &TimeZone::UTC,
        })
    }

    fn check(&self, text: &str, expected: Ruling) {
        let rules = load(text).unwrap_or_else(|it| panic!("{it:#?}"));
        let reasons = self.under(&rules);
        assert_eq!(ruling(&reasons), expected, "{reasons:?}");
    }
}

fn ruling(reasons: &[Reason]) -> Ruling {
    reasons.iter().map(|it| it.outcome).max().unwrap_or(Ruling::Allow)
}

fn mail(to: &str, words: &'static str) -> Call {
    call("send_email", json!({"recipients": [to], "subject": "Hi", "body": "Hello"}), words)
}

const STRANGERS: &str = r#"
@id("mail-to-strangers")
@ask("the recipient is neither in your words nor among your contacts")
@matches("{input: {recipients: [eve@evil.com], subject: Hi, body: x}, words: write to bob@corp.com}")
@matches_not("
  input: {recipients: [bob@corp.com], subject: Hi, body: x}
  words: write to bob@corp.com
")
forbid (principal, action == Action::"send_email", resource)
unless {
    context.task.emails.containsAll(context.input.recipients) ||
    context.contacts.containsAll(context.input.recipients)
};
"#;

#[test]
fn a_stranger_is_asked_about_and_one_who_was_named_is_not() {
    mail("eve@evil.com", "write to bob@corp.com").check(STRANGERS, Ruling::RequireApproval);
    mail("bob@corp.com", "write to bob@corp.com").check(STRANGERS, Ruling::Allow);
    mail("bob@corp.com", "写信给bob@corp.com").check(STRANGERS, Ruling::Allow);
    mail("bob@corp.com", "write to Bob@Corp.com").check(STRANGERS, Ruling::Allow);
    let contacts = vec!["Eve@evil.com".to_owned()];
    Call { contacts, ..mail("eve@evil.com", "") }.check(STRANGERS, Ruling::Allow);
}

#[test]
fn a_reason_names_layer_rule_file_and_line() {
    let rules = load(STRANGERS).unwrap();
    let reasons = mail("eve@evil.com", "").under(&rules);
    assert_eq!(
        reasons,
        [Reason {
            layer: "arguments".to_owned(),
            rule: "mail-to-strangers (rules/a.cedar:2)".to_owned(),
            outcome: Ruling::RequireApproval,
            detail: "the recipient is neither in your words nor among your contacts".to_owned(),
        }]
    );
}

#[test]
fn the_strictest_rule_speaks_first_and_each_that_matches_speaks() {
    let rules = load(
        r#"
        @ask("first") forbid (principal, action == Action::"now", resource);
        @deny("second") forbid (principal, action, resource);
        @ask("human: third") forbid (principal, action == Action::"now", resource);
        @ask("human") forbid (principal, action == Action::"send_email", resource);
        "#,
    )
    .unwrap();
    let reasons = call("now", json!({}), "").under(&rules);
    let said: Vec<_> = reasons.iter().map(|it| (it.outcome, &*it.detail)).collect();
    assert_eq!(
        said,
        [
            (Ruling::Deny, "second"),
            (Ruling::RequireHuman, "third"),
            (Ruling::RequireApproval, "first")
        ]
    );
    assert_eq!(reasons[0].rule, "rules/a.cedar:3");
}

#[test]
fn no_rules_say_nothing_about_any_tool() {
    let rules = load("// nothing yet\n").unwrap();
    assert!(rules.is_empty());
    assert_eq!(call("unheard_of", json!([1]), "").under(&rules), []);
}

#[test]
fn a_tool_that_came_after_the_rules_is_denied() {
    call("unheard_of", json!({}), "").check(STRANGERS, Ruling::Deny);
}

#[test]
fn every_type_of_argument_can_be_spoken_of() {
    let full = json!({
        "to": "DE1", "amount": 12.5, "count": 3.0, "urgent": true, "odd name": "x",
        "lines": [{"account": "A1", "amount": 5}, {"account": "A2", "note": {"b": 1, "a": 2}}],
        "from": {"account": "F1"}, "any": {"b": [1], "a": null},
    });
    for condition in [
        r#"context.input has to && context.input.to.contains("DE1")"#,
        r#"context.input has amount && context.input.amount.greaterThan(decimal("12.4"))"#,
        r#"context.input has count && context.input.count == 3"#,
        r#"context.input has urgent && context.input.urgent"#,
        r#"context.input has lines && context.input.lines.account == ["A2", "A1"]"#,
        r#"context.input has lines && context.input.lines.amount.contains(decimal("5.0"))"#,
        r#"context.input has lines && context.input.lines.note_json.contains("{\"a\":2,\"b\":1}")"#,
        r#"context.input has from && context.input.from.account == "F1""#,
        r#"context.input has from && !(context.input.from has bank)"#,
        r#"context.input["odd name"] like "x*""#,
        r#"context.input has any_json && context.input.any_json == "{\"a\":null,\"b\":[1]}""#,
    ] {
        let condition = match condition.strip_prefix("context.input[\"odd name\"]") {
            Some(rest) => {
                format!("context.input has \"odd name\" && context.input[\"odd name\"]{rest}")
            }
            None => condition.to_owned(),
        };
        let rule = format!(
            r#"forbid (principal, action == Action::"transfer", resource) when {{ {condition} }};"#
        );
        call("transfer", full.clone(), "").check(&rule, Ruling::Deny);
        call("transfer", json!({}), "").check(&rule, Ruling::Allow);
    }
}

#[test]
fn one_value_in_place_of_a_list_is_a_set_of_one() {
    let rule = r#"forbid (principal, action == Action::"transfer", resource)
        unless { context.input has to && context.task.accounts.containsAll(context.input.to) };"#;
    let words = "pay GB29 NWBK 6016 1331 9268 19";
    let iban = "GB29NWBK60161331926819";
    call("transfer", json!({"to": iban}), words).check(rule, Ruling::Allow);
    call("transfer", json!({"to": [iban]}), words).check(rule, Ruling::Allow);
    call("transfer", json!({"to": [iban, "DE1"]}), words).check(rule, Ruling::Deny);
    call("transfer", json!({}), words).check(rule, Ruling::Deny);
}

#[test]
fn amounts_are_held_against_what_was_said() {
    let rule = r#"forbid (principal, action == Action::"transfer", resource)
        unless { context.input has amount && context.task.amounts.contains(context.input.amount) };"#;
    call("transfer", json!({"amount": 50}), "pay 50 euros").check(rule, Ruling::Allow);
    call("transfer", json!({"amount": 50.0}), "付五十元").check(rule, Ruling::Allow);
    call("transfer", json!({"amount": 500}), "pay 50 euros").check(rule, Ruling::Deny);
    let whole = rule.replace("amounts", "whole_amounts").replace("has amount", "has count");
    let whole = whole.replace("input.amount", "input.count");
    call("transfer", json!({"count": 50}), "pay 50 euros").check(&whole, Ruling::Allow);
}

#[test]
fn names_are_held_against_the_words_and_links_against_the_arguments() {
    let rule = r#"forbid (principal, action == Action::"send_message", resource)
        unless { context.said.contains(context.input.recipient) &&
                 context.task.urls.containsAll(context.found.urls) };"#;
    let message = |to: &str, body: &str, words| {
        call("send_message", json!({"recipient": to, "body": body}), words)
    };
    message("Alice", "Hi", "Send it to Alice").check(rule, Ruling::Allow);
    message("张伟", "你好", "把它发给张伟").check(rule, Ruling::Allow);
    message("Eve", "Hi", "Send it to Alice").check(rule, Ruling::Deny);
    message("Alice", "see www.evil-252.com", "Send it to Alice").check(rule, Ruling::Deny);
    message("Alice", "see evil-252.com/x", "Send it to Alice").check(rule, Ruling::Deny);
    message("Alice", "see HTTP://Corp.com/", "Send Alice corp.com").check(rule, Ruling::Allow);
}

#[test]
fn the_time_is_that_of_the_zone() {
    let rule = r#"forbid (principal, action, resource)
        unless { context.time.weekday <= 5 && context.time.hour >= 8 && context.time.hour < 18 };"#;
    let at = |now| Call { now, ..call("now", json!({}), "") };
    at("2026-11-16T10:00:00Z").check(rule, Ruling::Allow);
    at("2026-11-16T20:00:00Z").check(rule, Ruling::Deny);
    at("2026-11-15T10:00:00Z").check(rule, Ruling::Deny);
    let rule = r#"forbid (principal, action, resource)
        when { context.time.now > datetime("2026-12-01T00:00:00Z") || context.time.date == "2026-11-15" };"#;
    at("2026-11-16T10:00:00Z").check(rule, Ruling::Allow);
    at("2026-12-16T10:00:00Z").check(rule, Ruling::Deny);
    at("2026-11-15T10:00:00Z").check(rule, Ruling::Deny);
}

#[test]
fn a_rule_can_be_for_some_agents_roles_and_users() {
    for (scope, matches) in [
        (r#"principal == Agent::"pa""#, true),
        (r#"principal == Agent::"qa""#, false),
        (r#"principal in Role::"intern""#, true),
        (r#"principal is Agent in Role::"lead""#, false),
    ] {
        let rule = format!("forbid ({scope}, action == Action::\"now\", resource);");
        let expected = if matches { Ruling::Deny } else { Ruling::Allow };
        Call { role: "intern", ..call("now", json!({}), "") }.check(&rule, expected);
    }
    for condition in [
        r#"context.agent == "pa" && context.role == "intern" && context.user == "anna""#,
        r#"principal.role == "intern" && principal.user == "anna""#,
        r#"principal in [Role::"intern", Role::"lead"]"#,
    ] {
        let rule = format!("forbid (principal, action, resource) when {{ {condition} }};");
        Call { role: "intern", ..call("now", json!({}), "") }.check(&rule, Ruling::Deny);
        call("now", json!({}), "").check(&rule, Ruling::Allow);
    }
}

#[test]
fn the_tools_of_a_server_are_one_group() {
    let rule = r#"forbid (principal, action in Action::"mcp__files", resource)
        unless { context.input.path like "notes/*" };"#;
    call("mcp__files__read", json!({"path": "notes/a"}), "").check(rule, Ruling::Allow);
    call("mcp__files__write", json!({"path": "/etc", "content": ""}), "").check(rule, Ruling::Deny);
    call("now", json!({}), "").check(rule, Ruling::Allow);
}

#[test]
fn a_rule_on_all_tools_speaks_of_what_some_of_them_have() {
    let rule = r#"forbid (principal, action, resource)
        when { context.input has path && context.input.path like "*.env" };"#;
    call("mcp__files__read", json!({"path": "a/.env"}), "").check(rule, Ruling::Deny);
    call("now", json!({}), "").check(rule, Ruling::Allow);
}

#[test]
fn a_rule_waits_for_a_tool_and_what_else_it_is_on_is_denied_meanwhile() {
    let text = r#"forbid (principal, action in [Action::"now", Action::"mcp__tracker__close"], resource)
        when { context.user == "nobody" };"#;
    assert!(load(text).is_err());
    let files = [("rules/a.cedar".to_owned(), text.to_owned())];
    let tools = tools();
    let tools = tools.iter().map(|(name, schema)| (*name, schema));
    let rules = Rules::load_awaiting(&files, tools, &["mcp__tracker__"]).unwrap();
    assert_eq!(rules.waiting(), ["rules/a.cedar:1"]);
    assert_eq!(ruling(&call("now", json!({}), "").under(&rules)), Ruling::Deny);
    assert_eq!(ruling(&mail("a@b.co", "").under(&rules)), Ruling::Allow);
    let late = call("mcp__tracker__close", json!({}), "");
    assert_eq!(ruling(&late.under(&rules)), Ruling::Deny);
}
