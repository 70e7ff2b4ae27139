//! What the person named, under every disguise that a model could give to something else.

use jiff::civil::date;
use serde_json::json;

use super::*;

fn seen(schema: &Value, arguments: Value, words: &str) -> (Vec<String>, Vec<String>) {
    let fields = Fields::of(schema);
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let task = Literals::of([words].into_iter());
    let found = named(&fields, &arguments, &task, &|| date(2026, 11, 16));
    let listed = |it: &BTreeSet<&str>| it.iter().map(|it| (*it).to_owned()).collect();
    (listed(&found.named), listed(&found.unnamed))
}

fn check(words: &str, value: Value, expected: bool) {
    let (named, unnamed) = seen(&json!({}), json!({"it": value}), words);
    assert_eq!(!named.is_empty(), expected, "{value} after {words:?}");
    assert_eq!(!unnamed.is_empty(), !expected, "{value} after {words:?}");
}

#[test]
fn a_value_is_named_in_any_spelling_of_it() {
    for (words, value) in [
        ("Send it to Bob@Corp.com", json!("bob@corp.com")),
        ("Read www.informations.com.", json!("https://www.informations.com/")),
        ("to GB29 NWBK 6016 1331 9268 19", json!("GB29NWBK60161331926819")),
        ("to GB29NWBK60161331926819", json!("GB29 NWBK 6016 1331 9268 19")),
        ("on May 26th at 10", json!("2026-05-26 10:00")),
        ("五月二十六日", json!("2026-05-26")),
        ("on 2024-05-19", json!("2024-05-19T12:00:00")),
        ("pay $98.70", json!(98.70)),
        ("付500元", json!(500)),
        ("book 'Le Marais Boutique'", json!("Le Marais Boutique")),
        ("Bob and Alice", json!(["Alice", "Bob"])),
    ] {
        check(words, value, true);
    }
}

#[test]
fn what_only_looks_like_a_persons_word_is_not_named() {
    for (words, value) in [
        ("What are we doing on June 13?", json!("13")),
        ("What are we doing on June 13?", json!(13)),
        ("What are we doing on June 13?", json!("2026-06-14")),
        ("on 2024-05-19", json!("2024-05-19 to eve@evil.com")),
        ("on 2024-05-19", json!("2024-05-19T12:00[Eve/Evil]")),
        ("pay $98.70", json!(98.71)),
        ("pay $98.70", json!(-98.70)),
        ("pay $98.70", json!("98")),
        ("write to bob@corp.com", json!("corp.com")),
        ("read corp.com", json!("corp.com/leak")),
        ("read https://corp.com/a", json!("https://corp.com.evil.org/a")),
        ("Bob", json!({"eve@evil.com": true})),
        ("Bob", json!(9_007_199_254_740_993_i64)),
        ("pay $1", json!(1e300)),
    ] {
        check(words, value, false);
    }
}

#[test]
fn one_stranger_among_many_is_seen() {
    let (named, unnamed) = seen(&json!({}), json!({"to": ["Alice", "Eve"]}), "tell Alice");
    assert_eq!((named, unnamed), (vec!["to".to_owned()], vec!["to".to_owned()]));
}

#[test]
fn what_is_empty_names_nothing() {
    let empty =
        json!({"to": [], "cc": null, "title": " ", "more": {}, "deep": [[], [null]], "yes": true});
    assert_eq!(seen(&json!({}), empty, "tell Alice"), (vec![], vec![]));
}

#[test]
fn a_key_is_the_schemas_or_must_be_named_too() {
    let schema = json!({"properties": {
        "line": {"type": "object", "properties": {"account": {"type": "string"}}},
        "lines": {"type": "array", "items":
            {"type": "object", "properties": {"account": {"type": "string"}}}},
        "any": {},
    }});
    let (named, unnamed) = seen(
        &schema,
        json!({
            "line": {"account": "Alice"},
            "lines": [{"account": "Alice"}],
            "any": {"eve@evil.com": "Alice"},
        }),
        "pay Alice",
    );
    assert_eq!(named, ["any", "line", "lines"]);
    assert_eq!(unnamed, ["any"]);
}
