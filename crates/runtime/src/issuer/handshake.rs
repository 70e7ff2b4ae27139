//! What ties coming back from an issuer to having been sent there: all of it made from one secret
//! that only the browser has.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

#[derive(Clone, PartialEq, Eq)]
pub struct Handshake {
    state: String,
    nonce: String,
    verifier: String,
}

impl Handshake {
    pub fn of(secret: &str) -> Handshake {
        let made = |what: &str| {
            let digest = Sha256::new().chain_update(what).chain_update(secret).finalize();
            URL_SAFE_NO_PAD.encode(digest)
        };
        Handshake { state: made("state:"), nonce: made("nonce:"), verifier: made("verifier:") }
    }

    pub fn state(&self) -> &str {
        &self.state
    }

    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }

    pub(super) fn verifier(&self) -> &str {
        &self.verifier
    }

    /// What the issuer is told beforehand, so that only we can redeem the code (RFC 7636).
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier))
    }
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handshake(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_its_own_and_none_is_the_secret() {
        let (one, two) = (Handshake::of("one"), Handshake::of("two"));
        let parts = [&one.state, &one.nonce, &one.verifier, &two.state, &two.nonce, &two.verifier];
        let all: std::collections::BTreeSet<_> = parts.iter().collect();
        assert_eq!(all.len(), 6);
        assert_eq!(one, Handshake::of("one"));
        // RFC 7636: 43 to 128 characters.
        assert!(parts.iter().all(|it| it.len() == 43));
        assert_eq!(format!("{one:?}"), "Handshake(…)");
    }

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let it = Handshake { state: String::new(), nonce: String::new(), verifier };
        assert_eq!(it.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
