//! One rule on its way in: its text, what its annotations say, and what is wrong with them.

use cedar_policy::{ActionConstraint, Effect, EntityUid, Policy};
use chancery_domain::policy::Ruling;
use miette::Diagnostic;

use super::Rule;
use super::engine::Condition;
use super::example::{self, Example, Expected};
use super::reads::Reads;
use super::schema::{self, Catalogue};
use super::shape::Fields;
use super::source::{self, Piece};

/// What is wrong with a file of rules, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{file}:{line}:{column}: {detail}{}", .hint.as_ref().map(|it| format!(" ({it})")).unwrap_or_default())]
pub struct Mistake {
    pub file: String,
    /// From one.
    pub line: usize,
    /// From one, in characters.
    pub column: usize,
    pub detail: String,
    pub hint: Option<String>,
}

/// A rule on its way in.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub file: &'a str,
    pub text: &'a str,
    pub piece: Piece<'a>,
    pub rule: Rule,
    pub on: On,
    pub examples: Vec<(String, Expected, Example)>,
}

/// The tools that a rule is on.
#[derive(Debug)]
pub(super) enum On {
    All,
    Named(Vec<String>),
}

/// Reads one rule with its annotations. What is wrong with them does not hide what is wrong with
/// the rule.
pub(super) fn draft<'a>(
    file: &'a str,
    text: &'a str,
    piece: Piece<'a>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Draft<'a>> {
    let policy = match Policy::parse(None, piece.text) {
        Ok(policy) => policy,
        Err(errors) => {
            for error in errors.iter() {
                let at = piece.offset + offset(error).unwrap_or(piece.start - piece.offset);
                mistakes.push(Mistake::at(file, text, at, error.to_string(), help(error)));
            }
            return None;
        }
    };
    let mut mistake = |at: Option<usize>, detail: &str, hint: Option<&str>| {
        let at = at.map_or(piece.start, |it| piece.offset + it);
        let hint = hint.map(str::to_owned);
        mistakes.push(Mistake::at(file, text, at, detail.to_owned(), hint));
    };
    let annotated = |name: &str| source::annotation(piece.text, name);
    if policy.effect() == Effect::Permit {
        let hint = "a rule can only tighten: write `forbid`, with what is allowed in `unless`";
        mistake(None, "`permit` permits nothing here", Some(hint));
    }
    let mut examples = Vec::new();
    for (name, value) in policy.annotations() {
        match (name, example::expected(name)) {
            ("id" | "ask" | "deny", _) => {}
            (_, Some(expected)) => match Example::read(value) {
                Ok(example) => examples.push((name.to_owned(), expected, example)),
                Err(error) => {
                    let hint = "an example is YAML: `input`, `words`, `contacts`, `time`, `tool`, \
                                `capabilities`, `agent`, `role`, `user`";
                    let detail = format!("`@{name}` cannot be read: {error}");
                    mistake(annotated(name), &detail, Some(hint));
                }
            },
            (_, None) => {
                let hint = "there are `@id`, `@ask`, `@deny`, `@matches` and `@matches_not`";
                mistake(annotated(name), &format!("`@{name}` means nothing"), Some(hint));
            }
        }
    }
    let id = policy.annotation("id");
    let nameless =
        |id: &str| id.trim().is_empty() || id.len() > 100 || id.chars().any(char::is_control);
    if id.is_some_and(nameless) {
        mistake(annotated("id"), "`@id` is a name of 1 to 100 characters, on one line", None);
    }
    let line = source::place(text, piece.start).0;
    let label = match id {
        Some(id) => format!("{id} ({file}:{line})"),
        None => format!("{file}:{line}"),
    };
    let (ask, deny) = (policy.annotation("ask"), policy.annotation("deny"));
    if ask.is_some() && deny.is_some() {
        mistake(annotated("deny"), "a rule asks or denies, not both", None);
    }
    let (outcome, why) = match ask {
        Some(ask) => asks(ask),
        None => (Ruling::Deny, deny.unwrap_or_default().trim()),
    };
    let detail = match (why, outcome) {
        ("", Ruling::Deny) => format!("the rule `{label}` forbids it"),
        ("", _) => format!("the rule `{label}` wants it asked"),
        (why, _) => why.to_owned(),
    };
    let reads = match policy.to_pst() {
        Ok(tree) => Reads::of(tree.body()),
        Err(error) => {
            mistake(None, &error.to_string(), None);
            return None;
        }
    };
    let on = on(&policy);
    let rule = Rule { label, outcome, detail, condition: Condition::of(policy), reads };
    Some(Draft { file, text, piece, rule, on, examples })
}

/// `human`, `human: why` or `why`.
fn asks(text: &str) -> (Ruling, &str) {
    let text = text.trim();
    match text.strip_prefix("human").map(str::trim_start) {
        Some("") => (Ruling::RequireHuman, ""),
        Some(rest) if rest.starts_with([':', '：']) => {
            (Ruling::RequireHuman, rest.trim_start_matches([':', '：']).trim())
        }
        _ => (Ruling::RequireApproval, text),
    }
}

fn on(policy: &Policy) -> On {
    // Another type is no action, which the validator says.
    let name = |it: &EntityUid| it.id().unescaped().to_owned();
    match policy.action_constraint() {
        ActionConstraint::Any => On::All,
        ActionConstraint::Eq(one) => On::Named(vec![name(&one)]),
        ActionConstraint::In(many) => On::Named(many.iter().map(name).collect()),
    }
}

impl Draft<'_> {
    /// The tools that the rule is on, of those that are there.
    pub fn tools<'t>(&self, tools: &'t Catalogue) -> Vec<(&'t str, &'t Fields)> {
        let is_on = |tool: &str| match &self.on {
            On::All => true,
            On::Named(names) => names.iter().any(|name| {
                let group = schema::group(tool).filter(|it| !tools.contains_key(*it));
                name == tool || group == Some(name)
            }),
        };
        tools.iter().filter(|it| is_on(it.0)).map(|(name, it)| (&**name, it)).collect()
    }

    pub fn waits(&self, tools: &Catalogue, awaited: &[&str]) -> bool {
        let On::Named(names) = &self.on else { return false };
        names.iter().any(|name| {
            let there = tools.keys().any(|it| it == name || schema::group(it) == Some(name));
            let group = format!("{name}__");
            !there && awaited.iter().any(|it| name.starts_with(it) || group == **it)
        })
    }

    pub fn annotated(&self, name: &str) -> usize {
        let at = source::annotation(self.piece.text, name);
        at.map_or(self.piece.start, |it| self.piece.offset + it)
    }

    pub fn mistake(&self, at: usize, detail: String, hint: Option<String>) -> Mistake {
        Mistake::at(self.file, self.text, at, detail, hint)
    }

    pub fn invalid(&self, error: &(impl Diagnostic + std::fmt::Display)) -> Mistake {
        let at = offset(error).map_or(self.piece.start, |it| self.piece.offset + it);
        let detail = without_policy(&error.to_string());
        let wide = matches!(self.on, On::All) && detail.contains("`input.");
        let hint = if wide {
            let hint = "a rule that names no action is on every tool: name the tools that it is \
                        for, or ask with `has` first";
            Some(hint.to_owned())
        } else {
            help(error).map(|it| without_policy(&it))
        };
        self.mistake(at, detail, hint)
    }
}

/// Cedar names a rule by a number that an operator has never seen.
fn without_policy(text: &str) -> String {
    match text.strip_prefix("for policy `").and_then(|it| it.split_once("`, ")) {
        Some((_, rest)) => rest.to_owned(),
        None => text.to_owned(),
    }
}

impl Mistake {
    pub(super) fn at(
        file: &str,
        text: &str,
        at: usize,
        detail: String,
        hint: Option<String>,
    ) -> Mistake {
        let (line, column) = source::place(text, at);
        Mistake { file: file.to_owned(), line, column, detail, hint }
    }
}

pub(super) fn offset(error: &impl Diagnostic) -> Option<usize> {
    error.labels()?.next().map(|it| it.offset())
}

fn help(error: &impl Diagnostic) -> Option<String> {
    error.help().map(|it| it.to_string())
}
