//! Whether a list is another than it was: a few numbers for each, cheap to read, of what whoever
//! looks may see and of nothing else. What the numbers mean is nobody's business.

use chancery_domain::id::{ContractId, MailId, UserId};
use jiff::Timestamp;

use crate::projection::storable;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

/// Another mark, and the list is another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark(pub(crate) Vec<i64>);

/// Of a list its newest rows are looked at, more than a page of it has. What changes further down
/// is seen with the next change.
const ROWS: i64 = 200;

impl Store {
    /// Of the mails, the rejections and the contracts of a person, or of everybody.
    pub async fn mark_of_mail(&self, user: Option<&UserId>) -> Result<Mark, StoreError> {
        let (of, limit, params) = newest(user, vec![]);
        let sql = format!(
            "SELECT m.many, m.made, m.seen, c.many, c.moved,
               (SELECT COALESCE(MAX(id), 0) FROM mail_rejections WHERE 1 = 1{of})
             FROM (SELECT count(*) AS many, count(read_at) AS seen,
                 CAST(COALESCE(SUM(created_at), 0) AS BIGINT) AS made
               FROM (SELECT created_at, read_at FROM mails WHERE 1 = 1{of}
                 ORDER BY id DESC {limit}) AS newest) AS m,
               (SELECT count(*) AS many, CAST(COALESCE(SUM(updated_at), 0) AS BIGINT) AS moved
               FROM (SELECT updated_at FROM contracts WHERE 1 = 1{of}
                 ORDER BY id DESC {limit}) AS newest) AS c"
        );
        self.mark(sql, params, numbers::<6>).await
    }

    /// Of one mail: whether it was read, and whether a run answers it.
    pub async fn mark_of_letter(&self, id: &MailId) -> Result<Mark, StoreError> {
        let sql = "SELECT count(read_at), count(handed_to) FROM mails WHERE id = $1";
        let params = vec![Param::Text(storable(id.as_str()))];
        self.mark(sql.to_owned(), params, numbers::<2>).await
    }

    /// Of one contract, and of what a person, or everybody, has written about it and issued
    /// under it.
    pub async fn mark_of_contract(
        &self,
        id: &ContractId,
        user: Option<&UserId>,
    ) -> Result<Mark, StoreError> {
        let id = Param::Text(storable(id.as_str()));
        let (of, limit, params) = newest(user, vec![id]);
        let sql = format!(
            "SELECT (SELECT COALESCE(MAX(updated_at), 0) FROM contracts WHERE id = $1),
               (SELECT count(*) FROM contract_steps WHERE contract_id = $1),
               m.many, m.handed, c.many, c.moved
             FROM (SELECT count(*) AS many, count(handed_to) AS handed
               FROM (SELECT handed_to FROM mails WHERE contract_ref = $1{of}
                 ORDER BY created_at DESC {limit}) AS newest) AS m,
               (SELECT count(*) AS many, CAST(COALESCE(SUM(updated_at), 0) AS BIGINT) AS moved
               FROM (SELECT updated_at FROM contracts WHERE parent = $1{of}
                 ORDER BY id DESC {limit}) AS newest) AS c"
        );
        self.mark(sql, params, numbers::<6>).await
    }

    /// Of the standing rules of a person, or of everybody: which there are, and which still hold.
    pub async fn mark_of_rules(
        &self,
        user: Option<&UserId>,
        now: Timestamp,
    ) -> Result<Mark, StoreError> {
        let (of, limit, params) = newest(user, vec![Param::Int(now.as_microsecond())]);
        let sql = format!(
            "SELECT count(*), count(revoked_at),
               count(CASE WHEN revoked_at IS NULL AND expires_at > $1 THEN 1 END),
               CAST(COALESCE(SUM(expires_at + length(scope)), 0) AS BIGINT)
             FROM (SELECT expires_at, revoked_at, scope FROM standing_rules WHERE 1 = 1{of}
               ORDER BY id DESC {limit}) AS newest"
        );
        self.mark(sql, params, numbers::<4>).await
    }

    /// Of the audit's entries that concern a person, or of all.
    pub async fn mark_of_audit(&self, user: Option<&UserId>) -> Result<Mark, StoreError> {
        let (of, params) = whose(user, vec![]);
        let sql = format!("SELECT COALESCE(MAX(seq), 0) FROM audit WHERE 1 = 1{of}");
        self.mark(sql, params, numbers::<1>).await
    }

    /// Of the visits of a person, or of everybody, that are not over.
    pub async fn mark_of_visits(
        &self,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Mark, StoreError> {
        let sql = "SELECT count(*), COALESCE(MAX(v.began_at), 0) FROM visits v JOIN tokens t ON t.id = v.token_id
             WHERE v.ends_at > $1 AND t.revoked_at IS NULL AND ($2 = '' OR t.name = $2)";
        let name = Param::Text(storable(name.unwrap_or_default()));
        let params = vec![Param::Int(now.as_microsecond()), name];
        self.mark(sql.to_owned(), params, numbers::<2>).await
    }

    /// Of all tokens, and of what was told to subscribers.
    pub async fn mark_of_tokens_and_deliveries(&self) -> Result<Mark, StoreError> {
        let sql = "SELECT count(*), count(revoked_at),
             (SELECT COALESCE(MAX(id), 0) FROM deliveries) FROM tokens";
        self.mark(sql.to_owned(), vec![], numbers::<3>).await
    }

    async fn mark(
        &self,
        sql: String,
        params: Vec<Param>,
        decode: fn(&dyn Columns) -> Result<Mark, StoreError>,
    ) -> Result<Mark, StoreError> {
        Ok(self.query(sql, params, decode).await?.into_iter().next().unwrap_or_default())
    }
}

/// Narrows to what is a person's. It is left out for everybody's, so that an index is used.
fn whose(user: Option<&UserId>, mut params: Vec<Param>) -> (String, Vec<Param>) {
    let Some(user) = user else { return (String::new(), params) };
    params.push(Param::Text(storable(user.as_str())));
    (format!(" AND user_id = ${}", params.len()), params)
}

/// The same, and how many are looked at, for statements that name them in this order.
fn newest(user: Option<&UserId>, params: Vec<Param>) -> (String, String, Vec<Param>) {
    let (of, mut params) = whose(user, params);
    params.push(Param::Int(ROWS));
    (of, format!("LIMIT ${}", params.len()), params)
}

fn numbers<const N: usize>(row: &dyn Columns) -> Result<Mark, StoreError> {
    Ok(Mark((0..N).map(|at| row.int(at)).collect::<Result<_, _>>()?))
}
