//! A subscriber that takes a POST.

use chancery_store::outbox::Notice;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Format;
use crate::clock;

#[derive(Clone)]
pub struct WebhookSubscriber {
    pub url: String,
    /// What its messages are signed with.
    pub secret: Option<String>,
    pub format: Format,
}

impl WebhookSubscriber {
    pub(super) async fn post(
        &self,
        client: &reqwest::Client,
        notice: &Notice,
        body: &str,
    ) -> Result<(), String> {
        let mut request = client
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("X-Chancery-Delivery", notice.id.to_string());
        if let Some(secret) = &self.secret {
            let signature = signature(secret, clock::now().as_second(), body);
            request = request.header("X-Chancery-Signature", signature);
        }
        match request.body(body.to_owned()).send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("status {}", answer.status())),
            // The address may hold a secret: it is not for the log.
            Err(error) => Err(error.without_url().to_string()),
        }
    }
}

/// `t=<seconds>,v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`, so that an old message cannot be
/// sent again as a new one.
pub fn signature(secret: &str, at: i64, body: &str) -> String {
    // A key of any length is a key to HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(format!("{at}.{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|it| format!("{it:02x}")).collect();
    format!("t={at},v1={hex}")
}

// Without the secret and the address, which may hold one.
impl std::fmt::Debug for WebhookSubscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookSubscriber").field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As anyone would compute it who has the secret: `printf '7.{}' | openssl dgst -sha256 -hmac s`
    #[test]
    fn a_signature_is_an_hmac_over_time_and_body() {
        let known = "t=7,v1=b12cae8f0db9d3d7c47e9b81ab46de84afeb161044a1c6fb23057d023b1e2b55";
        assert_eq!(signature("s", 7, "{}"), known);
        assert_ne!(signature("s", 8, "{}"), signature("s", 7, "{}"));
    }
}
