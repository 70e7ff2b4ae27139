//! Literals in English and Chinese words, and in hostile ones.

use std::time::{Duration, Instant};

use jiff::civil::date;
use proptest::prelude::*;

use super::*;

fn of(words: &str) -> Sets {
    Literals::of([words].into_iter()).sets
}

fn listed<T: ToString>(set: &BTreeSet<T>) -> Vec<String> {
    set.iter().map(ToString::to_string).collect()
}

fn check(words: &str, pick: fn(&Sets) -> &BTreeSet<String>, expected: &[&str]) {
    let sets = of(words);
    let mut expected: Vec<String> = expected.iter().map(|it| (*it).to_owned()).collect();
    expected.sort();
    assert_eq!(listed(pick(&sets)), expected, "in {words:?}");
}

fn check_dates(words: &str, expected: &[&str]) {
    let today = date(2026, 11, 16);
    let mut dates: Vec<String> = of(words).dates.iter().flat_map(|it| it.dates(today)).collect();
    dates.sort();
    assert_eq!(dates, expected, "in {words:?}");
}

fn check_amounts(words: &str, expected: &[i64]) {
    let amounts: Vec<i64> = of(words).amounts.into_iter().collect();
    assert_eq!(amounts, expected, "in {words:?}");
}

#[test]
fn addresses_are_read_out_of_english_and_chinese() {
    for (words, expected) in [
        ("Write to bob@corp.com.", &["bob@corp.com"][..]),
        ("Her address is 'sarah.connor@gmail.com'.", &["sarah.connor@gmail.com"]),
        ("To a.b+c@x-y.co.uk, z_1@q.io;", &["a.b+c@x-y.co.uk", "z_1@q.io"]),
        ("请把报告发给bob@corp.com和张伟zhang@例子", &["bob@corp.com"]),
        ("发给「li@corp.cn」。", &["li@corp.cn"]),
        ("Bob@Corp.COM", &["Bob@Corp.COM", "bob@corp.com"]),
        ("bob at corp dot com, @bob, bob@, bob@localhost", &[]),
        // Nobody wrote `bob@corp.com` here.
        ("josébob@corp.com", &[]),
        ("bob@corp.com1", &[]),
        ("bob@corp.com@evil.com", &[]),
    ] {
        check(words, |it| &it.emails, expected);
    }
}

#[test]
fn links_are_read_in_all_spellings_of_one_place() {
    check(
        "Read the content on webpage www.informations.com.",
        |it| &it.urls,
        &["www.informations.com", "http://www.informations.com", "https://www.informations.com"],
    );
    check(
        "看一下https://Example.com/A?b=1，谢谢",
        |it| &it.urls,
        &[
            "https://Example.com/A?b=1",
            "example.com/A?b=1",
            "http://example.com/A?b=1",
            "https://example.com/A?b=1",
        ],
    );
    let dora = ["www.dora.com", "http://www.dora.com", "https://www.dora.com"];
    check("Visit Dora (www.dora.com) now", |it| &it.urls, &dora);
    check(
        "secure-252.com!",
        |it| &it.urls,
        &["secure-252.com", "http://secure-252.com", "https://secure-252.com"],
    );
    for none in [
        "https://,,,",
        "see http://.",
        "recipe-collection.docx",
        "bob@corp.com",
        "e.g. this",
        "1.5",
        "www.exämple.com",
    ] {
        check(none, |it| &it.urls, &[]);
    }
}

#[test]
fn accounts_are_long_and_a_date_is_none() {
    check(
        "to GB29 NWBK 6016 1331 9268 19.",
        |it| &it.accounts,
        &["GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"],
    );
    check("转账到6222020012345678901", |it| &it.accounts, &["6222020012345678901"]);
    check(
        "card 4111-1111-1111-1111",
        |it| &it.accounts,
        &["4111-1111-1111-1111", "4111111111111111"],
    );
    for none in ["2024-05-15", "2024-05-15 10:00", "June 13", "1234567", "x12345678", "v1.23456789"]
    {
        check(none, |it| &it.accounts, &[]);
    }
}

#[test]
fn quotations_have_the_marks_of_many_languages() {
    for (words, expected) in [
        ("the 'Networking event' on May 26th", &["Networking event"][..]),
        ("say 'I've seen it' there", &["I've seen it"]),
        ("I can't and you won't", &[]),
        ("call it \"Plan B\" or “Plan C”", &["Plan B", "Plan C"]),
        ("a 5\" screen and \"x\"", &["x"]),
        ("把《年度报告》发到「销售部」，主题是“你好”", &["年度报告", "销售部", "你好"]),
        ("请发送\"报告\"给他", &["报告"]),
        ("«Bonjour» und „Hallo“", &["Bonjour", "Hallo"]),
        ("'' \"\" “”", &[]),
    ] {
        check(words, |it| &it.quoted, expected);
    }
}

#[test]
fn files_are_names_with_an_ending_or_paths() {
    for (words, expected) in [
        ("from recipe-collection.docx, please", &["recipe-collection.docx"][..]),
        ("look at /etc/hosts and src/main.rs", &["/etc/hosts", "src/main.rs"]),
        ("看看report.xlsx。", &["report.xlsx"]),
        ("1.5 and 2.25", &[]),
    ] {
        check(words, |it| &it.files, expected);
    }
}

#[test]
fn dates_are_read_where_one_day_is_meant() {
    for (words, expected) in [
        ("on 2024-05-15 at 10:00", &["2024-05-15"][..]),
        ("May 15th, 2024", &["2024-05-15"]),
        ("the 3rd of March 2027", &["2027-03-03"]),
        ("on May 26th", &["2025-05-26", "2026-05-26", "2027-05-26"]),
        ("2月29日", &[]),
        ("在2024年5月26日开会", &["2024-05-26"]),
        ("二〇二四年五月二十六日", &["2024-05-26"]),
        ("5月3号", &["2025-05-03", "2026-05-03", "2027-05-03"]),
        ("15.05.2024", &["2024-05-15"]),
        ("05/15/2024 and 15/05/2023", &["2023-05-15", "2024-05-15"]),
        ("03/04/2024", &[]),
        ("2024-13-45, May 2024, 24年5月3日", &[]),
    ] {
        check_dates(words, expected);
    }
}

#[test]
fn amounts_are_numbers_beside_a_currency() {
    for (words, expected) in [
        ("pay $1,234.56 now", &[12_345_600][..]),
        ("1.234,56 €", &[12_345_600]),
        ("98.70 euros", &[987_000]),
        ("USD 5k", &[50_000_000]),
        ("2 million dollars", &[20_000_000_000]),
        ("付500元", &[5_000_000]),
        ("三百五十块", &[3_500_000]),
        ("5万元和1.5亿美元", &[500_000_000, 1_500_000_000_000]),
        ("一万两千元", &[120_000_000]),
        ("￥99.9", &[999_000]),
        ("13 files, June 13, 100", &[]),
        ("$99999999999999999999", &[]),
    ] {
        check_amounts(words, expected);
    }
}

#[test]
fn what_is_said_is_whole_words_and_no_bare_number() {
    let says = |words: &str, text: &str| Literals::of([words].into_iter()).says(text);
    assert!(says("Send it to Alice", "Alice"));
    assert!(says("send it to alice.", "Alice"));
    assert!(says("Post to the 'general' channel", "general"));
    assert!(says("把报告发给张伟和李娜", "张伟"));
    assert!(says("发给Alice吧", "Alice"));
    assert!(!says("Send it to Alice", "Al"));
    assert!(!says("Send it to Malice", "Alice"));
    assert!(!says("the channel starting with External", "External_0"));
    assert!(!says("write to bob@corp.com", "corp.com"));
    assert!(!says("on corp.com.evil.org", "corp.com"));
    assert!(!says("What are we doing on June 13?", "13"));
    assert!(!says("anything", ""));
    assert!(!says("a", "a"));
}

#[test]
fn nothing_is_said_by_nobody() {
    let nobody = Literals::of(std::iter::empty());
    assert_eq!(nobody, Literals::default());
    assert!(!nobody.says("Alice"));
}

#[test]
fn the_newest_words_are_kept_and_none_is_cut() {
    let old = "x ".repeat(WORDS_MAX);
    let literals = Literals::of([&*old, "write to bob@corp.com"].into_iter());
    assert!(literals.sets.emails.contains("bob@corp.com"));
    assert!(literals.folded.len() <= WORDS_MAX + 2);
    let cut = format!("{} bob@corp.community", "x".repeat(WORDS_MAX - 13));
    assert!(of(&cut).emails.is_empty());
}

#[test]
fn hostile_text_is_read_in_time_that_grows_with_its_length() {
    let many = |it: &str| it.repeat((1 << 16) / it.len());
    let more = |it: &str| it.repeat((1 << 20) / it.len());
    let hostile = [
        more("\""),
        more("'"),
        more("“"),
        many(" '"),
        many("「a"),
        many("a@"),
        many("a.a@a."),
        many("www."),
        many("a."),
        many("1 "),
        many("1,"),
        many("123 "),
        many("2024-"),
        many("五月"),
        many("百万"),
        many("/a"),
        many("$"),
        many("may 1"),
        many("AB12"),
        many("a@b.co "),
    ];
    for text in &hostile {
        let started = Instant::now();
        let sets = of(text);
        let took = started.elapsed();
        // A debug build on a busy machine takes a few seconds; a quadratic scan takes hours.
        assert!(took < Duration::from_secs(20), "{:?}… took {took:?}", text.get(..12));
        for length in [sets.emails.len(), sets.urls.len(), sets.quoted.len(), sets.accounts.len()] {
            assert!(length <= LITERALS_MAX);
        }
    }
}

#[test]
fn more_literals_than_are_kept_are_told() {
    let many: String = (0..1000).map(|it| format!("a{it}@b.co ")).collect();
    let sets = of(&many);
    assert!(sets.full);
    assert_eq!(sets.emails.len(), LITERALS_MAX);
}

proptest! {
    #[test]
    fn any_text_is_read(text in any::<String>(), words in "\\PC{0,40}") {
        let literals = Literals::of([&*text, &*words].into_iter());
        literals.says(&text);
    }

    #[test]
    fn marks_and_digits_in_any_order_are_read(text in "[0-9年月日万元$€.,@'\"“”《》/a-z -]{0,80}") {
        of(&text);
    }

    #[test]
    fn an_address_is_found_wherever_it_stands(
        before in "[一-龥 ，。]{0,10}",
        name in "[a-z][a-z0-9]{0,9}",
        after in "[一-龥 ，。]{0,10}",
    ) {
        let address = format!("{name}@corp.com");
        let text = format!("{before}{address}{after}");
        prop_assert!(of(&text).emails.contains(&address), "{}", text);
    }
}
