//! Times as a page says them. The server draws each for those without a script: how long ago in
//! words, a date in UTC, and it says so. The script finds them by `data-time`: it puts dates into
//! the reader's own zone, and lets the others go on by themselves.

use jiff::{SignedDuration, Timestamp};

use super::words::{Words, fill, span};

/// Who looks at one that moves does not count along: from a minute on, seconds are left out.
const MINUTE: i64 = 60;

/// A date with the time of day.
pub fn at(it: &Timestamp) -> String {
    date("at", it, "%Y-%m-%d %H:%M UTC")
}

/// The same to the second.
pub fn exact(it: &Timestamp) -> String {
    date("exact", it, "%Y-%m-%d %H:%M:%S UTC")
}

/// The time of day alone, as a talk has it.
pub fn hour(it: &Timestamp) -> String {
    date("hour", it, "%H:%M UTC")
}

/// How long ago it was.
pub fn ago(it: Timestamp, now: Timestamp, w: &Words) -> String {
    moving("ago", it, &fill(w.ago, &[("t", &rough(w, it, now))]))
}

/// How long somebody has been waited for since.
pub fn waited(since: Timestamp, now: Timestamp, w: &Words) -> String {
    moving("waited", since, &fill(w.waited, &[("t", &rough(w, since, now))]))
}

/// How long something has taken that goes on.
pub fn taken(since: Timestamp, now: Timestamp, w: &Words) -> String {
    taken_beside(since, SignedDuration::ZERO, now, w)
}

/// The same with what came before it.
pub fn taken_beside(since: Timestamp, before: SignedDuration, now: Timestamp, w: &Words) -> String {
    let text = rough(w, since - before, now);
    let before = before.as_secs();
    format!(
        "<time datetime=\"{since}\" data-time=\"taken\" data-before=\"{before}\" \
         aria-live=\"off\">{text}</time>"
    )
}

/// How long there is until then.
pub fn left(until: Timestamp, now: Timestamp, w: &Words) -> String {
    moving("left", until, &fill(w.expires_in, &[("t", &rough(w, now, until))]))
}

/// What the script says the moving ones with: their sentences, the units, and what is no time.
pub fn words(w: &Words) -> String {
    [w.ago, w.waited, w.expires_in, w.unit_d, w.unit_h, w.unit_m, w.unit_s, w.now].join("|")
}

fn date(kind: &str, it: &Timestamp, format: &str) -> String {
    format!("<time datetime=\"{it}\" data-time=\"{kind}\">{}</time>", it.strftime(format))
}

fn rough(w: &Words, from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs();
    let over = if seconds < MINUTE { 0 } else { seconds % MINUTE };
    span(w, from, to - SignedDuration::from_secs(over))
}

/// One that changes all the time: nobody is read every change of it.
fn moving(kind: &str, it: Timestamp, text: &str) -> String {
    format!("<time datetime=\"{it}\" data-time=\"{kind}\" aria-live=\"off\">{text}</time>")
}

#[cfg(test)]
mod tests {
    use super::super::words::{EN, ZH};
    use super::*;

    #[test]
    fn a_time_is_said_in_words_or_in_utc() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let (it, now) = (time("2026-02-01T12:00:07Z"), time("2026-02-01T12:03:09Z"));
        let open = "<time datetime=\"2026-02-01T12:00:07Z\" data-time=";
        for (drawn, rest) in [
            (at(&it), "\"at\">2026-02-01 12:00 UTC"),
            (exact(&it), "\"exact\">2026-02-01 12:00:07 UTC"),
            (hour(&it), "\"hour\">12:00 UTC"),
            (
                ago(it, it + SignedDuration::from_secs(59), &EN),
                "\"ago\" aria-live=\"off\">59 s ago",
            ),
            (ago(it, now, &EN), "\"ago\" aria-live=\"off\">3 min ago"),
            (waited(it, now, &EN), "\"waited\" aria-live=\"off\">waiting 3 min"),
            (left(it, it - (now - it), &ZH), "\"left\" aria-live=\"off\">剩余 3 分钟"),
            (taken(it, now, &ZH), "\"taken\" data-before=\"0\" aria-live=\"off\">3 分钟"),
            (
                taken_beside(it, SignedDuration::from_secs(119), now, &EN),
                "\"taken\" data-before=\"119\" aria-live=\"off\">5 min",
            ),
        ] {
            assert_eq!(drawn, format!("{open}{rest}</time>"));
        }
    }
}
