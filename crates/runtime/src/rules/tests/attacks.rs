//! Arguments as an attacker with a model's patience writes them.

use proptest::prelude::*;

use super::*;

#[test]
fn an_object_that_looks_like_an_entity_is_an_object() {
    let smuggled = json!({"__entity": {"type": "Role", "id": "admin"}});
    let extension = json!({"__extn": {"fn": "decimal", "arg": "1.0"}});
    let rule = r#"forbid (principal, action == Action::"send_email", resource)
        unless { context.input.subject == "x" };"#;
    for value in [smuggled.clone(), extension.clone()] {
        let arguments = json!({"recipients": [], "subject": value, "body": ""});
        call("send_email", arguments, "").check(rule, Ruling::Deny);
    }
    // As a field of its own it has the type that the schema gives it.
    let rule = r#"forbid (principal, action == Action::"transfer", resource)
        when { context.input has __entity && context.input.__entity has id &&
               context.input.__entity.id == "admin" };"#;
    call("transfer", smuggled.clone(), "").check(rule, Ruling::Deny);
    // Where anything may stand it is text.
    let rule = r#"forbid (principal, action == Action::"transfer", resource)
        when { context.input has any_json && context.input.any_json like "*__ent*" };"#;
    call("transfer", json!({"any": smuggled}), "").check(rule, Ruling::Deny);
}

#[test]
fn a_rule_that_errs_denies_and_says_which() {
    let text = r#"@id("sum") @ask("much") forbid (principal, action == Action::"transfer", resource)
        when { context.input has count && context.input.count * 2 > 10 };"#;
    let rules = load(text).unwrap();
    let reasons = call("transfer", json!({"count": i64::MAX}), "").under(&rules);
    assert_eq!(reasons.len(), 1);
    assert_eq!(reasons[0].outcome, Ruling::Deny);
    assert_eq!(reasons[0].rule, "sum (rules/a.cedar:1)");
    assert!(reasons[0].detail.contains("overflow"), "{reasons:?}");
}

#[test]
fn arguments_that_do_not_fit_are_denied_if_a_rule_looks_at_them() {
    let rule = r#"forbid (principal, action == Action::"transfer", resource)
        when { context.input has count && context.input.count > 10 };"#;
    for count in [json!("11"), json!(1.5), json!(u64::MAX), json!(1e300), json!([1]), json!({})] {
        call("transfer", json!({"count": count}), "").check(rule, Ruling::Deny);
    }
    call("transfer", json!({"count": null}), "").check(rule, Ruling::Allow);
    call("transfer", json!({"amount": "not looked at"}), "").check(rule, Ruling::Allow);
    for arguments in [json!([]), json!("x"), json!(7)] {
        call("transfer", arguments, "").check(rule, Ruling::Deny);
    }
    let rule = r#"forbid (principal, action == Action::"transfer", resource)
        when { context.input has amount && context.input.amount.greaterThan(decimal("10.0")) };"#;
    for amount in [json!(1e15), json!(-1e300), json!(i64::MAX), json!("11"), json!(10.1)] {
        call("transfer", json!({"amount": amount}), "").check(rule, Ruling::Deny);
    }
    for amount in [json!(10), json!(-10.5), json!(1e-300), json!(-0.0)] {
        call("transfer", json!({"amount": amount}), "").check(rule, Ruling::Allow);
    }
}

#[test]
fn arguments_that_are_too_many_are_denied_if_a_rule_looks_at_them() {
    let many: Vec<String> = (0..20_000).map(|it| format!("a{it}@b.co")).collect();
    let arguments = json!({"recipients": many, "subject": "", "body": ""});
    call("send_email", arguments, "write to a1@b.co").check(STRANGERS, Ruling::Deny);
    let text = "a".repeat(1 << 20);
    let arguments = json!({"recipients": ["a@b.co"], "subject": "", "body": text});
    call("send_email", arguments.clone(), "to a@b.co").check(STRANGERS, Ruling::Allow);
    let rule = r#"forbid (principal, action == Action::"send_email", resource)
        when { context.input.body like "*a*a*a*b" };"#;
    call("send_email", arguments, "").check(rule, Ruling::Allow);
    let arguments = json!({"recipients": [], "subject": "", "body": "a".repeat(5 << 20)});
    call("send_email", arguments, "").check(rule, Ruling::Deny);
}

#[test]
fn a_link_does_not_hide_behind_many_others() {
    let rule = r#"forbid (principal, action == Action::"send_message", resource)
        unless { context.task.urls.containsAll(context.found.urls) };"#;
    let harmless: String = (0..600).map(|it| format!("www.corp.com/{it} ")).collect();
    let body = format!("{harmless} www.zzz.evil.com");
    call("send_message", json!({"recipient": "A", "body": body}), "").check(rule, Ruling::Deny);
}

#[test]
fn a_link_does_not_hide_by_its_length_or_its_neighbours() {
    let rule = r#"forbid (principal, action == Action::"send_message", resource)
        unless { context.task.urls.containsAll(context.found.urls) &&
                 context.task.emails.containsAll(context.found.emails) };"#;
    let message = |body: &str| {
        call("send_message", json!({"recipient": "A", "body": body}), "tell A of www.corp.com")
    };
    message("see www.corp.com, thanks").check(rule, Ruling::Allow);
    for body in [
        &*format!("https://evil.com/{}", "a".repeat(5000)),
        "xhttps://evil.com/",
        "_www.evil.com_",
        "www.evil.comé",
        "看www.evil.com看",
        "www.corp.com,www.evil.com",
        "https://www.corp.com@evil.com/",
        "https://www.corp.com,https://evil.com",
        "ftp://1.2.3.4/x",
        "éve@evil.com",
        "eve@evil.com_",
        "a@b@evil.com",
    ] {
        message(body).check(rule, Ruling::Deny);
    }
}

#[test]
fn an_argument_that_the_schema_does_not_name_can_be_forbidden() {
    let rule = r#"forbid (principal, action == Action::"transfer", resource)
        unless { context.extra.isEmpty() };"#;
    call("transfer", json!({"count": 1, "any": {"x": 1}}), "").check(rule, Ruling::Allow);
    call("transfer", json!({"Count": 1}), "").check(rule, Ruling::Deny);
    call("transfer", json!({"from": {"account": "a", "bcc": "b"}}), "").check(rule, Ruling::Deny);
    call("transfer", json!({"lines": [{"account": "a"}, {"x": 1}]}), "").check(rule, Ruling::Deny);
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "(www\\.[a-z]{1,5}\\.com|[a-z]{1,3}@[a-z]{1,3}\\.co|[0-9]{1,12}|May 3)"
            .prop_map(Value::from),
    ];
    let key = prop_oneof![
        "(to|amount|count|urgent|lines|from|odd name|any|account|note|bank|__entity|__extn|id|type)",
        any::<String>(),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// Rules that look at everything.
const RULES: [&str; 6] = [
    r#"forbid (principal, action == Action::"transfer", resource) when { context.input has amount && context.input.amount.lessThan(decimal("0.0")) };"#,
    r#"@ask("x") forbid (principal, action == Action::"transfer", resource) when { context.input has count && context.input.count + 1 > 3 };"#,
    r#"@ask("human") forbid (principal, action, resource) unless { context.task.urls.containsAll(context.found.urls) };"#,
    r#"@ask("x") forbid (principal, action == Action::"transfer", resource) when { context.input has to && !context.said.containsAll(context.input.to) };"#,
    r#"forbid (principal, action == Action::"transfer", resource) when { context.input has lines && context.input.lines.account.containsAny(context.contacts) };"#,
    r#"@ask("x") forbid (principal in Role::"assistant", action, resource) when { context == context && context.extra.isEmpty() };"#,
];

proptest! {
    // Each case reads the rules anew, which is what takes the time.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_arguments_get_a_ruling(arguments in anything(), words in any::<String>()) {
        let rules = load(&RULES.concat()).unwrap();
        let words: &'static str = words.leak();
        let reasons = call("transfer", arguments, words).under(&rules);
        prop_assert!(reasons.iter().all(|it| it.layer == "arguments"));
    }

    #[test]
    fn one_more_rule_never_loosens(
        arguments in anything(),
        some in proptest::sample::subsequence(RULES.to_vec(), 0..6),
        more in proptest::sample::select(RULES.to_vec()),
    ) {
        let fewer = load(&some.concat()).unwrap();
        let larger = load(&format!("{}{more}", some.concat())).unwrap();
        let call = call("transfer", arguments, "write to a@b.co about www.a.com");
        prop_assert!(ruling(&call.under(&larger)) >= ruling(&call.under(&fewer)));
    }

    #[test]
    fn any_text_is_rules_or_mistakes_with_a_place(text in "(forbid|permit|[(){};@\"a-z=,:. \n\\\\/]|principal|action|resource|张){0,30}") {
        if let Err(mistakes) = load(&text) {
            prop_assert!(mistakes.iter().all(|it| it.line >= 1 && it.column >= 1));
        }
    }
}
