//! Every layer in its order, also where a record names only those that objected: what each of
//! them said, and whether it was asked at all.

use super::{Layer, Reason, Ruling};

/// What became of one layer, or of one step of a mail's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// A layer's name, or a step's.
    pub at: &'static str,
    pub said: Said,
    pub rule: String,
    pub detail: String,
    /// Whether it is the one that decided.
    pub decides: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It had nothing against it.
    Passes,
    Objects(Ruling),
    /// It was not asked.
    NotLookedAt,
}

/// How a call was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Nobody gave any arguments: the layer over them was not asked.
    pub arguments_aside: bool,
    /// How often the tool is called was left for later.
    pub rates_aside: bool,
}

impl Said {
    pub fn as_str(self) -> &'static str {
        match self {
            Said::Passes => "pass",
            Said::Objects(_) => "objects",
            Said::NotLookedAt => "not_looked_at",
        }
    }
}

/// All layers, from the reasons that are kept of a ruling: the deciding one first, as
/// [`super::Verdict::reasons`] has them. A ruling asks every layer, so one that is not named had
/// nothing against the call, unless there was nothing to ask it about.
pub fn looked_at(reasons: &[Reason], manner: Manner) -> Vec<Looked> {
    let decides = reasons.first().filter(|it| it.outcome > Ruling::Allow);
    let mut all = Vec::new();
    for layer in Layer::ALL {
        let of: Vec<&Reason> = reasons.iter().filter(|it| it.layer == layer.as_str()).collect();
        // A table has a line without a rule for a layer that said nothing.
        let spoke: Vec<&Reason> = of.into_iter().filter(|it| !it.rule.is_empty()).collect();
        if spoke.is_empty() {
            all.push(silent(layer, reasons, manner));
        }
        all.extend(spoke.into_iter().map(|it| Looked {
            at: layer.as_str(),
            said: if it.outcome > Ruling::Allow { Said::Objects(it.outcome) } else { Said::Passes },
            rule: it.rule.clone(),
            detail: it.detail.clone(),
            decides: decides == Some(it),
        }));
    }
    all
}

fn silent(layer: Layer, reasons: &[Reason], manner: Manner) -> Looked {
    let denied = |by: Layer, rule: &str| {
        let by = |it: &Reason| it.layer == by.as_str() && it.outcome == Ruling::Deny;
        reasons.iter().any(|it| by(it) && (rule.is_empty() || it.rule == rule))
    };
    let stranger = denied(Layer::Identity, "agents");
    let detail = match layer {
        Layer::Role if stranger => Err("an agent that is not there has no role"),
        Layer::Risk | Layer::Capability if denied(Layer::Tool, "UNKNOWN_TOOL") => {
            Err("nothing is known of a tool that is not there")
        }
        Layer::Arguments if manner.arguments_aside => Err("the arguments were left aside"),
        Layer::Arguments if denied(Layer::Tool, "") => {
            Err("only arguments that fit the tool are looked at")
        }
        Layer::Arguments if stranger => Err("an agent that is not there has no role"),
        Layer::Limits if manner.rates_aside => {
            Ok("budgets had nothing against it; how often it is called is counted as it runs")
        }
        _ => Ok("had nothing against it"),
    };
    let (said, detail) = match detail {
        Ok(detail) => (Said::Passes, detail),
        Err(detail) => (Said::NotLookedAt, detail),
    };
    let (rule, detail) = (String::new(), detail.to_owned());
    Looked { at: layer.as_str(), said, rule, detail, decides: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Manner = Manner { arguments_aside: false, rates_aside: false };

    fn reason(layer: Layer, rule: &str, outcome: Ruling) -> Reason {
        let (layer, rule) = (layer.as_str().to_owned(), rule.to_owned());
        Reason { layer, rule, outcome, detail: "d".to_owned() }
    }

    fn said(reasons: &[Reason], manner: Manner) -> Vec<(&'static str, &'static str, bool)> {
        looked_at(reasons, manner).iter().map(|it| (it.at, it.said.as_str(), it.decides)).collect()
    }

    #[test]
    fn what_a_record_does_not_name_had_nothing_against_it() {
        let reasons = [
            reason(Layer::Role, "qa.tools (roles.yaml:9)", Ruling::Deny),
            reason(Layer::Capability, "capabilities.a", Ruling::RequireHuman),
            reason(Layer::Capability, "tools.b", Ruling::Allow),
        ];
        assert_eq!(
            said(&reasons, WHOLE),
            [
                ("identity", "pass", false),
                ("tool", "pass", false),
                ("delegation", "pass", false),
                ("role", "objects", true),
                ("risk", "pass", false),
                ("capability", "objects", false),
                ("capability", "pass", false),
                ("arguments", "pass", false),
                ("limits", "pass", false),
            ]
        );
    }

    #[test]
    fn a_layer_that_had_nothing_to_look_at_is_not_said_to_have_passed_it() {
        let aside = |reasons: &[Reason], manner| -> Vec<&'static str> {
            let all = looked_at(reasons, manner).into_iter();
            all.filter(|it| it.said == Said::NotLookedAt).map(|it| it.at).collect()
        };
        let unfit = [reason(Layer::Tool, "INVALID_ARGUMENTS", Ruling::Deny)];
        assert_eq!(aside(&unfit, WHOLE), ["arguments"]);
        let unknown = [reason(Layer::Tool, "UNKNOWN_TOOL", Ruling::Deny)];
        assert_eq!(aside(&unknown, WHOLE), ["risk", "capability", "arguments"]);
        let nobody = [reason(Layer::Identity, "agents", Ruling::Deny)];
        assert_eq!(aside(&nobody, WHOLE), ["role", "arguments"]);
        let gone = [reason(Layer::Identity, "agents (roles.yaml:3)", Ruling::Deny)];
        assert_eq!(aside(&gone, WHOLE), [""; 0]);
        let manner = Manner { arguments_aside: true, rates_aside: true };
        assert_eq!(aside(&[], manner), ["arguments"]);
    }
}
