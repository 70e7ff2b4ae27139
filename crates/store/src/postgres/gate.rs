//! What people are asked, on PostgreSQL: a part of the flush's one statement.

use tokio_postgres::types::ToSql;

use crate::projection::Prepared;

/// Follows `MOVES`, whose last parameter is $29.
pub(super) const GATE: &str = ", asked AS (
    INSERT INTO permissions (id, run_id, call_id, user_id, agent_id, tool, status, ruling, risk,
      asked_at, expires_at, body)
    SELECT a.id, a.run_id, a.call_id, a.user_id, a.agent_id, a.tool, 'pending', a.ruling, a.risk,
      a.asked_at, a.expires_at, a.body
    FROM unnest($31::uuid[], $32::uuid[], $33::text[], $34::text[], $35::text[], $36::text[],
        $37::text[], $38::text[], $39::bigint[], $40::bigint[], $41::text[])
      AS a(id, run_id, call_id, user_id, agent_id, tool, ruling, risk, asked_at, expires_at, body)
      JOIN head USING (run_id)
  ), decided AS (
    UPDATE permissions p SET status = d.status, decided_at = d.at, decided_by = d.decided_by,
      comment = d.comment, decided_arguments = d.arguments
    FROM unnest($42::uuid[], $43::uuid[], $44::text[], $45::bigint[], $46::text[], $47::text[], $48::text[])
      AS d(id, run_id, status, at, decided_by, comment, arguments) JOIN head USING (run_id)
    WHERE p.id = ANY($42) AND p.id = d.id
  ), prolonged AS (
    UPDATE permissions p SET escalated_at = coalesce(x.at, p.escalated_at),
      expires_at = x.expires_at
    FROM unnest($49::uuid[], $50::uuid[], $51::bigint[], $52::bigint[])
      AS x(id, run_id, at, expires_at) JOIN head USING (run_id)
    WHERE p.id = ANY($49) AND p.id = x.id
  ), made AS (
    INSERT INTO standing_rules (id, user_id, agent_id, run_id, scope, tool, signature,
      permission_id, made_by, made_at, expires_at)
    SELECT m.id, m.user_id, m.agent_id, m.run_id, m.scope, m.tool, m.signature, m.permission_id,
      m.made_by, m.made_at, m.expires_at
    FROM unnest($53::uuid[], $54::text[], $55::text[], $56::uuid[], $57::text[], $58::text[],
        $59::text[], $60::uuid[], $61::text[], $62::bigint[], $63::bigint[])
      AS m(id, user_id, agent_id, run_id, scope, tool, signature, permission_id, made_by, made_at,
        expires_at) JOIN head USING (run_id)
  ), dropped AS (
    UPDATE permissions p SET status = 'cancelled', decided_at = c.at
    FROM unnest($64::uuid[], $65::bigint[]) AS c(run_id, at) JOIN head USING (run_id)
    WHERE p.run_id = ANY($64) AND p.run_id = c.run_id AND p.status = 'pending'
  )";

/// The columns of `GATE`, a vector each.
#[derive(Default)]
pub(super) struct Columns(Vec<Box<dyn ToSql + Sync + Send>>);

impl Columns {
    /// `None`: nobody is asked and nothing is answered.
    pub(super) fn of(changes: &[&Prepared]) -> Option<Columns> {
        if changes.iter().all(|it| it.gate.is_empty()) {
            return None;
        }
        let mut columns = Columns::default();
        let asked = || changes.iter().flat_map(|it| it.gate.asked.iter().map(|row| (it.run, row)));
        columns.push(asked(), |(_, it)| it.id);
        columns.push(asked(), |(run, _)| run);
        columns.push(asked(), |(_, it)| it.call.clone());
        columns.push(asked(), |(_, it)| it.user.clone());
        columns.push(asked(), |(_, it)| it.agent.clone());
        columns.push(asked(), |(_, it)| it.tool.clone());
        columns.push(asked(), |(_, it)| it.ruling);
        columns.push(asked(), |(_, it)| it.risk);
        columns.push(asked(), |(_, it)| it.asked_at);
        columns.push(asked(), |(_, it)| it.expires_at);
        columns.push(asked(), |(_, it)| it.body.clone());
        let decided =
            || changes.iter().flat_map(|it| it.gate.decided.iter().map(move |row| (*it, row)));
        columns.push(decided(), |(_, it)| it.id);
        columns.push(decided(), |(change, _)| change.run);
        columns.push(decided(), |(_, it)| it.status);
        columns.push(decided(), |(change, _)| change.at);
        columns.push(decided(), |(_, it)| it.by.clone());
        columns.push(decided(), |(_, it)| it.comment.clone());
        columns.push(decided(), |(_, it)| it.arguments.clone());
        let prolonged =
            || changes.iter().flat_map(|it| it.gate.prolonged.iter().map(move |row| (*it, row)));
        columns.push(prolonged(), |(_, it)| it.id);
        columns.push(prolonged(), |(change, _)| change.run);
        columns.push(prolonged(), |(change, it)| it.escalated.then_some(change.at));
        columns.push(prolonged(), |(_, it)| it.expires_at);
        let made = || changes.iter().flat_map(|it| it.gate.made.iter().map(move |row| (*it, row)));
        columns.push(made(), |(_, it)| it.id);
        columns.push(made(), |(_, it)| it.user.clone());
        columns.push(made(), |(_, it)| it.agent.clone());
        columns.push(made(), |(change, _)| change.run);
        columns.push(made(), |(_, it)| it.scope);
        columns.push(made(), |(_, it)| it.tool.clone());
        columns.push(made(), |(_, it)| it.signature.clone());
        columns.push(made(), |(_, it)| it.permission);
        columns.push(made(), |(_, it)| it.by.clone());
        columns.push(made(), |(change, _)| change.at);
        columns.push(made(), |(_, it)| it.expires_at);
        let dropped = || changes.iter().filter(|it| it.gate.cancelled);
        columns.push(dropped(), |it| it.run);
        columns.push(dropped(), |it| it.at);
        Some(columns)
    }

    fn push<I: Iterator, T: ToSql + Sync + Send + 'static>(
        &mut self,
        rows: I,
        column: impl Fn(I::Item) -> T,
    ) where
        Vec<T>: ToSql,
    {
        self.0.push(Box::new(rows.map(column).collect::<Vec<T>>()));
    }

    pub(super) fn params(&self) -> impl Iterator<Item = &(dyn ToSql + Sync)> {
        self.0.iter().map(|it| &**it as &(dyn ToSql + Sync))
    }
}
