//! What people are asked, what they answer, and what the rules would say.

use super::{Client, ClientError, segment};
use crate::Page;
use crate::permission::{
    Authorize, Authorized, Decide, Extend, Inquire, Matches, Narrow, Permission, StandingRule,
};

impl Client {
    pub async fn permissions(
        &self,
        query: &[(&str, String)],
    ) -> Result<Page<Permission>, ClientError> {
        self.list("/api/permissions", query).await
    }

    pub async fn permission(&self, id: &str) -> Result<Permission, ClientError> {
        self.get(&format!("/api/permissions/{}", segment(id))).await
    }

    /// The same answer again is no error; another one is, with status 409.
    pub async fn decide(&self, id: &str, decide: &Decide) -> Result<Permission, ClientError> {
        self.post(&format!("/api/permissions/{}/decision", segment(id)), decide).await
    }

    /// Asks the agent about a call that waits; answers with what it said.
    pub async fn ask(&self, id: &str, inquire: &Inquire) -> Result<Permission, ClientError> {
        self.post(&format!("/api/permissions/{}/ask", segment(id)), inquire).await
    }

    /// Gives a question more time.
    pub async fn extend(&self, id: &str, extend: &Extend) -> Result<Permission, ClientError> {
        self.post(&format!("/api/permissions/{}/extend", segment(id)), extend).await
    }

    /// What an answer to it would have answered before, had it been remembered for this scope.
    pub async fn matches(&self, id: &str, scope: &str) -> Result<Matches, ClientError> {
        let scope = segment(scope);
        self.get(&format!("/api/permissions/{}/matches?scope={scope}", segment(id))).await
    }

    /// What the rules would say. Nothing runs.
    pub async fn authorize(&self, question: &Authorize) -> Result<Authorized, ClientError> {
        self.post("/api/authorize", question).await
    }

    pub async fn rules(&self, query: &[(&str, String)]) -> Result<Page<StandingRule>, ClientError> {
        self.list("/api/rules", query).await
    }

    pub async fn rule(&self, id: &str) -> Result<StandingRule, ClientError> {
        self.get(&format!("/api/rules/{}", segment(id))).await
    }

    /// What a rule would have answered before, were it narrowed to this scope; or as it is.
    pub async fn matches_of_rule(
        &self,
        id: &str,
        scope: Option<&str>,
    ) -> Result<Matches, ClientError> {
        let scope = segment(scope.unwrap_or_default());
        self.get(&format!("/api/rules/{}/matches?scope={scope}", segment(id))).await
    }

    pub async fn narrow_rule(
        &self,
        id: &str,
        narrow: &Narrow,
    ) -> Result<StandingRule, ClientError> {
        self.post(&format!("/api/rules/{}/narrow", segment(id)), narrow).await
    }

    pub async fn revoke_rule(&self, id: &str) -> Result<StandingRule, ClientError> {
        self.delete(&format!("/api/rules/{}", segment(id))).await
    }
}
