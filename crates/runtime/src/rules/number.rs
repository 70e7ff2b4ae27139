//! JSON's numbers as Cedar's, which has none with a floating point.

use serde_json::Value;

use super::literals::UNIT;

/// A whole number, also where JSON writes it with a fraction of nothing.
pub(super) fn whole(value: &Value) -> Option<i64> {
    if let Some(it) = value.as_i64() {
        return Some(it);
    }
    let it = value.as_f64().filter(|it| !value.is_u64() && it.fract() == 0.0)?;
    // Beyond this a float has no neighbour at distance one.
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
    (it.abs() <= 9_007_199_254_740_992.0).then_some(it as i64)
}

/// A number with four digits after the point, the nearest one.
pub(super) fn decimal(value: &Value) -> Option<String> {
    // Cedar's decimal is 64 bits of ten-thousandths.
    const MAX: i64 = i64::MAX / UNIT;
    if let Some(it) = value.as_i64() {
        return (-MAX..=MAX).contains(&it).then(|| format!("{it}.0"));
    }
    let it = value.as_f64().filter(|it| it.abs() < 922_337_203_685_477.0)?;
    Some(format!("{it:.4}"))
}

/// A number in ten-thousandths, the nearest one.
pub(super) fn units(value: &Value) -> Option<i64> {
    let it = value.as_f64()? * 10_000.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is small enough")]
    (it.abs() <= 9_007_199_254_740_992.0).then(|| it.round() as i64)
}

/// Ten-thousandths as Cedar writes them.
pub(super) fn in_units(ten_thousandths: i64) -> String {
    let sign = if ten_thousandths < 0 { "-" } else { "" };
    let it = ten_thousandths.unsigned_abs();
    let unit = UNIT.unsigned_abs();
    format!("{sign}{}.{:04}", it / unit, it % unit)
}
