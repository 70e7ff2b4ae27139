//! Spans of time in words: how long ago, how long still, since when.

use chancery_runtime::clock;
use chancery_runtime::tool::config::Span;
use jiff::Timestamp;

use crate::outcome::Misused;

/// Two places at most: `12s`, `1m 12s`, `23h 59m`, `2d 3h`. What lies behind is `0s`.
pub fn span(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, of: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit} {small}{of}"),
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => two(minutes, "m", seconds % 60, "s"),
        (0, ..) => two(hours, "h", minutes % 60, "m"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// `8h`: since eight hours ago; or a time as such.
pub fn since(given: &str) -> Result<Timestamp, Misused> {
    if let Ok(at) = given.parse::<Timestamp>() {
        return Ok(at);
    }
    let wrong = || Misused(format!("`--since` is `30m`, `8h`, `7d` or a time, and not `{given}`"));
    let span = Span::try_from(serde_json::Value::from(given)).map_err(|_| wrong())?;
    clock::now().checked_sub(span.0).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_two_places_at_most() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let cases = [(5, "5s"), (72, "1m 12s"), (3600, "1h"), (86_340, "23h 59m")];
        for (seconds, said) in cases.into_iter().chain([(183_600, "2d 3h"), (-9, "0s")]) {
            assert_eq!(span(at(1000), at(1000 + seconds)), said);
        }
    }

    #[test]
    fn since_is_a_span_or_a_time() {
        assert_eq!(since("2026-02-01T00:00:00Z").unwrap().to_string(), "2026-02-01T00:00:00Z");
        assert!(since("8h").unwrap() < clock::now());
        assert!(since("yesterday").is_err());
    }
}
