//! Cedar's values and its evaluator, without the ways around. Its public door takes each value
//! through an expression and puts each rule together anew, which costs more than all the rules on
//! a call; so this file, and no other, knows the crate beneath it.

use std::sync::Arc;

use cedar_policy::{Context, Entities, Policy, Request, RestrictedExpression};
use cedar_policy_core::ast;
use cedar_policy_core::evaluator::Evaluator;
use cedar_policy_core::extensions::Extensions;
use serde_json::Value;

pub(super) use cedar_policy_core::ast::Value as Cedar;

pub(super) fn text(it: &str) -> Cedar {
    Cedar::from(it)
}

pub(super) fn long(it: i64) -> Cedar {
    Cedar::from(it)
}

pub(super) fn bool(it: bool) -> Cedar {
    Cedar::from(it)
}

pub(super) fn set(items: impl IntoIterator<Item = Cedar>) -> Cedar {
    Cedar::set(items, None)
}

pub(super) fn record<'a>(fields: impl IntoIterator<Item = (&'a str, Cedar)>) -> Cedar {
    Cedar::record(fields, None)
}

/// `decimal("…")`.
pub(super) fn decimal(it: &str) -> Result<Cedar, String> {
    extension(RestrictedExpression::new_decimal(it))
}

/// `datetime("…")`.
pub(super) fn datetime(it: &str) -> Result<Cedar, String> {
    extension(RestrictedExpression::new_datetime(it))
}

pub(super) fn context<'a>(fields: impl IntoIterator<Item = (&'a str, Cedar)>) -> Context {
    let fields = fields.into_iter().map(|(name, it)| (name.into(), it)).collect();
    ast::Context::Value(Arc::new(fields)).into()
}

/// What a rule asks, its scope included.
#[derive(Debug)]
pub(super) struct Condition {
    expression: ast::Expr,
    policy: Policy,
}

impl Condition {
    pub fn of(policy: Policy) -> Condition {
        let rule: &ast::Policy = policy.as_ref();
        Condition { expression: rule.condition(), policy }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The same, in Cedar's own words.
    pub fn text(&self) -> String {
        self.expression.to_string()
    }
}

/// A value as a rule would write it.
pub(super) fn written(value: &Cedar) -> String {
    ast::Expr::from(value.clone()).to_string()
}

/// What a context holds, as JSON; what is neither text nor number is the text that it is made of.
pub(super) fn shown(context: &Context) -> Value {
    match context.as_ref() {
        ast::Context::Value(fields) => {
            Value::Object(fields.iter().map(|(name, it)| (name.to_string(), plain(it))).collect())
        }
        ast::Context::RestrictedResidual(_) => Value::Null,
    }
}

fn plain(value: &Cedar) -> Value {
    match value.value_kind() {
        ast::ValueKind::Lit(ast::Literal::Bool(it)) => (*it).into(),
        ast::ValueKind::Lit(ast::Literal::Long(it)) => (*it).into(),
        ast::ValueKind::Lit(ast::Literal::String(it)) => it.as_str().into(),
        ast::ValueKind::Lit(it @ ast::Literal::EntityUID(_)) => it.to_string().into(),
        ast::ValueKind::Set(items) => items.iter().map(plain).collect(),
        ast::ValueKind::Record(fields) => {
            Value::Object(fields.iter().map(|(name, it)| (name.to_string(), plain(it))).collect())
        }
        ast::ValueKind::ExtensionValue(_) => {
            // `decimal("1.5")`
            let text = written(value);
            text.split('"').nth(1).unwrap_or_default().into()
        }
    }
}

/// Evaluates rules on one call.
pub(super) struct Call<'a>(Evaluator<'a>);

impl<'a> Call<'a> {
    pub fn new(request: &Request, entities: &'a Entities) -> Call<'a> {
        let request: &ast::Request = request.as_ref();
        Call(Evaluator::new(request.clone(), entities.as_ref(), Extensions::all_available()))
    }

    /// Whether the rule matches, or why that cannot be said.
    pub fn matches(&self, condition: &Condition) -> Result<bool, String> {
        let rule: &ast::Policy = condition.policy.as_ref();
        let value = self.0.interpret(&condition.expression, rule.env());
        match value.map_err(|error| error.to_string())?.value_kind() {
            ast::ValueKind::Lit(ast::Literal::Bool(it)) => Ok(*it),
            _ => Err("it is neither true nor false".to_owned()),
        }
    }
}

fn extension(expression: RestrictedExpression) -> Result<Cedar, String> {
    let context = Context::from_pairs([("it".to_owned(), expression)]);
    let context = context.map_err(|error| error.to_string())?;
    match context.as_ref() {
        ast::Context::Value(fields) => fields.get("it").cloned(),
        ast::Context::RestrictedResidual(_) => None,
    }
    .ok_or_else(|| "a value has no value".to_owned())
}
