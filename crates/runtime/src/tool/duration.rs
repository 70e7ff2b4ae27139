//! How people write lengths of time: `30s`, `5m`, `2h`, `3d`, or a number of seconds.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// A length of time as it stands in a file or in a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Span(pub Duration);

/// Nobody means to wait for longer than a year.
const SPAN_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSpan {
    #[error("`{0}` is not a length of time: write `30s`, `5m`, `2h`, `3d` or a number of seconds")]
    Form(String),
    #[error("`{0}` is not a length of time between nothing and a year")]
    Range(String),
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
        let length = self.0.as_millis();
        let unit = units.into_iter().find(|(_, of)| length.is_multiple_of(*of)).unwrap_or(("ms", 1));
        serializer.collect_str(&format_args!("{}{}", length / unit.1, unit.0))
    }
}

impl TryFrom<Value> for Span {
    type Error = BadSpan;

    fn try_from(given: Value) -> Result<Span, BadSpan> {
        let form = || BadSpan::Form(given.to_string().chars().take(64).collect());
        let seconds = match &given {
            Value::Number(number) => number.as_f64().ok_or_else(form)?,
            Value::String(text) => seconds(text.trim()).ok_or_else(form)?,
            _ => return Err(form()),
        };
        Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|it| !it.is_zero() && *it <= SPAN_MAX)
            .map(Span)
            .ok_or_else(|| BadSpan::Range(given.to_string().chars().take(64).collect()))
    }
}

fn seconds(text: &str) -> Option<f64> {
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim_start() {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    Some(number.parse::<u32>().ok()? as f64 * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        for (given, expected) in [
            (json!(30), Some(30_000)),
            (json!(0.5), Some(500)),
            (json!("30s"), Some(30_000)),
            (json!("5m"), Some(300_000)),
            (json!("2h"), Some(7_200_000)),
            (json!("3d"), Some(259_200_000)),
            (json!("250ms"), Some(250)),
            (json!("45"), Some(45_000)),
            (json!("s"), None),
            (json!("-3s"), None),
            (json!("3 fortnights"), None),
            (json!("99999d"), None),
            (json!(0), None),
            (json!(-1), None),
            (json!(1e300), None),
            (json!([30]), None),
        ] {
            let read = Span::try_from(given.clone()).ok().map(|it| it.0.as_millis());
            assert_eq!(read, expected, "{given}");
        }
    }
}
