//! A ruling as people read it: every layer's word, and what would let the call through.

use chancery_api::audit::RuledNow;
use chancery_api::permission::{Looked, Reason, Way};

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

/// What a record says of every layer, or of every step of a mail.
pub fn looked(all: &[Looked], terminal: Terminal) -> String {
    let reasons: Vec<Reason> = all
        .iter()
        .map(|it| Reason {
            layer: it.layer.clone(),
            // A dash is for what said nothing because it was not asked.
            rule: match (&*it.said, &*it.rule) {
                ("not_looked_at", _) => String::new(),
                (_, "") => "-".to_owned(),
                (_, rule) => rule.to_owned(),
            },
            outcome: it.outcome.clone().unwrap_or_else(|| "allow".to_owned()),
            detail: it.detail.clone(),
        })
        .collect();
    table(&reasons, terminal)
}

/// What the rules in force say of the same, in full where it is not what was said then.
pub fn now(now: Option<&RuledNow>, then: Option<&str>, terminal: Terminal) -> String {
    let Some(now) = now else { return String::new() };
    let mut text = format!("By the rules in force (v{}): {}\n", now.version, now.ruling);
    if then != Some(&now.ruling) {
        text.push_str(&looked(&now.layers, terminal));
    }
    text
}

/// The explanation's last part; `open` is a question that is asked and not answered.
pub fn ways(ways: &[Way], open: Option<&str>) -> String {
    if ways.is_empty() {
        return String::new();
    }
    let mut text = "What would let it through\n".to_owned();
    for way in ways {
        let takes = match (&*way.kind, open) {
            ("person", Some(_)) => "now",
            ("run", _) => "new run",
            ("organisation", _) => "org change",
            (kind, _) => kind,
        };
        let who = match way.who.is_empty() {
            true => String::new(),
            false => format!(" (by {})", way.who.join(", or by ")),
        };
        let more = match (&*way.kind, open) {
            ("person", Some(id)) => format!(": chancery approval show {id}"),
            _ if way.rule.is_empty() => String::new(),
            _ => format!(" {}", way.rule),
        };
        text.push_str(&format!(
            "  {takes:<11} {}\n",
            one_line(&format!("{}{more}{who}", way.text))
        ));
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
    fn what_is_asked_is_let_through_by_an_answer() {
        let way = |kind: &str, text: &str, rule: &str| {
            let [kind, text, rule] = [kind, text, rule].map(str::to_owned);
            Way { kind, text, rule, who: Vec::new() }
        };
        let who = ["an operator", "agent `hr`, with a contract of `ceo`"].map(str::to_owned);
        let change = way("organisation", "add `pay` to", "qa.tools (roles.yaml:9)");
        let all = [way("person", "someone approves it", ""), Way { who: who.to_vec(), ..change }];
        let told = "What would let it through\n  person      someone approves it\n  \
                    org change  add `pay` to qa.tools (roles.yaml:9) (by an operator, or by agent \
                    `hr`, with a contract of `ceo`)\n";
        assert_eq!(ways(&all, None), told);
        let open = "What would let it through\n  \
                    now         someone approves it: chancery approval show perm_1\n";
        assert_eq!(ways(&all[..1], Some("perm_1")), open);
        assert_eq!(ways(&[], Some("perm_1")), "");
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
