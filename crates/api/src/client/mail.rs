//! Mail and contracts.

use super::{Client, ClientError, segment};
use crate::Page;
use crate::mail::{
    CanMail, Contract, ContractStory, Mail, MailRejection, NewContract, NewMail, RejectionStory,
    Transition,
};

impl Client {
    pub async fn send_mail(&self, mail: &NewMail) -> Result<Mail, ClientError> {
        self.post("/api/mail", mail).await
    }

    pub async fn mail(&self, id: &str) -> Result<Mail, ClientError> {
        self.send(self.http.get(format!("{}/api/mail/{}", self.base, segment(id)))).await
    }

    /// `inbox` or `sent`.
    pub async fn mailbox(
        &self,
        agent: &str,
        which: &str,
        query: &[(&str, String)],
    ) -> Result<Page<Mail>, ClientError> {
        self.list(&format!("/api/agents/{}/{which}", segment(agent)), query).await
    }

    pub async fn mail_rejections(
        &self,
        query: &[(&str, String)],
    ) -> Result<Page<MailRejection>, ClientError> {
        self.list("/api/mail/rejections", query).await
    }

    pub async fn mail_rejection(&self, id: &str) -> Result<RejectionStory, ClientError> {
        self.get(&format!("/api/mail/rejections/{}", segment(id))).await
    }

    pub async fn can_mail(&self, query: &[(&str, String)]) -> Result<CanMail, ClientError> {
        self.send(self.http.get(format!("{}/api/mail/check", self.base)).query(query)).await
    }

    pub async fn issue_contract(&self, contract: &NewContract) -> Result<Contract, ClientError> {
        self.post("/api/contracts", contract).await
    }

    pub async fn contracts(&self, query: &[(&str, String)]) -> Result<Page<Contract>, ClientError> {
        self.list("/api/contracts", query).await
    }

    pub async fn contract(&self, id: &str) -> Result<ContractStory, ClientError> {
        self.send(self.http.get(format!("{}/api/contracts/{}", self.base, segment(id)))).await
    }

    pub async fn step_contract(
        &self,
        id: &str,
        step: &Transition,
    ) -> Result<Contract, ClientError> {
        self.post(&format!("/api/contracts/{}/transition", segment(id)), step).await
    }
}
