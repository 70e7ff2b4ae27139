//! Who somebody is here whom an issuer vouches for. Pure: from claims and settings to a name and
//! what it may.

use std::collections::BTreeSet;

use chancery_domain::mail::BOARD;
use chancery_runtime::issuer::Claims;
use serde_json::Value;

use crate::config::{OidcConfig, Standing};

/// Longer ones are no names.
const NAME_MAX: usize = 128;
/// More than any person is in; each is looked up.
const GROUPS_MAX: usize = 10_000;
/// Names that mean somebody else here.
const TAKEN: &[&str] = &["operator", "system", "service", "agent", BOARD];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    pub standing: Standing,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("{0}")]
    Name(String),
    #[error("the claim `{0}` is not a list of names")]
    Groups(String),
    #[error("your groups at the identity provider are not let in here")]
    NotLetIn,
}

pub fn person(config: &OidcConfig, claims: &Claims) -> Result<Person, Unfit> {
    let groups = groups(config, claims)?;
    let standing = config.standing(&groups).ok_or(Unfit::NotLetIn)?;
    Ok(Person { name: name(config, claims)?, standing })
}

/// A text where a list belongs is not taken for a list of one: `staff admins` is neither.
fn groups(config: &OidcConfig, claims: &Claims) -> Result<BTreeSet<String>, Unfit> {
    let wrong = || Unfit::Groups(config.groups_claim.clone());
    match claims.get(&config.groups_claim) {
        None => Ok(BTreeSet::new()),
        Some(Value::Array(all)) if all.len() <= GROUPS_MAX => {
            all.iter().map(|it| it.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// In lower case, for issuers tell `Lin` and `lin` apart no more than people do.
fn name(config: &OidcConfig, claims: &Claims) -> Result<String, Unfit> {
    let usual = ["preferred_username", "email"];
    let named: Vec<&str> = config.username_claim.as_deref().map_or(usual.to_vec(), |it| vec![it]);
    let verified = claims.get("email_verified") == Some(&Value::Bool(true));
    let given = named
        .iter()
        // An address that nobody has checked is whatever somebody typed.
        .filter(|it| **it != "email" || verified)
        .find_map(|it| claims.get(it));
    let given = given.ok_or_else(|| {
        Unfit::Name(format!("the identity provider does not say `{}`", named.join("` or `")))
    })?;
    let name = given.as_str().unwrap_or_default().to_ascii_lowercase();
    if is_name(&name) && !TAKEN.contains(&&*name) {
        return Ok(name);
    }
    Err(Unfit::Name(
        "your name at the identity provider cannot be used here: names have letters, digits and \
         `. _ - + @`, and begin with a letter or a digit"
            .to_owned(),
    ))
}

/// What can be read in one way only, and is nobody's but a person's: no `agent:`, nothing that
/// looks like something else.
fn is_name(name: &str) -> bool {
    let plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    name.len() <= NAME_MAX
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|it| plain(it) || b"._-+@".contains(&it))
}
