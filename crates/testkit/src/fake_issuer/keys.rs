//! Key pairs, and tokens that are signed with them, rightly and wrongly.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use aws_lc_rs::{hmac, rsa};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Rsa,
    P256,
    Ed25519,
}

/// How the next token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    Honest,
    /// `alg: none`, and no signature.
    None,
    /// `alg: none`, with the signature that would be right.
    NoneButSigned,
    /// `alg: HS256`, with the public key for a secret.
    PublicKeyAsSecret,
    /// By another key of the same kind and name.
    Stranger,
    /// Rightly, but the claims are changed afterwards.
    Changed,
    /// By a key that no set has.
    UnknownKey,
    /// Rightly, and without the name of the key.
    Nameless,
}

#[derive(Debug)]
pub(super) struct KeyPair {
    id: String,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

#[expect(clippy::expect_used, reason = "a machine that cannot make keys cannot test them")]
impl KeyPair {
    pub(super) fn generate(kind: Kind, id: &str) -> KeyPair {
        let pair = match kind {
            Kind::Rsa => Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("a key")),
            Kind::P256 => {
                Pair::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"))
            }
            Kind::Ed25519 => Pair::Ed25519(Ed25519KeyPair::generate().expect("a key")),
        };
        KeyPair { id: id.to_owned(), pair }
    }

    fn kind(&self) -> Kind {
        match self.pair {
            Pair::Rsa(_) => Kind::Rsa,
            Pair::P256(_) => Kind::P256,
            Pair::Ed25519(_) => Kind::Ed25519,
        }
    }

    /// As a set of keys has it.
    pub(super) fn public(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            Pair::Rsa(pair) => {
                let public = rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "kid": self.id, "use": "sig", "alg": "RS256",
                       "n": text(&public.n), "e": text(&public.e)})
            }
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": self.id,
                       "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Pair::Ed25519(pair) => json!({"kty": "OKP", "crv": "Ed25519", "kid": self.id,
                                          "x": text(pair.public_key().as_ref())}),
        }
    }

    pub(super) fn token(&self, claims: &Value, signing: Signing) -> String {
        let own = match self.kind() {
            Kind::Rsa => "RS256",
            Kind::P256 => "ES256",
            Kind::Ed25519 => "EdDSA",
        };
        let algorithm = match signing {
            Signing::None | Signing::NoneButSigned => "none",
            Signing::PublicKeyAsSecret => "HS256",
            _ => own,
        };
        let mut head = json!({"alg": algorithm, "typ": "JWT", "kid": self.id});
        match signing {
            Signing::UnknownKey => head["kid"] = json!("nobody's"),
            Signing::Nameless => drop(head.as_object_mut().map(|it| it.remove("kid"))),
            _ => {}
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&head), part(claims));
        let signature = match signing {
            Signing::None => Vec::new(),
            Signing::PublicKeyAsSecret => {
                let public = self.public_bytes();
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), text.as_bytes())
                    .as_ref()
                    .to_vec()
            }
            Signing::Stranger => KeyPair::generate(self.kind(), &self.id).sign(text.as_bytes()),
            _ => self.sign(text.as_bytes()),
        };
        let text = match signing {
            Signing::Changed => {
                let mut other = claims.clone();
                other["sub"] = json!("somebody-else");
                format!("{}.{}", part(&head), part(&other))
            }
            _ => text,
        };
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn public_bytes(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Pair::P256(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    fn sign(&self, text: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).expect("a signature");
                signature
            }
            Pair::P256(pair) => pair.sign(&random, text).expect("a signature").as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(text).as_ref().to_vec(),
        }
    }
}
