//! Those who are told things.

use super::{Client, ClientError, segment};
use crate::Page;
use crate::webhook::{Delivery, Subscriber, Tried};

impl Client {
    pub async fn subscribers(&self) -> Result<Page<Subscriber>, ClientError> {
        self.get("/api/webhooks").await
    }

    /// Tells a subscriber something now.
    pub async fn try_subscriber(&self, name: &str) -> Result<Tried, ClientError> {
        self.post(&format!("/api/webhooks/{}/test", segment(name)), &()).await
    }

    /// The newest first.
    pub async fn deliveries(
        &self,
        query: &[(&str, String)],
    ) -> Result<Page<Delivery>, ClientError> {
        self.list("/api/webhooks/deliveries", query).await
    }
}
