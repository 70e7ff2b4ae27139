//! One rule for every tool, also for those that nobody has written a rule for.

use super::*;

const NAMED: &str = r#"
@id("named")
@ask("it acts on something that you did not name")
@matches("{tool: send_message, input: {recipient: Eve, body: Hi}, words: tell Alice}")
@matches_not("{tool: send_message, input: {recipient: Alice, body: Hi}, words: tell Alice}")
@matches_not_reading("{tool: send_message, input: {recipient: Eve, body: Hi}, capabilities: [read]}")
forbid (principal, action, resource)
unless {
    context.capabilities.contains("read") ||
    (["subject", "body"].containsAll(context.unnamed) &&
     !(["subject", "body"].containsAll(context.named)))
};
"#;

#[test]
fn what_the_person_named_is_acted_on_with_any_tool() {
    call(
        "share_file",
        json!({"file_id": "plan.md", "email": "bob@corp.com", "permission": "rw"}),
        "share plan.md with bob@corp.com, rw",
    )
    .check(NAMED, Ruling::Allow);
    call(
        "transfer",
        json!({"to": "GB29NWBK60161331926819", "amount": 500.0}),
        "付500元到GB29 NWBK 6016 1331 9268 19",
    )
    .check(NAMED, Ruling::Allow);
    mail("bob@corp.com", "write to bob@corp.com").check(NAMED, Ruling::Allow);
}

#[test]
fn what_they_did_not_name_is_asked_about_with_any_tool() {
    for (tool, arguments, words) in [
        (
            "share_file",
            json!({"file_id": "13", "email": "bob@corp.com", "permission": "r"}),
            "what is bob@corp.com doing on June 13?",
        ),
        (
            "transfer",
            json!({"to": "GB29NWBK60161331926819", "amount": 501.0}),
            "付500元到GB29 NWBK 6016 1331 9268 19",
        ),
        ("transfer", json!({"lines": [{"account": "Eve"}]}), "pay Alice"),
        // An argument that no schema knows is an argument all the same.
        (
            "send_message",
            json!({"recipient": "Alice", "body": "Hi", "bcc": "eve@evil.com"}),
            "tell Alice",
        ),
    ] {
        call(tool, arguments, words).check(NAMED, Ruling::RequireApproval);
    }
}

#[test]
fn a_call_without_a_target_is_asked_about() {
    let nobody = json!({"recipients": [], "subject": "you", "body": "write"});
    call("send_email", nobody, "write you").check(NAMED, Ruling::RequireApproval);
    call("now", json!({}), "do it now").check(NAMED, Ruling::RequireApproval);
}

#[test]
fn too_much_to_look_for_is_denied() {
    let many: Vec<String> = (0..20_000).map(|it| it.to_string()).collect();
    call("send_email", json!({"recipients": many, "subject": "", "body": ""}), "write to Bob")
        .check(NAMED, Ruling::Deny);
}
