//! What a line means, given what was asked. Pure, so that it can be tried on every line: nothing
//! is decided by an empty one, nor by half a word.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// What to do.
    Key,
    /// The word that approves what is HIGH.
    Word,
    /// Why; the decision is `grant` or `deny`.
    Reason(&'static str),
    /// What the agent is to be asked.
    Inquiry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Ask(Asking),
    /// Nothing was decided; says why, and asks what to do.
    Again(String),
    Decide {
        decision: &'static str,
        comment: Option<String>,
    },
    Edit,
    /// Asks the agent; decides nothing.
    Inquire(String),
    Why,
    Skip,
    Quit,
}

pub fn question(asking: Asking, recovers: bool) -> String {
    match asking {
        Asking::Key if recovers => {
            "(a) run it again  (d) give it up  (r) ask the agent  (w)hy  (s)kip  (q)uit  >"
        }
        Asking::Key => "(a)pprove  (d)eny  (e)dit  (r) ask the agent  (w)hy  (s)kip  (q)uit  >",
        Asking::Word => "HIGH: type the word approve to approve it >",
        Asking::Reason(_) => "reason >",
        Asking::Inquiry => "ask the agent >",
    }
    .to_owned()
}

pub fn step(asking: Asking, line: &str, high: bool) -> Step {
    let line = line.trim();
    match asking {
        Asking::Key => key(line, high),
        Asking::Word if line == "approve" => Step::Ask(Asking::Reason("grant")),
        Asking::Word => Step::Again("Not approved: that was not the word.".to_owned()),
        Asking::Reason(_) if line.is_empty() => {
            Step::Again("Nothing was decided: it needs a reason.".to_owned())
        }
        Asking::Reason(decision) => Step::Decide { decision, comment: Some(line.to_owned()) },
        Asking::Inquiry if line.is_empty() => Step::Again("Nothing was asked.".to_owned()),
        Asking::Inquiry => Step::Inquire(line.to_owned()),
    }
}

fn key(line: &str, high: bool) -> Step {
    match line {
        "a" if high => Step::Ask(Asking::Word),
        "a" => Step::Decide { decision: "grant", comment: None },
        "d" => Step::Ask(Asking::Reason("deny")),
        "e" => Step::Edit,
        "r" => Step::Ask(Asking::Inquiry),
        "w" => Step::Why,
        "s" => Step::Skip,
        "q" => Step::Quit,
        "" => Step::Again("Type a letter, then Enter.".to_owned()),
        other => Step::Again(format!("`{}` is none of these.", crate::output::one_line(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_decides() {
        let lines = ["", " ", "y", "yes", "ok", "A", "aa", "approve", "1", "\u{1b}[A", "grant"];
        for high in [false, true] {
            for line in lines {
                let step = step(Asking::Key, line, high);
                assert!(matches!(step, Step::Again(_)), "{line:?}: {step:?}");
            }
        }
        assert_eq!(
            step(Asking::Key, "a\r", false),
            Step::Decide { decision: "grant", comment: None }
        );
    }

    #[test]
    fn high_takes_the_word_and_a_reason() {
        assert_eq!(step(Asking::Key, "a", true), Step::Ask(Asking::Word));
        for word in ["a", "", "y", "Approve", "approved"] {
            assert!(matches!(step(Asking::Word, word, true), Step::Again(_)), "{word}");
        }
        assert_eq!(step(Asking::Word, "approve", true), Step::Ask(Asking::Reason("grant")));
        assert!(matches!(step(Asking::Reason("grant"), " ", true), Step::Again(_)));
        let comment = Some("canary first".to_owned());
        let decided = Step::Decide { decision: "grant", comment };
        assert_eq!(step(Asking::Reason("grant"), "canary first", true), decided);
    }

    #[test]
    fn what_the_agent_is_asked_decides_nothing() {
        assert_eq!(step(Asking::Key, "r", true), Step::Ask(Asking::Inquiry));
        assert!(matches!(step(Asking::Inquiry, " ", true), Step::Again(_)));
        for text in ["approve", "a", "yes", "why so much?"] {
            assert_eq!(step(Asking::Inquiry, text, false), Step::Inquire(text.to_owned()));
        }
    }

    #[test]
    fn a_denial_takes_a_reason() {
        assert_eq!(step(Asking::Key, "d", false), Step::Ask(Asking::Reason("deny")));
        assert!(matches!(step(Asking::Reason("deny"), "", false), Step::Again(_)));
    }
}
