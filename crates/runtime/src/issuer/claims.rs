//! What an issuer says of somebody, and whether it says it to us, now, and in answer to what we
//! asked.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::IssuerError;

/// Clocks of machines that are looked after differ by less.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
/// OpenID Connect Core, section 2: a subject has at most 255 characters.
const SUBJECT_MAX: usize = 255;

/// Claims that hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    subject: String,
    all: Map<String, Value>,
}

/// What the claims about the exchange itself must say.
pub(super) struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    pub now: Timestamp,
}

impl Claims {
    pub(super) fn checked(
        all: Map<String, Value>,
        expected: &Expected<'_>,
    ) -> Result<Claims, IssuerError> {
        let untrue = |detail: &str| IssuerError::Untrue(detail.to_owned());
        let text = |name: &str| all.get(name).and_then(Value::as_str);
        let time = |name: &str| match all.get(name) {
            None => Ok(None),
            Some(it) => seconds(it).map(Some).ok_or_else(|| untrue("a time in it is none")),
        };
        if text("iss") != Some(expected.issuer) {
            return Err(untrue("it is of another issuer"));
        }
        if !is_for(&all, expected.client_id) {
            return Err(untrue("it is meant for another client"));
        }
        if text("nonce") != Some(expected.nonce) {
            return Err(untrue("it does not answer what was asked"));
        }
        let expires = time("exp")?.ok_or_else(|| untrue("it has no end"))?;
        if expected.now.duration_since(expires) >= LEEWAY {
            return Err(untrue("it has expired"));
        }
        for begins in [time("nbf")?, time("iat")?].into_iter().flatten() {
            if begins.duration_since(expected.now) > LEEWAY {
                return Err(untrue("it is of a time to come"));
            }
        }
        let subject = text("sub").filter(|it| !it.is_empty() && it.chars().count() <= SUBJECT_MAX);
        let subject = subject.ok_or_else(|| untrue("it says of whom it is by no name"))?.to_owned();
        Ok(Claims { subject, all })
    }

    /// Adds what the issuer says elsewhere of the same person. What was signed stays.
    pub(super) fn add(&mut self, more: Map<String, Value>) -> Result<(), IssuerError> {
        if more.get("sub").and_then(Value::as_str) != Some(&self.subject) {
            return Err(IssuerError::Untrue("it speaks of two people".to_owned()));
        }
        for (name, value) in more {
            self.all.entry(name).or_insert(value);
        }
        Ok(())
    }

    /// Whom the issuer means, whatever it calls them.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// A claim by its name; `a.b` is one within another, where no claim has that very name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let within = || {
            let (outer, inner) = name.split_once('.')?;
            inner.split('.').try_fold(self.all.get(outer)?, |value, name| value.get(name))
        };
        self.all.get(name).or_else(within).filter(|it| !it.is_null())
    }
}

/// One that is for several says for whom of them it was made.
fn is_for(all: &Map<String, Value>, client_id: &str) -> bool {
    let party = all.get("azp").map(|it| it.as_str() == Some(client_id));
    match all.get("aud") {
        Some(Value::String(one)) => one == client_id && party != Some(false),
        Some(Value::Array(several)) => {
            let named = several.iter().any(|it| it.as_str() == Some(client_id));
            let texts = several.iter().all(Value::is_string);
            named && texts && (party == Some(true) || several.len() == 1 && party.is_none())
        }
        _ => false,
    }
}

fn seconds(value: &Value) -> Option<Timestamp> {
    let whole = value.as_i64().or_else(|| {
        let given = value.as_f64()?;
        // Beyond it a number is no longer the seconds that were meant.
        (given.abs() < 1e12).then_some(given as i64)
    })?;
    Timestamp::from_second(whole).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn check(change: Value) -> Result<Claims, String> {
        let mut all = json!({
            "iss": "https://id.example", "aud": "us", "sub": "1", "nonce": "n",
            "exp": NOW + 300, "iat": NOW,
        });
        for (name, value) in change.as_object().unwrap() {
            match value {
                Value::Null => drop(all.as_object_mut().unwrap().remove(name)),
                value => all[name] = value.clone(),
            }
        }
        let expected = Expected {
            issuer: "https://id.example",
            client_id: "us",
            nonce: "n",
            now: Timestamp::from_second(NOW).unwrap(),
        };
        Claims::checked(all.as_object().unwrap().clone(), &expected).map_err(|it| it.to_string())
    }

    #[test]
    fn every_claim_about_the_exchange_is_held_to() {
        assert_eq!(check(json!({})).unwrap().subject(), "1");
        for (change, why) in [
            (json!({"iss": "https://id.example/"}), "another issuer"),
            (json!({"iss": null}), "another issuer"),
            (json!({"aud": "them"}), "another client"),
            (json!({"aud": null}), "another client"),
            (json!({"aud": []}), "another client"),
            (json!({"aud": ["them"]}), "another client"),
            (json!({"aud": ["us", "them"]}), "another client"),
            (json!({"aud": ["us", "them"], "azp": "them"}), "another client"),
            (json!({"aud": ["us", 7], "azp": "us"}), "another client"),
            (json!({"aud": "us", "azp": "them"}), "another client"),
            (json!({"aud": "us", "azp": 7}), "another client"),
            (json!({"nonce": "m"}), "does not answer"),
            (json!({"nonce": null}), "does not answer"),
            (json!({"nonce": ["n"]}), "does not answer"),
            (json!({"exp": null}), "no end"),
            (json!({"exp": "tomorrow"}), "a time in it"),
            (json!({"exp": 1e300}), "a time in it"),
            (json!({"exp": NOW - 60}), "expired"),
            (json!({"nbf": NOW + 61}), "to come"),
            (json!({"iat": NOW + 61}), "to come"),
            (json!({"sub": null}), "of whom"),
            (json!({"sub": ""}), "of whom"),
            (json!({"sub": 7}), "of whom"),
            (json!({"sub": "x".repeat(256)}), "of whom"),
        ] {
            let said = check(change.clone()).unwrap_err();
            assert!(said.contains(why), "{change}: {said}");
        }
        for fine in [
            json!({"aud": ["us"]}),
            json!({"aud": ["us", "them"], "azp": "us"}),
            json!({"exp": NOW - 59}),
            json!({"exp": NOW as f64 + 0.5}),
            json!({"iat": NOW + 60, "nbf": NOW + 60}),
        ] {
            check(fine.clone()).unwrap_or_else(|it| panic!("{fine}: {it}"));
        }
    }

    #[test]
    fn what_is_added_is_of_the_same_person_and_overrules_nothing() {
        let mut claims = check(json!({"email": "a@x.example"})).unwrap();
        let more = |text: Value| text.as_object().unwrap().clone();
        let other = json!({"sub": "2", "groups": ["admins"]});
        assert!(claims.add(more(other)).is_err());
        assert!(claims.add(more(json!({"groups": ["admins"]}))).is_err());
        assert_eq!(claims.get("groups"), None);
        let same = json!({"sub": "1", "email": "b@x.example", "groups": ["staff"]});
        claims.add(more(same)).unwrap();
        assert_eq!(claims.get("email"), Some(&json!("a@x.example")));
        assert_eq!(claims.get("groups"), Some(&json!(["staff"])));
    }

    #[test]
    fn a_claim_may_stand_within_another() {
        let claims = check(json!({
            "realm_access": {"roles": ["a"]}, "https://x.example/groups": ["b"], "none": null,
        }));
        let claims = claims.unwrap();
        assert_eq!(claims.get("realm_access.roles"), Some(&json!(["a"])));
        assert_eq!(claims.get("https://x.example/groups"), Some(&json!(["b"])));
        assert_eq!(claims.get("realm_access.roles.x"), None);
        assert_eq!(claims.get("none"), None);
    }
}
