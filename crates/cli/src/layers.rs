//! A ruling as people read it: every layer's word, and what would let the call through.

use chancery_api::permission::Reason;

use crate::output::one_line;
use crate::terminal::Terminal;

/// In one word, for people.
pub fn word(ruling: &str) -> &'static str {
    match ruling {
        "allow" => "yes",
        "require_approval" | "require_human" => "ask",
        _ => "no",
    }
}

/// Who said what, by which rule.
pub fn sentence(reason: &Reason) -> String {
    format!("{} by {}: {}", reason.outcome, source(reason), reason.detail)
}

/// The layer with its rule and the rule's place.
fn source(reason: &Reason) -> String {
    match &*reason.rule {
        "" => reason.layer.clone(),
        rule => format!("{} `{rule}`", reason.layer),
    }
}

/// All layers in their order, the ones that stand in the way marked.
pub fn table(layers: &[Reason], terminal: Terminal) -> String {
    let rules = layers.iter().map(|it| one_line(&it.rule).chars().count());
    let width = rules.max().unwrap_or(0).clamp(4, 44);
    let mut text = String::new();
    let (mut number, mut before) = (0, "");
    for reason in layers {
        // A layer may have said several things.
        let again = std::mem::replace(&mut before, &reason.layer) == reason.layer;
        number += usize::from(!again);
        let place = if again { String::new() } else { number.to_string() };
        let said = match (&*reason.outcome, &*reason.rule) {
            ("allow", "") => "-",
            ("allow", _) => "pass",
            ("require_approval", _) => "ask",
            ("require_human", _) => "person",
            _ => "FAIL",
        };
        let (rule, layer) = (one_line(&reason.rule), one_line(&reason.layer));
        let line = format!(
            "  {place:>1} {layer:<11} {said:<7} {rule:<width$}  {}",
            one_line(&reason.detail)
        );
        let line = line.trim_end();
        let stands = !matches!(said, "-" | "pass");
        text.push_str(&if stands { terminal.bold(line) } else { line.to_owned() });
        text.push('\n');
    }
    text
}

/// What would have to be otherwise. Every layer that objects is named: all of them have to give
/// way, so that nobody mends one only to meet the next.
pub fn ways(
    tool: &str,
    reasons: &[Reason],
    permission: Option<&str>,
) -> Vec<(&'static str, String)> {
    let denies: Vec<&Reason> = reasons.iter().filter(|it| it.outcome == "deny").collect();
    if denies.is_empty() {
        let human = reasons.iter().any(|it| it.outcome == "require_human");
        let who = if human { "a person approves it, each time" } else { "someone approves it" };
        return match (reasons.iter().any(|it| it.outcome != "allow"), permission) {
            (true, Some(id)) => vec![("now", format!("{who}: chancery approval show {id}"))],
            (true, None) => vec![("when asked", who.to_owned())],
            (false, _) => Vec::new(),
        };
    }
    let mut ways: Vec<(&'static str, String)> = Vec::new();
    for reason in denies {
        let way = way(tool, reason);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    if reasons.iter().any(|it| it.outcome.starts_with("require")) {
        ways.push(("then", "someone approves it".to_owned()));
    }
    ways
}

fn way(tool: &str, reason: &Reason) -> (&'static str, String) {
    let rule = &reason.rule;
    match (&*reason.layer, &**rule) {
        ("tool", "INVALID_ARGUMENTS") => ("now", format!("other arguments: {}", reason.detail)),
        ("tool", _) => ("operator", format!("a tool `{tool}` in tools.yaml, or another tool")),
        ("identity", _) => ("org change", format!("{}: add or activate it", reason.detail)),
        // What a run was given is fixed when it starts; what binds its person is written down.
        ("delegation", rule) if rule.contains('(') || rule.contains('.') => {
            ("org change", format!("`{tool}` among what the person may use: {rule}"))
        }
        ("delegation", rule) => {
            ("new run", format!("one that is given `{tool}`; {rule} is fixed when a run starts"))
        }
        ("role", rule) if rule.contains("deny_tools") => {
            ("org change", format!("take what matches `{tool}` out of {rule}"))
        }
        ("role", rule) => (
            "org change",
            format!("add `{tool}` to {rule}, or let an agent do it whose role has it"),
        ),
        ("arguments", rule) => ("now", format!("other arguments, within {rule}")),
        ("limits", rule) => ("later", format!("when {rule} has room again")),
        (_, rule) => ("org change", format!("another word than `deny` in {rule}")),
    }
}

/// The explanation's last part.
pub fn ways_text(ways: &[(&str, String)]) -> String {
    if ways.is_empty() {
        return String::new();
    }
    let mut text = "What would let it through\n".to_owned();
    for (when, what) in ways {
        text.push_str(&format!("  {when:<11} {}\n", one_line(what)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(layer: &str, rule: &str, outcome: &str) -> Reason {
        let [layer, rule, outcome] = [layer, rule, outcome].map(str::to_owned);
        Reason { layer, rule, outcome, detail: "d\n".to_owned() }
    }

    #[test]
    fn every_layer_that_objects_is_a_thing_to_change() {
        let reasons = [
            reason("role", "qa.tools (roles.yaml:9:3)", "deny"),
            reason("delegation", "allowed_tools", "deny"),
            reason("risk", "risk.high", "require_approval"),
            reason("identity", "agents", "allow"),
        ];
        let ways = ways("pay", &reasons, None);
        let when: Vec<&str> = ways.iter().map(|it| it.0).collect();
        assert_eq!(when, ["org change", "new run", "then"]);
        assert!(ways[0].1.contains("qa.tools (roles.yaml:9:3)"));
    }

    #[test]
    fn what_is_asked_is_let_through_by_an_answer() {
        let human = [reason("capability", "c", "require_human")];
        assert_eq!(ways("pay", &human, Some("perm_1"))[0].0, "now");
        assert_eq!(ways("pay", &human, None)[0].0, "when asked");
        assert_eq!(ways("pay", &[reason("role", "r", "allow")], None), []);
    }

    #[test]
    fn a_layer_has_one_number_and_one_line_each_time_it_speaks() {
        let layers = [
            reason("risk", "", "allow"),
            reason("capability", "capabilities.a", "allow"),
            reason("capability", "capabilities.b", "deny"),
        ];
        let lines = table(&layers, Terminal::PLAIN);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("  1 risk        -  "), "{lines:?}");
        assert!(lines[1].starts_with("  2 capability  pass  "), "{lines:?}");
        assert!(lines[2].starts_with("    capability  FAIL  "), "{lines:?}");
    }
}
