//! Cedar's values, made straight from what they are. Cedar's own door takes each through an
//! expression, which costs more than all the rules on a call; so this file, and no other, knows
//! the crate beneath it.

use std::sync::Arc;

use cedar_policy::{Context, RestrictedExpression};
use cedar_policy_core::ast;

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

fn extension(expression: RestrictedExpression) -> Result<Cedar, String> {
    let context = Context::from_pairs([("it".to_owned(), expression)]);
    let context = context.map_err(|error| error.to_string())?;
    match context.as_ref() {
        ast::Context::Value(fields) => fields.get("it").cloned(),
        ast::Context::RestrictedResidual(_) => None,
    }
    .ok_or_else(|| "a value has no value".to_owned())
}
