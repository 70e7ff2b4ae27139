//! Mail as somebody wrote it, read out to whoever answers it: a door for the fuzzer.

use chancery_domain::id::{MailId, UserId};
use chancery_domain::mail::Draft;
use chancery_store::mail::MailRow;
use jiff::Timestamp;
use serde_json::Value;

use super::letters::{BREAKS, read_out};
use crate::tool::mail::draft;

/// Nothing that a sender wrote stands on a line that is not marked as theirs.
pub fn letters(data: &[u8]) {
    let Ok(given) = serde_json::from_slice::<Value>(data) else { return };
    let draft = draft(&given);
    // A subject is one line: mail with any other is not delivered.
    if draft.subject.chars().any(char::is_control) {
        return;
    }
    let text = read_out(&[row(draft)]);
    let mut ours = 0;
    for line in text.split(BREAKS) {
        let marked = line.is_empty() || line.starts_with("> ");
        ours += usize::from(!marked);
    }
    // The opening words, and the line that says whose the mail is.
    assert_eq!(ours, 2, "{text}");
}

fn row(draft: Draft) -> MailRow {
    let Draft { subject, body, priority, attachments, fields, .. } = draft;
    MailRow {
        id: MailId::from("MAIL-1"),
        from: "a".to_owned(),
        to: "b".to_owned(),
        kind: "info".to_owned(),
        subject,
        body,
        priority,
        attachments,
        // A field's name is the organisation's.
        fields: fields.into_iter().map(|(_, value)| ("field".to_owned(), value)).collect(),
        reply_to: None,
        thread: MailId::from("MAIL-1"),
        contract_ref: None,
        status: "delivered".to_owned(),
        created_at: Timestamp::UNIX_EPOCH,
        delivered_at: Timestamp::UNIX_EPOCH,
        read_at: None,
        user: UserId::from("u"),
        project: None,
        delegated: None,
        run: None,
        handed_to: None,
    }
}
