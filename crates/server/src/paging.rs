//! Lists in pages: how much is asked for at once, and where the next page begins.

use axum::Json;
use chancery_api::Page;

/// Nobody is shown more at once.
const LIMIT_MAX: u32 = 200;

/// How many to show: 50 unless said.
pub fn limit(given: Option<u32>) -> u32 {
    given.unwrap_or(50).clamp(1, LIMIT_MAX)
}

/// A page of what was found. Whoever looks for one more than `limit` sees whether there are more.
pub fn page<R, T>(
    mut found: Vec<R>,
    limit: u32,
    cursor: impl Fn(&R) -> String,
    shown: impl FnMut(R) -> T,
) -> Json<Page<T>> {
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(cursor);
    Json(Page { items: found.into_iter().map(shown).collect(), next_cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_next_page_only_where_there_is_more() {
        let shown = |found: &[u32]| {
            let Json(page) = page(found.to_vec(), 2, u32::to_string, |it| it);
            (page.items, page.next_cursor)
        };
        assert_eq!(shown(&[]), (vec![], None));
        assert_eq!(shown(&[7, 8]), (vec![7, 8], None));
        assert_eq!(shown(&[7, 8, 9]), (vec![7, 8], Some("8".to_owned())));
        assert_eq!([None, Some(0), Some(9000)].map(limit), [50, 1, 200]);
    }
}
