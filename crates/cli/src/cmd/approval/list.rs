//! What waits, one line for each batch: the riskiest first, then the oldest.

use chancery_api::permission::Permission;
use jiff::Timestamp;

use super::card::asked_by;
use crate::elapsed::span;
use crate::output::{self, one_line};
use crate::terminal::Terminal;

/// How urgent a risk is: what is not known is the worst.
pub fn urgency(permission: &Permission) -> u8 {
    match permission.risk.as_deref() {
        Some("low") => 0,
        Some("medium") => 1,
        _ => 2,
    }
}

pub fn is_high(permission: &Permission) -> bool {
    urgency(permission) == 2
}

/// Open requests of one batch belong together.
pub fn print(permissions: &[Permission], now: Timestamp, open: bool) -> anyhow::Result<()> {
    let batches = if open { batches(permissions) } else { singly(permissions) };
    let rows = batches.iter().map(|it| row(it, now, open)).collect::<Vec<_>>();
    let last = if open { "LEFT" } else { "STATUS" };
    output::table_of_ids(&["RISK", "REQUEST", "CALLS", "ASKED BY", last], rows, 1)?;
    if open {
        match batches.first() {
            None => output::note(format_args!("Nothing waits.")),
            Some(first) => output::line(format_args!(
                "{} waiting. Next: chancery approval show {}",
                permissions.len(),
                id(first)
            ))?,
        }
    }
    Ok(())
}

fn singly(permissions: &[Permission]) -> Vec<Vec<&Permission>> {
    permissions.iter().map(|it| vec![it]).collect()
}

fn batches(permissions: &[Permission]) -> Vec<Vec<&Permission>> {
    let mut batches: Vec<Vec<&Permission>> = Vec::new();
    for permission in permissions {
        let same = |it: &&mut Vec<&Permission>| {
            it[0].run_id == permission.run_id && it[0].message_id == permission.message_id
        };
        match batches.iter_mut().find(same) {
            Some(batch) => batch.push(permission),
            None => batches.push(vec![permission]),
        }
    }
    batches.sort_by_key(|it| std::cmp::Reverse(it.iter().map(|it| urgency(it)).max()));
    batches
}

/// The request itself, or the run where there are several.
fn id<'p>(batch: &[&'p Permission]) -> &'p str {
    if batch.len() == 1 { &batch[0].id } else { &batch[0].run_id }
}

fn row(batch: &[&Permission], now: Timestamp, open: bool) -> Vec<String> {
    let riskiest = batch.iter().max_by_key(|it| urgency(it)).unwrap_or(&batch[0]);
    let calls = match batch.len() {
        1 => one_line(&riskiest.tool),
        _ if batch.iter().all(|it| it.tool == riskiest.tool) => {
            format!("{} x{}", one_line(&riskiest.tool), batch.len())
        }
        many => format!("{} +{}", one_line(&riskiest.tool), many - 1),
    };
    let end = batch.iter().filter_map(|it| it.expires_at).min();
    let last = match (open, end) {
        (false, _) => super::card::decided(riskiest, now),
        (true, Some(end)) => span(now, end),
        (true, None) => "-".to_owned(),
    };
    let risk = Terminal::PLAIN.risk(riskiest.risk.as_deref());
    vec![risk, id(batch).to_owned(), calls, asked_by(riskiest), last]
}
