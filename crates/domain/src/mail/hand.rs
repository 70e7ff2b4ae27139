//! Which mails are answered together.

use crate::id::MailId;

/// How many mails an agent is handed at once.
pub const HANDED_MAX: usize = 20;

/// A mail that waits for an agent, as far as handing it over goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub id: MailId,
    pub is_contract: bool,
    /// On whose behalf, and within what: mails of different ones are not answered in one run.
    pub behalf: String,
}

/// Which of the mails that wait are answered in one run: from the first on, all of the same
/// behalf, with one contract at most. In the order in which they came.
pub fn handed_together(waiting: &[Waiting]) -> Vec<MailId> {
    let Some(first) = waiting.first() else { return Vec::new() };
    let mut contracts = 0;
    let mut together = Vec::new();
    for it in waiting.iter().filter(|it| it.behalf == first.behalf) {
        contracts += usize::from(it.is_contract);
        if contracts > 1 || together.len() == HANDED_MAX {
            break;
        }
        together.push(it.id.clone());
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_of_one_behalf_go_together_with_one_contract_at_most() {
        let waiting = |id: &str, is_contract, behalf: &str| Waiting {
            id: MailId::from(id),
            is_contract,
            behalf: behalf.to_owned(),
        };
        let mails = [
            waiting("1", false, "lin"),
            waiting("2", false, "ada"),
            waiting("3", true, "lin"),
            waiting("4", false, "lin"),
            waiting("5", true, "lin"),
            waiting("6", false, "lin"),
        ];
        let ids = |mails: &[Waiting]| -> Vec<String> {
            handed_together(mails).into_iter().map(|it| it.0).collect()
        };
        assert_eq!(ids(&mails), ["1", "3", "4"]);
        assert_eq!(ids(&mails[1..]), ["2"]);
        assert!(ids(&[]).is_empty());
        let many: Vec<_> = (0..50).map(|n| waiting(&n.to_string(), false, "lin")).collect();
        assert_eq!(ids(&many).len(), HANDED_MAX);
    }
}
