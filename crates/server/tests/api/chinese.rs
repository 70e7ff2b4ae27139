//! The Chinese console speaks Chinese: every page of a house with something in every room is gone
//! through for Latin words that are nobody's name and nobody's quotation.

use std::collections::BTreeSet;

use crate::console::Browser;
use crate::harness::Answer;
use crate::house::House;
use crate::lived_in::{OPERATORS, lived_in};

/// What Chinese calls by its Latin name: products, protocols, formats, keys.
const NAMES: &[&str] = &[
    "Alt",
    "Anthropic",
    "API",
    "Chancery",
    "Ctrl",
    "End",
    "Enter",
    "Esc",
    "Home",
    "JSON",
    "MB",
    "MCP",
    "NUL",
    "OpenAI",
    "PostgreSQL",
    "SHA",
    "SQLite",
    "SSE",
    "Schema",
    "Shift",
    "URL",
    "UTC",
    "UTF",
    "Webhook",
    "YAML",
];
/// The other language's own button.
const LANGUAGES: &[&str] = &["EN"];
/// Elements that hold what a machine or somebody else has written.
const QUOTED: &[&str] = &["code", "pre", "kbd", "q", "textarea", "script", "style"];
/// Elements that hold nothing.
const VOID: &[&str] =
    &["br", "circle", "hr", "input", "img", "link", "meta", "path", "rect", "!doctype"];
/// Attributes that somebody sees or hears, or that the script puts on the page.
const READ: &[&str] = &["alt", "aria-label", "label", "placeholder", "title"];

/// The texts of a page that its reader takes for the console's own words.
fn own_words(page: &str) -> Vec<String> {
    let mut texts = Vec::new();
    // Each with whether what is in it is somebody else's.
    let mut open: Vec<(String, bool)> = Vec::new();
    let mut rest = page;
    while let Some((text, after)) = rest.split_once('<') {
        let quoted = open.last().is_some_and(|it| it.1);
        if !quoted {
            texts.push(text.to_owned());
        }
        let end = end_of_tag(after);
        let tag = &after[..end];
        rest = &after[(end + 1).min(after.len())..];
        let name: String =
            tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap().to_lowercase();
        if tag.starts_with('/') {
            while open.pop().is_some_and(|it| it.0 != name) {}
            continue;
        }
        let attributes = attributes(tag);
        let language =
            attributes.iter().find(|it| it.0 == "lang").map(|it| !it.1.starts_with("zh"));
        let theirs = QUOTED.contains(&&*name) || language.unwrap_or(quoted);
        let read = |it: &&(String, String)| {
            READ.contains(&&*it.0) || it.0.starts_with("data-") && it.0 != "data-text"
        };
        // What the script is told by a `data-` that is no sentence is a machine's.
        let says = |it: &&(String, String)| !it.0.starts_with("data-") || it.1.contains(' ');
        if !theirs || QUOTED.contains(&&*name) {
            texts.extend(attributes.iter().filter(read).filter(says).map(|it| it.1.clone()));
        }
        if !VOID.contains(&&*name) && !tag.ends_with('/') {
            open.push((name, theirs));
        }
    }
    texts
}

/// Where a tag ends: a sign in an attribute does not end it.
fn end_of_tag(tag: &str) -> usize {
    let mut within = false;
    for (at, it) in tag.char_indices() {
        match it {
            '"' => within = !within,
            '>' if !within => return at,
            _ => {}
        }
    }
    tag.len()
}

fn attributes(tag: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once("=\"") {
        let name = before.rsplit([' ', '\n']).next().unwrap().to_owned();
        let (value, after) = after.split_once('"').unwrap();
        found.push((name, value.to_owned()));
        rest = after;
    }
    found
}

/// The Latin words in a text that nobody is called.
fn latin<'t>(text: &'t str, names: &BTreeSet<String>) -> Vec<&'t str> {
    let part = |it: char| it.is_ascii_alphanumeric() || "._-/:@*#&;×".contains(it);
    let words = text.split(|it: char| !part(it));
    // What has a sign or a figure within it is a machine's name for something.
    let plain = |it: &&str| it.len() > 1 && it.bytes().all(|it| it.is_ascii_alphabetic());
    let words = words.filter(|it| !it.starts_with('/'));
    let words = words.map(|it| it.trim_matches([':', ';', '.', '/', '-', '&', '#']));
    words.filter(plain).filter(|it| !NAMES.contains(it) && !names.contains(*it)).collect()
}

/// A sentence without what it quotes, names of the record in back-ticks and a library's words in
/// quotation marks, and without the gaps that the script fills.
fn unquoted(text: &str) -> String {
    let mut outside = String::new();
    let mut until = None;
    for it in text.chars() {
        match until {
            Some(end) if it == end => until = None,
            Some(_) => {}
            None if it == '`' => until = Some('`'),
            None if it == '“' => until = Some('”'),
            None if it == '{' => until = Some('}'),
            None => outside.push(it),
        }
    }
    outside
}

/// Who and what has a name here: agents, roles, groups' ids, tools, capabilities, people.
async fn names(house: &House) -> BTreeSet<String> {
    let operator = house.server.operator();
    let mut names: BTreeSet<String> = LANGUAGES.iter().map(|it| (*it).to_owned()).collect();
    names.extend(["lin", "operator", "ops", "board", "default", "fake", "shop"].map(str::to_owned));
    for path in ["/api/agents", "/api/roles", "/api/groups", "/api/tools"] {
        let page = operator.get(path).await.json();
        for it in page["items"].as_array().unwrap_or_else(|| panic!("{path}: {page}")) {
            names.extend(
                ["id", "name"].iter().filter_map(|key| it[key].as_str().map(str::to_owned)),
            );
            let capabilities = it["capabilities"].as_array().into_iter().flatten();
            names.extend(capabilities.filter_map(|it| it.as_str().map(str::to_owned)));
        }
    }
    names
}

/// Somebody who reads pages and knows no English.
struct Reader {
    names: BTreeSet<String>,
    /// What of the pages is not said in Chinese.
    left: Vec<String>,
    /// All of it.
    read: String,
}

impl Reader {
    fn reads(&mut self, of: &str, page: &Answer) {
        assert!(page.text.contains("<html lang=\"zh-Hans\""), "{of}: {page:?}");
        for text in own_words(&page.text) {
            let words = unquoted(&text);
            let words = latin(&words, &self.names);
            if !words.is_empty() {
                self.left.push(format!("{of}: {words:?} in {:?}", text.trim()));
            }
        }
        self.read.push_str(&page.text);
    }
}

#[tokio::test]
async fn no_page_of_the_chinese_console_leaves_a_word_in_english() {
    let (house, pages) = lived_in().await;
    let mut lin = Browser::of(&house.server, "lin").await;
    let mut boss = Browser::at(&house.server);
    boss.sign_in(&house.server.running.local_token).await;
    for it in [&mut lin, &mut boss] {
        it.cookie = format!("{}; chancery_language=zh", it.cookie);
    }
    let names = names(&house).await;
    let mut reader = Reader { names, left: Vec::new(), read: String::new() };
    for page in &pages {
        reader.reads(page, &lin.get(page).await);
    }
    for page in OPERATORS {
        reader.reads(page, &boss.get(page).await);
    }
    what_answers_a_form(&lin, &pages, &mut reader).await;
    what_answers_an_operator(&house, &boss, &mut reader).await;
    let left = reader.left;
    assert!(left.is_empty(), "{} places:\n{}", left.len(), left.join("\n"));
    // That nothing is left means little where nothing is there.
    for part in [
        "W102",
        "E107",
        "E401",
        "请求许可",
        "邮件被拒",
        "新增",
        "是否想写",
        "拒绝了请求",
        "分叉自",
        "MAIL-",
        "CTR-",
        "rul_",
        "mem_",
        "SQLite",
        "网络回调",
        "待接受",
        "以此起草",
    ] {
        assert!(reader.read.contains(part), "{part} is on no page");
    }
    house.close().await;
}

/// Pages that answer a form of anybody's.
async fn what_answers_a_form(lin: &Browser, pages: &[String], reader: &mut Reader) {
    let asked = pages.iter().rfind(|it| it.starts_with("/inbox/perm_")).unwrap();
    for arguments in ["{", "{\"too\": 1}", "{\"to\": \"other\"}"] {
        let edit = lin.fill(asked, &format!("{asked}/edit"), &[("arguments", arguments)]).await;
        reader.reads("an edited call", &edit);
    }
    let unseen = [("decision", "grant"), ("digest", "00")];
    reader.reads("a decision", &lin.fill(asked, &format!("{asked}/decide"), &unseen).await);
    let unfit = [("to", "nobody"), ("kind", "info"), ("subject", "s"), ("body", "b")];
    reader.reads("a letter", &lin.fill("/mail?show=write", "/mail", &unfit).await);
    for line in ["/help", "/status", "/why x", "/approve x", "/nothing"] {
        reader.reads(line, &lin.fill("/chat/talk", "/chat/talk", &[("text", line)]).await);
    }
    let inbox = lin.get("/inbox").await.text;
    let picks = inbox.split("form=\"bulk\" name=\"").skip(1);
    let picks = picks.map(|it| it.split('"').collect::<Vec<_>>());
    let picks: Vec<(&str, &str)> = picks.map(|it| (it[0], it[2])).collect();
    assert!(picks.len() > 1, "{inbox}");
    reader.reads("several at once", &lin.fill("/inbox", "/inbox/bulk", &picks).await);
    reader.reads("a wrong token", &lin.post("/signin", &[("token", "x")]).await);
}

/// Pages that answer an operator's.
async fn what_answers_an_operator(house: &House, boss: &Browser, reader: &mut Reader) {
    let wrong = "risk: {low: alow, loud: allow}\ntools: {gti_push: deny}\n";
    let narrow = "risk: {low: require_approval}\ntools: {gti_push: deny, note: allow}\n";
    let rule = "forbid (principal, action, resource) when { context.x };";
    for (policy, tools, rule) in [
        (wrong, "commands: [\n", rule),
        (narrow, "extends: builtin\n", rule),
        (narrow, "extends: builtin\n", ""),
    ] {
        let draft = [
            ("open", "policy.yaml"),
            ("act", "check"),
            ("file:policy.yaml", policy),
            ("file:tools.yaml", tools),
            ("file:rules/a.cedar", rule),
        ];
        reader.reads("a draft", &boss.fill("/org/draft", "/org/draft", &draft).await);
    }
    for path in ["/settings/models/default/test", "/settings/webhooks/ops/test"] {
        reader.reads(path, &boss.fill("/settings", path, &[]).await);
    }
    let settings = boss.get("/settings").await;
    reader.reads("what was told", &settings);
    let visit = settings.text.split("action=\"/settings/visits/").nth(1).unwrap();
    let end = format!("/settings/visits/{}", visit.split('"').next().unwrap());
    reader.reads("a visit's end", &boss.fill("/settings", &end, &[]).await);
    let link = house.server.running.invitation.clone().unwrap();
    let key = link.split_once("key=").unwrap().1;
    reader.reads("a first visit", &boss.get(&format!("/setup?key={key}")).await);
    let nobody = boss.post("/setup", &[("key", key), ("name", "agent:pa")]).await;
    reader.reads("a name that is nobody's", &nobody);
}

#[test]
fn a_word_is_found_wherever_a_reader_meets_it_and_no_name_is() {
    let names = BTreeSet::from(["pay".to_owned()]);
    let check = |page: &str, words: &[&str]| {
        let texts = own_words(page);
        let found: Vec<String> = texts
            .iter()
            .flat_map(|it| {
                latin(&unquoted(it), &names).into_iter().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(found, words, "{page}");
    };
    check("<p>运行 <code>pay now</code> already</p>", &["already"]);
    check("<p lang=\"en\">said <b>so</b></p><p>gone", &[]);
    check("<p lang=\"\">said</p>done<br>now<p></p>", &["done", "now"]);
    check("<a title=\"Open\" href=\"/open/it\">打开</a>", &["Open"]);
    check("<p>`a name` 与 pay，“a library's” run_1 v2 docs/x.md MCP</p>", &[]);
    check("<textarea placeholder=\"Say it\">theirs</textarea>", &["Say", "it"]);
}
