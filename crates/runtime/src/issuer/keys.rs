//! Whose signature counts: the issuer's public keys, each for the one algorithm that it is of. The
//! token's own word on its algorithm chooses nothing.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::IssuerError;

/// No issuer has more; looking through them costs.
const KEYS_MAX: usize = 64;
const TOKEN_MAX: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug, Clone)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// A token that nobody has looked at.
#[derive(Debug)]
pub(super) struct Unverified<'a> {
    text: &'a str,
    header: Header,
}

impl<'a> Unverified<'a> {
    pub(super) fn of(text: &'a str) -> Result<Unverified<'a>, IssuerError> {
        let header = Some(text).filter(|it| it.len() <= TOKEN_MAX).map(decode_header);
        match header {
            Some(Ok(header)) if USED.contains(&header.alg) => Ok(Unverified { text, header }),
            Some(Ok(_)) => Err(untrue("it is not signed by a key pair")),
            Some(Err(_)) | None => Err(untrue("its ID token cannot be read")),
        }
    }
}

const USED: &[Algorithm] = &[Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

impl Keys {
    /// Those of a key set that can be used; others are for others.
    pub(super) fn read(text: &[u8]) -> Result<Keys, IssuerError> {
        let set: Value = serde_json::from_slice(text)
            .map_err(|_| IssuerError::Unusable("its keys are not JSON".to_owned()))?;
        let all = set["keys"].as_array();
        let all = all.ok_or_else(|| IssuerError::Unusable("its keys are no list".to_owned()))?;
        Ok(Keys(all.iter().take(KEYS_MAX).filter_map(key).collect()))
    }

    pub(super) fn has(&self, token: &Unverified<'_>) -> bool {
        self.of(token).is_some()
    }

    /// The key that a token names; one that names none is of the only one there is.
    fn of(&self, token: &Unverified<'_>) -> Option<&Key> {
        let mut fit = self.0.iter().filter(|it| match &token.header.kid {
            Some(id) => it.id.as_ref() == Some(id),
            None => it.algorithm == token.header.alg,
        });
        let found = fit.next()?;
        (token.header.kid.is_some() || fit.next().is_none()).then_some(found)
    }

    pub(super) fn verify(&self, token: &Unverified<'_>) -> Result<Map<String, Value>, IssuerError> {
        let key = self.of(token).ok_or_else(|| untrue("its key is not known"))?;
        let mut validation = Validation::new(key.algorithm);
        // What the claims say is looked at by `claims`, with a time that comes from outside.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        let decoded = decode::<Map<String, Value>>(token.text, &key.key, &validation);
        decoded.map(|it| it.claims).map_err(|_| untrue("its signature is not right"))
    }
}

fn key(given: &Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(given.clone()).ok()?;
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(it) if it.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(it) if it.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        _ => return None,
    };
    let signs = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let fits = jwk.common.key_algorithm.is_none_or(|it| it == named);
    if !signs || !fits {
        return None;
    }
    Some(Key { id: jwk.common.key_id.clone(), algorithm, key: DecodingKey::from_jwk(&jwk).ok()? })
}

fn untrue(detail: &str) -> IssuerError {
    IssuerError::Untrue(detail.to_owned())
}
