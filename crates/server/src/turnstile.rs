//! How often somebody may come to the door. Who shows a token or a visit that is known has a share
//! of their own; who does not shares what their address has, and is turned away before anything
//! is looked up when that is used up. What is kept is in this process's memory, and bounded.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use chancery_domain::bucket::{Buckets, Rate};
use chancery_runtime::clock;
use chancery_store::StoreError;
use jiff::{SignedDuration, Timestamp};

use crate::error::{ApiError, Result};
use crate::router::App;

/// A few megabytes at the very most. Whoever is forgotten is a stranger once more, no worse.
const KEPT: usize = 10_000;
/// More proxies than anybody stands behind one another.
const HOPS_MAX: usize = 32;

/// From where a connection comes.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Somebody who has shown nothing yet, and whose address has not used up its share.
#[derive(Debug, Clone, Copy)]
pub struct Stranger;

#[derive(Debug, Clone)]
pub struct Turnstile {
    holders: Rate,
    strangers: Rate,
    proxies: Arc<[Net]>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug)]
struct Seen {
    /// By the digest of what they have shown, once it was found to be worth something.
    holders: Buckets<[u8; 32]>,
    strangers: Buckets<IpAddr>,
}

impl Turnstile {
    pub fn new(holders: Rate, strangers: Rate, proxies: Vec<Net>) -> Turnstile {
        let seen = Seen { holders: Buckets::new(KEPT), strangers: Buckets::new(KEPT) };
        let seen = Arc::new(Mutex::new(seen));
        Turnstile { holders, strangers, proxies: proxies.into(), seen }
    }

    /// Lets somebody through to what their secret opens, if `found` knows it.
    pub async fn pass<T>(
        &self,
        parts: &Parts,
        digest: [u8; 32],
        found: impl Future<Output = std::result::Result<Option<T>, StoreError>>,
    ) -> Result<T> {
        let from = self.address(parts);
        self.ask(&digest, from, clock::now()).map_err(too_many)?;
        match found.await? {
            Some(found) => {
                self.knew(digest, clock::now());
                Ok(found)
            }
            None => {
                self.missed(&digest, from, clock::now());
                Err(ApiError::Unauthenticated)
            }
        }
    }

    /// Before a secret is looked up.
    fn ask(
        &self,
        digest: &[u8; 32],
        from: IpAddr,
        now: Timestamp,
    ) -> std::result::Result<(), SignedDuration> {
        let mut seen = self.locked();
        if seen.holders.has(digest) {
            seen.holders.take(*digest, self.holders, now)
        } else {
            seen.strangers.look(&from, self.strangers, now)
        }
    }

    /// It is worth something: from now on its holder has a share of their own.
    fn knew(&self, digest: [u8; 32], now: Timestamp) {
        let mut seen = self.locked();
        if !seen.holders.has(&digest) {
            // It is full, as it is new.
            let _ = seen.holders.take(digest, self.holders, now);
        }
    }

    /// It is worth nothing, or no longer.
    fn missed(&self, digest: &[u8; 32], from: IpAddr, now: Timestamp) {
        let mut seen = self.locked();
        seen.holders.forget(digest);
        // What was let in at the same instant is let in: the next one is not.
        let _ = seen.strangers.take(from, self.strangers, now);
    }

    fn stranger(&self, from: IpAddr, now: Timestamp) -> std::result::Result<(), SignedDuration> {
        self.locked().strangers.take(from, self.strangers, now)
    }

    fn locked(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, parts: &Parts) -> IpAddr {
        let peer = parts.extensions.get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |it| it.0);
        whole(behind(peer, &parts.headers, &self.proxies))
    }
}

impl FromRequestParts<App> for Stranger {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Stranger> {
        let from = app.turnstile.address(parts);
        app.turnstile.stranger(from, clock::now()).map_err(too_many)?;
        Ok(Stranger)
    }
}

fn too_many(after: SignedDuration) -> ApiError {
    let part = i64::from(after.subsec_nanos() > 0);
    ApiError::TooMany(u64::try_from(after.as_secs() + part).unwrap_or(1).max(1))
}

/// Who stands behind the proxies that are trusted: each of them says from whom it heard, the last
/// one last. What is said before the first that is not trusted is anybody's word.
fn behind(peer: IpAddr, headers: &HeaderMap, proxies: &[Net]) -> IpAddr {
    let said = headers.get_all("x-forwarded-for").into_iter();
    let said: Vec<&str> =
        said.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(',')).collect();
    let mut from = peer;
    for hop in said.iter().rev().take(HOPS_MAX) {
        if !proxies.iter().any(|it| it.has(from)) {
            break;
        }
        match hop.trim().parse::<IpAddr>() {
            Ok(address) => from = address.to_canonical(),
            Err(_) => break,
        }
    }
    from
}

/// What one holder has many of counts as one: of IPv6, half of the address.
fn whole(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => IpAddr::from((u128::from(it) >> 64 << 64).to_be_bytes()),
        it => it,
    }
}

/// An address, or those that begin like it: `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    bits: u8,
}

impl Net {
    fn has(&self, address: IpAddr) -> bool {
        let shared = |one: u128, other: u128, of: u8| {
            let rest = u32::from(of.saturating_sub(self.bits));
            one.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                shared(u32::from(one).into(), u32::from(other).into(), 32)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => shared(one.into(), other.into(), 128),
            _ => false,
        }
    }
}

impl std::str::FromStr for Net {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Net, String> {
        let wrong = || format!("`{text}` is no address, as `10.0.0.1` or `10.0.0.0/8`");
        let (address, bits) = text.split_once('/').map_or((text, None), |it| (it.0, Some(it.1)));
        let address = address.parse::<IpAddr>().map_err(|_| wrong())?.to_canonical();
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(all), |it| it.parse().map_err(|_| wrong()))?;
        if bits <= all { Ok(Net { address, bits }) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const HOLDERS: Rate = Rate { burst: 5, a_minute: 60 };
    const STRANGERS: Rate = Rate { burst: 3, a_minute: 6 };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn address(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    fn turnstile() -> Turnstile {
        Turnstile::new(HOLDERS, STRANGERS, Vec::new())
    }

    #[test]
    fn whoever_guesses_is_turned_away_before_anything_is_looked_up() {
        let it = turnstile();
        for n in 0..3 {
            assert_eq!(it.ask(&[n; 32], address(1), at(0)), Ok(()));
            it.missed(&[n; 32], address(1), at(0));
        }
        let ten = SignedDuration::from_secs(10);
        assert_eq!(it.ask(&[9; 32], address(1), at(0)), Err(ten));
        assert_eq!(it.stranger(address(1), at(0)), Err(ten));
        // Elsewhere, and later, one may.
        assert_eq!(it.ask(&[9; 32], address(2), at(0)), Ok(()));
        assert_eq!(it.ask(&[9; 32], address(1), at(10)), Ok(()));
    }

    #[test]
    fn who_is_known_is_not_kept_out_by_who_guesses_beside_them() {
        let it = turnstile();
        it.ask(&[1; 32], address(1), at(0)).unwrap();
        it.knew([1; 32], at(0));
        for _ in 0..10 {
            let _ = it.stranger(address(1), at(0));
        }
        assert!(it.stranger(address(1), at(0)).is_err());
        assert_eq!(it.ask(&[1; 32], address(1), at(0)), Ok(()));
        // Until what they hold is worth nothing.
        it.missed(&[1; 32], address(1), at(0));
        assert!(it.ask(&[1; 32], address(1), at(0)).is_err());
    }

    #[test]
    fn who_is_known_has_a_share_and_no_more() {
        let it = turnstile();
        it.knew([1; 32], at(0));
        let taken = (0..10).filter(|_| it.ask(&[1; 32], address(1), at(0)).is_ok()).count();
        assert_eq!(taken, 4);
        assert_eq!(it.ask(&[1; 32], address(1), at(0)), Err(SignedDuration::from_secs(1)));
        assert_eq!(it.ask(&[1; 32], address(1), at(1)), Ok(()));
    }

    #[test]
    fn what_strangers_show_is_not_kept() {
        let it = turnstile();
        for n in 0..100_000u32 {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&n.to_be_bytes());
            let from = IpAddr::from(n.to_be_bytes());
            let _ = it.ask(&digest, from, at(0));
            it.missed(&digest, from, at(0));
        }
        let seen = it.locked();
        assert!(seen.holders.is_empty());
        assert!(seen.strangers.len() <= 2 * KEPT);
    }

    #[test]
    fn an_address_is_taken_from_proxies_that_are_trusted_and_from_nobody_else() {
        let check = |peer: &str, said: &[&'static str], proxies: &[&str], expected: &str| {
            let mut headers = HeaderMap::new();
            for it in said {
                headers.append("x-forwarded-for", HeaderValue::from_static(it));
            }
            let proxies: Vec<Net> = proxies.iter().map(|it| it.parse().unwrap()).collect();
            let from = behind(peer.parse().unwrap(), &headers, &proxies);
            assert_eq!(from, expected.parse::<IpAddr>().unwrap(), "{peer} {said:?}");
        };
        check("192.0.2.1", &["198.51.100.7"], &[], "192.0.2.1");
        check("127.0.0.1", &["198.51.100.7"], &["127.0.0.1"], "198.51.100.7");
        check("127.0.0.1", &["203.0.113.9, 198.51.100.7"], &["127.0.0.1"], "198.51.100.7");
        check("127.0.0.1", &["203.0.113.9", "198.51.100.7"], &["127.0.0.1"], "198.51.100.7");
        check(
            "127.0.0.1",
            &["203.0.113.9, 198.51.100.7, 10.1.2.3"],
            &["127.0.0.1", "10.0.0.0/8"],
            "198.51.100.7",
        );
        check("127.0.0.1", &["198.51.100.7, rubbish"], &["127.0.0.1"], "127.0.0.1");
        check("::1", &["::ffff:198.51.100.7"], &["::1"], "198.51.100.7");
    }

    #[test]
    fn nets_have_what_begins_like_them() {
        let has =
            |net: &str, address: &str| net.parse::<Net>().unwrap().has(address.parse().unwrap());
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("0.0.0.0/0", "203.0.113.9") && !has("0.0.0.0/0", "::1"));
        assert!(has("fd00::/8", "fd12::1") && !has("fd00::/8", "fe80::1"));
        assert!(has("192.0.2.1", "::ffff:192.0.2.1") && !has("192.0.2.1", "192.0.2.2"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/-1", "x"] {
            assert!(wrong.parse::<Net>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn half_of_an_address_of_ipv6_is_one_holder() {
        let one = |text: &str| whole(text.parse().unwrap());
        assert_eq!(one("2001:db8:1:2::1"), one("2001:db8:1:2:ffff::9"));
        assert_ne!(one("2001:db8:1:2::1"), one("2001:db8:1:3::1"));
        assert_eq!(one("::ffff:192.0.2.1"), one("192.0.2.1"));
    }
}
