//! Which addresses are public, and which others the operator has opened. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Not public: this network, private, shared (CGNAT), loopback, link-local, protocol assignments,
/// documentation, relays, benchmarks, multicast, reserved. And one that a cloud answers its own
/// machines on, which looks like any other.
const CLOSED_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Within what is given out to the world (2000::/3), what is not of the world: protocol
/// assignments with Teredo, documentation, and 6to4, which stands for any address of the old kind.
/// NAT64, mapped, unique local, link-local and the rest lie outside of it.
const CLOSED_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
const WORLD_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What an address is called by both of its names is one address.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => !CLOSED_V4.iter().any(|(net, bits)| in_v4(it, *net, *bits)),
        IpAddr::V6(it) => {
            in_v6(it, WORLD_V6.0, WORLD_V6.1)
                && !CLOSED_V6.iter().any(|(net, bits)| in_v6(it, *net, *bits))
        }
    }
}

fn in_v4(it: Ipv4Addr, net: Ipv4Addr, bits: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
    it.to_bits() & mask == net.to_bits() & mask
}

fn in_v6(it: Ipv6Addr, net: Ipv6Addr, bits: u8) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    it.to_bits() & mask == net.to_bits() & mask
}

/// Addresses and networks that the operator named.
#[derive(Debug, Clone, Default)]
pub(super) struct Networks(Vec<(IpAddr, u8)>);

impl Networks {
    pub fn parse(given: &[String]) -> Result<Networks, String> {
        let one = |text: &String| {
            let (address, bits) = match text.split_once('/') {
                Some((address, bits)) => (address, bits.parse::<u8>().ok()),
                None => (text.as_str(), Some(u8::MAX)),
            };
            let address = address.parse::<IpAddr>().ok().map(|it| it.to_canonical());
            let most = address.map_or(0, |it| if it.is_ipv4() { 32 } else { 128 });
            match (address, bits) {
                (Some(address), Some(u8::MAX)) => Ok((address, most)),
                (Some(address), Some(bits)) if bits <= most => Ok((address, bits)),
                _ => Err(format!(
                    "`tools.web.allow_private`: `{text}` is neither an address nor a network such \
                     as `10.0.0.0/8`"
                )),
            }
        };
        given.iter().map(one).collect::<Result<_, _>>().map(Networks)
    }

    pub fn cover(&self, address: IpAddr) -> bool {
        self.0.iter().any(|(net, bits)| match (address.to_canonical(), net) {
            (IpAddr::V4(it), IpAddr::V4(net)) => in_v4(it, *net, *bits),
            (IpAddr::V6(it), IpAddr::V6(net)) => in_v6(it, *net, *bits),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_world_are_public() {
        for (address, public) in [
            ("93.184.216.34", true),
            ("8.8.8.8", true),
            ("2606:2800:220:1::1", true),
            ("::ffff:8.8.8.8", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.100.100.200", false),
            ("100.128.0.1", true),
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("168.63.129.16", false),
            ("169.254.169.254", false),
            ("172.15.0.1", true),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("172.32.0.1", true),
            ("192.0.0.192", false),
            ("192.168.1.1", false),
            ("198.19.0.1", false),
            ("224.0.0.1", false),
            ("239.1.1.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn what_the_operator_opens_is_that_and_nothing_beside_it() {
        let given = ["10.1.0.0/16", "127.0.0.1", "fd00::/8"].map(str::to_owned);
        let open = Networks::parse(&given).unwrap();
        for (address, covered) in [
            ("10.1.2.3", true),
            ("10.2.0.1", false),
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("fd12::1", true),
            ("::1", false),
        ] {
            assert_eq!(open.cover(address.parse().unwrap()), covered, "{address}");
        }
        for wrong in ["10.0.0.0/33", "localhost", "", "::/129", "10.0.0.0/x"] {
            assert!(Networks::parse(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
        assert!(
            Networks::parse(&["0.0.0.0/0".to_owned()]).unwrap().cover("1.2.3.4".parse().unwrap())
        );
    }
}
