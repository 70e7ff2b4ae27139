//! One request as a person is shown it: the same card in `show` and in `watch`. The server draws
//! the call; the agent is only quoted.

use chancery_api::permission::{Link, Permission, Reason};
use chancery_runtime::digest::sha256;
use jiff::Timestamp;
use serde_json::Value;

use crate::elapsed::span;
use crate::fields::{Fields, literal};
use crate::output::one_line;
use crate::terminal::Terminal;

/// Head and body.
pub fn card(permission: &Permission, now: Timestamp, terminal: Terminal) -> String {
    let risk = terminal.risk(permission.risk.as_deref());
    let tool = terminal.bold(&one_line(&permission.tool));
    let head = format!("{risk}  {tool}  {}\n", permission.id);
    head + &body(permission, now, terminal, 2)
}

/// Everything but the head.
pub fn body(permission: &Permission, now: Timestamp, terminal: Terminal, indent: usize) -> String {
    let mut fields = Fields::new(terminal, indent);
    fields.field("for", &on_behalf(permission));
    fields.field("run", &permission.run_id);
    fields.field("status", &status(permission, now));
    call(&mut fields, permission, terminal, indent);
    if permission.kind == "recover" {
        let asked = "it had started when the server stopped: whether it took effect is unknown";
        fields.field("outcome", asked);
    }
    payload(&mut fields, &permission.payload);
    if !permission.capabilities.is_empty() {
        fields.field("capable of", &permission.capabilities.join(", "));
    }
    for reason in &permission.reasons {
        fields.field("why asked", &why(reason));
    }
    if !permission.words.trim().is_empty() {
        fields.field("agent says", &format!("“{}”", permission.words.trim_end()));
    }
    for it in &permission.inquiries {
        fields.field("was asked", &format!("by {}: {}", one_line(&it.by), it.text.trim_end()));
        match &it.explanation {
            Some(said) => fields.field("agent says", &format!("“{}”", said.trim_end())),
            None => fields.field("", "no answer has come yet"),
        }
    }
    fields.into_text()
}

/// The call itself, bound by its digest.
fn call(fields: &mut Fields, permission: &Permission, terminal: Terminal, indent: usize) {
    let none = permission.arguments.as_object().is_some_and(serde_json::Map::is_empty);
    fields.field("arguments", if none { "none" } else { "each on a line, in full:" });
    let mut arguments = Fields::new(terminal, indent + 2);
    arguments.arguments(&permission.arguments);
    fields.append(arguments);
    if let Some(edited) = &permission.decided_arguments {
        fields.field("granted as", "edited by whoever decided:");
        let mut arguments = Fields::new(terminal, indent + 2);
        arguments.arguments(edited);
        fields.append(arguments);
    }
    let digest = &permission.arguments_sha256;
    let holds = sha256(&permission.arguments) == *digest;
    let warned = if holds { "" } else { "  DOES NOT FIT THESE ARGUMENTS" };
    fields.field("sha256", &format!("{digest}{warned}"));
}

/// What the gate and the tool said of the call, by kind. What is not known here is shown as it
/// came.
fn payload(fields: &mut Fields, payload: &Value) {
    let Some(payload) = payload.as_object() else { return };
    for (key, value) in payload {
        let text = value.as_str().map_or_else(|| literal(value), str::to_owned);
        match (&**key, value) {
            // The command line says it, and the digest is of the arguments.
            ("argv" | "rememberable" | "bytes_before" | "bytes_after", _) => {}
            ("command_signature", _) => {
                fields.field("signature", &format!("{text}   (what a remembered answer covers)"));
            }
            ("command_info", info) => command_info(fields, info),
            ("paths", Value::Array(paths)) => {
                paths.iter().for_each(|it| fields.field("path", &literal(it)));
            }
            ("diff", _) if text.is_empty() => fields.field("diff", "nothing changes"),
            ("diff", _) => fields.diff("diff", &text),
            ("diff_cut_off", Value::Bool(true)) => {
                fields.field("", "THE DIFFERENCE IS LONGER: the arguments are whole");
            }
            ("diff_cut_off", _) => {}
            ("annotations", Value::Null) => fields.field("hints", "none: assume the worst"),
            ("annotations", _) => fields.field("hints", &format!("{text}   (the server's word)")),
            (key, _) => fields.field(key, &text),
        }
    }
}

fn command_info(fields: &mut Fields, info: &Value) {
    if let Some(why) = info["why"].as_str() {
        fields.field("what it is", why);
    }
    let touches = &info["touches"];
    let changes = if touches["mutating"] == false { "changes nothing" } else { "changes things" };
    let reaches = if touches["network"] == true {
        "may leave this machine"
    } else {
        "is not meant to leave this machine"
    };
    fields.field("touches", &format!("{changes}, {reaches}"));
}

pub fn why(reason: &Reason) -> String {
    let rule = one_line(&reason.rule);
    format!("{} by {} {rule}: {}", reason.outcome, reason.layer, one_line(&reason.detail))
}

/// From the person down to whoever asks.
fn on_behalf(permission: &Permission) -> String {
    let mut names = vec![one_line(&permission.user)];
    names.extend(permission.chain.iter().rev().map(|it| link(it, " > ")));
    if permission.chain.is_empty() {
        names.push(one_line(&permission.agent));
    }
    names.join(" > ")
}

/// From whoever asks up.
pub fn asked_by(permission: &Permission) -> String {
    let names: Vec<String> = permission.chain.iter().map(|it| link(it, " < ")).collect();
    if names.is_empty() { one_line(&permission.agent) } else { names.join(" < ") }
}

fn link(link: &Link, arrow: &str) -> String {
    let agent = one_line(&link.agent);
    match &link.group {
        None => agent,
        Some(group) if arrow == " > " => format!("{}{arrow}{agent}", one_line(group)),
        Some(group) => format!("{agent}{arrow}{}", one_line(group)),
    }
}

/// The tool, with the request's id.
pub fn name(permission: &Permission) -> String {
    format!("{} ({})", one_line(&permission.tool), permission.id)
}

pub fn status(permission: &Permission, now: Timestamp) -> String {
    if permission.status != "pending" {
        return decided(permission, now);
    }
    let since = span(permission.created_at, now);
    match permission.expires_at {
        Some(end) => format!("open for {since}, expires in {}", span(now, end)),
        None => format!("open for {since}, does not expire"),
    }
}

/// What became of it, by whom and when.
pub fn decided(permission: &Permission, now: Timestamp) -> String {
    let by = permission.decided_by.as_deref().map(|it| format!(" by {}", one_line(it)));
    let ago = permission.decided_at.map(|at| format!(" {} ago", span(at, now)));
    let said = permission.comment.as_deref().map(|it| format!(": “{}”", one_line(it)));
    let [by, ago, said] = [by, ago, said].map(Option::unwrap_or_default);
    format!("{}{by}{ago}{said}", permission.status)
}

/// What the agent answered when it was asked last, quoted.
pub fn told(permission: &Permission) -> String {
    let name = one_line(&permission.agent);
    match permission.inquiries.last().and_then(|it| it.explanation.as_deref()) {
        Some(said) => {
            let lines = said.lines().map(|it| format!("  | {}\n", one_line(it)));
            format!("{name} says, in its own words:\n{}", lines.collect::<String>())
        }
        None => format!(
            "{name} has not answered yet: `chancery approval show {}` has it when it does\n",
            permission.id
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub fn permission() -> Permission {
        let arguments = json!({"to": "lin\u{202e}"});
        let reason = json!({"layer": "risk", "rule": "risk.high", "outcome": "require_approval", "detail": "d"});
        let links = json!([
            {"run_id": "run_2", "agent": "dev", "role": "dev", "group": "grp", "user": "lin"},
            {"run_id": "run_1", "agent": "pa", "role": "pa", "group": null, "user": "lin"},
        ]);
        let digest = sha256(&arguments);
        serde_json::from_value(json!({
            "id": "perm_1", "run_id": "run_2", "message_id": "msg_1", "tool_call_id": "c1",
            "tool": "pay", "arguments": arguments, "arguments_sha256": digest, "kind": "command",
            "payload": {"command": "pay lin", "command_signature": "pay"},
            "ruling": "require_approval", "reasons": [reason], "risk": "high",
            "capabilities": ["money"], "chain": links, "agent": "dev", "role": "dev",
            "user": "lin", "words": "it is fine\nstatus      granted", "status": "pending",
            "decided_by": null, "decided_at": null, "comment": null,
            "created_at": "2026-02-01T00:00:00Z", "expires_at": "2026-02-02T00:00:00Z",
            "correlation_key": "cap-approval-1",
        }))
        .unwrap()
    }

    fn shown(permission: &Permission) -> String {
        card(permission, "2026-02-01T00:01:12Z".parse().unwrap(), Terminal::PLAIN)
    }

    #[test]
    fn a_card_says_everything_and_quotes_the_agent() {
        let said = shown(&permission());
        for part in [
            "HIGH  pay  perm_1\n",
            "  for           lin > pa > grp > dev\n",
            "  status        open for 1m 12s, expires in 23h 58m\n",
            "    to  \"lin\\u{202e}\"\n",
            "  command       pay lin\n",
            "  signature     pay   (",
            "  capable of    money\n",
            "  why asked     require_approval by risk risk.high: d\n",
            "  agent says\n    │ “it is fine\n    │ status      granted”\n",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert!(!said.contains("DOES NOT FIT"), "{said}");
        assert_eq!(asked_by(&permission()), "dev < grp < pa");
    }

    #[test]
    fn arguments_that_the_digest_is_not_of_are_noticed() {
        let mut forged = permission();
        forged.arguments = json!({"to": "mallory"});
        assert!(shown(&forged).contains("DOES NOT FIT"));
    }
}
