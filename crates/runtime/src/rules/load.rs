//! From files of rules to [`Rules`], or to the list of all that is wrong with them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cedar_policy::{PolicyId, PolicySet, Schema, ValidationMode, ValidationWarning, Validator};
use serde_json::Value;

use super::draft::{Draft, Mistake, draft, offset};
use super::schema::{self, Catalogue};
use super::shape::Fields;
use super::{Governed, Rules, source};

pub(super) fn load<'a>(
    files: &[(String, String)],
    tools: impl Iterator<Item = (&'a str, &'a Value)>,
    awaited: &[&str],
) -> Result<Rules, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let mut drafts = Vec::new();
    for (file, text) in files {
        for piece in source::pieces(text) {
            drafts.extend(draft(file, text, piece, &mut mistakes));
        }
    }
    if drafts.is_empty() && mistakes.is_empty() {
        return Ok(Rules::default());
    }
    twice(&drafts, &mut mistakes);
    let tools: Catalogue =
        tools.map(|(name, parameters)| (name.to_owned(), Fields::of(parameters))).collect();
    let (waiting, drafts): (Vec<_>, Vec<_>) =
        drafts.into_iter().partition(|draft| draft.waits(&tools, awaited));
    match schema::schema(&tools) {
        Ok(schema) => validate(schema, &drafts, &tools, &mut mistakes),
        Err(error) => mistakes.push(Mistake {
            file: files.first().map(|it| it.0.clone()).unwrap_or_default(),
            line: 1,
            column: 1,
            detail: format!("the tools' schemas do not make a schema for rules: {error}"),
            hint: None,
        }),
    }
    let rules = assemble(drafts, &waiting, &tools, &mut mistakes);
    if mistakes.is_empty() {
        return Ok(rules);
    }
    mistakes.sort();
    mistakes.dedup();
    Err(mistakes)
}

fn twice(drafts: &[Draft<'_>], mistakes: &mut Vec<Mistake>) {
    let mut seen: HashMap<&str, &Draft<'_>> = HashMap::new();
    for draft in drafts {
        let Some(id) = draft.rule.policy.annotation("id") else { continue };
        match seen.get(id) {
            Some(first) => {
                let hint = format!("the other one is `{}`", first.rule.label);
                let detail = format!("two rules have the id `{id}`");
                mistakes.push(draft.mistake(draft.annotated("id"), detail, Some(hint)));
            }
            None => drop(seen.insert(id, draft)),
        }
    }
}

/// Checks all rules against the schema at once.
fn validate(schema: Schema, drafts: &[Draft<'_>], tools: &Catalogue, mistakes: &mut Vec<Mistake>) {
    let mut set = PolicySet::new();
    for (place, draft) in drafts.iter().enumerate() {
        let policy = draft.rule.policy.new_id(PolicyId::new(place.to_string()));
        if let Err(error) = set.add(policy) {
            mistakes.push(draft.mistake(draft.piece.start, error.to_string(), None));
        }
    }
    let draft =
        |id: &PolicyId| AsRef::<str>::as_ref(id).parse().ok().and_then(|it: usize| drafts.get(it));
    let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
    // A place that is wrong for many tools is one mistake.
    let mut wrong: BTreeMap<String, Vec<Option<usize>>> = BTreeMap::new();
    for error in result.validation_errors() {
        let id = error.policy_id();
        let Some(draft) = draft(id) else { continue };
        let places = wrong.entry(id.to_string()).or_default();
        let place = offset(error);
        if !places.contains(&place) {
            places.push(place);
            mistakes.push(draft.invalid(error));
        }
    }
    for warning in result.validation_warnings() {
        let id = warning.policy_id();
        let Some(draft) = draft(id) else { continue };
        match warning {
            ValidationWarning::ImpossiblePolicy(_)
            | ValidationWarning::InvalidActionApplication(_)
            | ValidationWarning::BidiCharsInString(_)
            | ValidationWarning::BidiCharsInIdentifier(_)
                if !wrong.contains_key(&id.to_string()) =>
            {
                mistakes.push(draft.invalid(warning));
            }
            // Chinese beside Latin is no cause for alarm.
            _ => {}
        }
    }
    for draft in drafts {
        for path in &draft.rule.reads.asked {
            let heard_of = draft.tools(tools).into_iter().any(|(_, it)| schema::has(it, path));
            if !heard_of {
                let detail = format!("no tool of this rule has `context.{}`", path.join("."));
                mistakes.push(draft.mistake(draft.piece.start, detail, None));
            }
        }
    }
}

/// Puts every rule to its tools and plays its examples.
fn assemble(
    drafts: Vec<Draft<'_>>,
    waiting: &[Draft<'_>],
    tools: &Catalogue,
    mistakes: &mut Vec<Mistake>,
) -> Rules {
    let mut governed: BTreeMap<String, Governed> = tools
        .iter()
        .map(|(tool, fields)| {
            let group = schema::group(tool).filter(|it| !tools.contains_key(*it));
            (tool.clone(), Governed::new(tool, group, Arc::new(fields.clone())))
        })
        .collect();
    let count = drafts.len() + waiting.len();
    let flawed: Vec<(String, usize)> =
        mistakes.iter().map(|it| (it.file.clone(), it.line)).collect();
    for draft in drafts {
        let on: Vec<String> = draft.tools(tools).into_iter().map(|it| it.0.to_owned()).collect();
        let (file, piece, text) = (draft.file, draft.piece, draft.text);
        let lines = source::place(text, piece.start).0
            ..=source::place(text, piece.offset + piece.text.len()).0;
        let rule = Arc::new(draft.rule);
        if !flawed.iter().any(|(at, line)| at == file && lines.contains(line)) {
            let names: Vec<&str> = on.iter().map(String::as_str).collect();
            for (name, expected, example) in &draft.examples {
                if let Err(why) = example.check(*expected, &rule, &names, tools) {
                    let at = source::annotation(piece.text, name).unwrap_or(0) + piece.offset;
                    let detail = format!("the example `@{name}` fails: {why}");
                    mistakes.push(Mistake::at(file, text, at, detail, None));
                }
            }
        }
        for tool in &on {
            if let Some(Err(why)) = governed.get_mut(tool).map(|it| it.add(rule.clone())) {
                mistakes.push(Mistake::at(file, text, piece.start, why, None));
            }
        }
    }
    for draft in waiting {
        for (tool, _) in draft.tools(tools) {
            if let Some(governed) = governed.get_mut(tool) {
                governed.waiting.push(draft.rule.label.clone());
            }
        }
    }
    let waiting = waiting.iter().map(|it| it.rule.label.clone()).collect();
    Rules { tools: governed, count, waiting }
}
