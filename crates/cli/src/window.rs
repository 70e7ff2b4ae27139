//! How much of a list is shown: what is new enough, and so many of it.

use jiff::Timestamp;

use crate::elapsed;

#[derive(Debug, Clone, Default, clap::Args)]
pub struct Window {
    /// Only what is newer: `30m`, `8h`, `7d` or a time
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// At most so many [default: all of them]
    #[arg(long)]
    limit: Option<usize>,
}

impl Window {
    pub fn cut<T>(&self, items: &mut Vec<T>, at: impl Fn(&T) -> Timestamp) -> anyhow::Result<()> {
        let since = self.since.as_deref().map(elapsed::since).transpose()?;
        items.retain(|it| since.is_none_or(|since| at(it) >= since));
        items.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_by_time_and_then_by_number() {
        let of = |since: Option<&str>, limit| {
            let window = Window { since: since.map(str::to_owned), limit };
            let mut items = vec![9, 8, 7, 1];
            window.cut(&mut items, |it| Timestamp::from_second(*it).unwrap()).unwrap();
            items
        };
        assert_eq!(of(None, None), [9, 8, 7, 1]);
        assert_eq!(of(Some("1970-01-01T00:00:07Z"), None), [9, 8, 7]);
        assert_eq!(of(Some("1970-01-01T00:00:07Z"), Some(2)), [9, 8]);
        assert_eq!(of(Some("1h"), Some(2)), [0; 0]);
        assert!(
            Window { since: Some("soon".to_owned()), limit: None }
                .cut(&mut vec![0], |_| Timestamp::MIN)
                .is_err()
        );
    }
}
