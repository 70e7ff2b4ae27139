//! The two minutes in which a newcomer sees what this is: the demo's own organisation and lines,
//! in a browser, in both languages; and once more by keys alone.

use std::time::Instant;

use chancery_server::config::{ModelConfig, Provider};
use serde_json::{Value, json};

use crate::console::Browser;
use crate::harness::{Caller, Server};
use crate::tab::{ALT, CONTROL, ENTER, SOON, Tab};

const SCENARIO: &str = include_str!("../../../cli/scenarios/demo.yaml");
const ORG: [(&str, &str); 2] = [
    ("tools.yaml", include_str!("../../../cli/scenarios/demo/tools.yaml")),
    ("policy.yaml", include_str!("../../../cli/scenarios/demo/policy.yaml")),
];
const SHIPPED: [&str; 3] =
    ["logs web", "build shop/web:1.8.3", "deploy production shop/web:1.8.3 canary"];
/// As the page offers it, with the strategy changed.
const EDITED: &str = r#"{"env": "production", "image": "shop/web:1.8.3", "strategy": "canary"}"#;

/// What the story looks for, in one language.
struct Told {
    language: &'static str,
    wish: &'static str,
    report: &'static str,
}

const ENGLISH: Told = Told { language: "en", wish: "Ship the pricing fix", report: "Shipped." };
const CHINESE: Told = Told { language: "zh", wish: "发布定价修复", report: "已发布。" };

struct Company {
    server: Server,
    lin: Caller,
    tab: Tab,
}

impl Company {
    async fn open(told: &Told) -> Company {
        let server = Server::with(|config| {
            let org = config.data.with_file_name("org");
            std::fs::create_dir(&org).unwrap();
            for (name, text) in ORG {
                std::fs::write(org.join(name), text).unwrap();
            }
            config.org = Some(org);
            let path = config.data.with_file_name("demo.yaml");
            std::fs::write(&path, SCENARIO).unwrap();
            let scripted =
                ModelConfig { scenario: Some(path), ..ModelConfig::new(Provider::Scripted) };
            config.models.insert("default".to_owned(), scripted);
            std::fs::create_dir_all(config.workspace().join("docker")).unwrap();
        })
        .await;
        let lin = server.human("lin").await;
        let wish = json!({
            "content": "Lin wants release reports short.", "type": "core",
            "scope": {"user": "lin", "agent": "pa"}, "metadata": {"pa_preference": true},
        });
        assert_eq!(lin.post("/api/memories", &wish).await.status, 201);
        let tab = Tab::open(&server).await;
        tab.be(&Browser::of(&server, "lin").await).await;
        tab.cookie(&format!("chancery_language={}", told.language)).await;
        tab.go("/").await;
        Company { server, lin, tab }
    }

    fn shipped(&self) -> Vec<String> {
        let path = self.server.config.workspace().join("docker/ships.log");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn undecided(&self) -> usize {
        let asked = self.lin.get("/api/permissions?status=pending").await.json();
        asked["items"].as_array().unwrap().len()
    }

    /// The group's run and the one that called it.
    async fn runs(&self) -> (Value, Value) {
        let runs = self.lin.get("/api/runs").await.json()["items"].as_array().unwrap().clone();
        assert_eq!(runs.len(), 2, "{runs:?}");
        let (mut group, mut own) = (runs[0].clone(), runs[1].clone());
        if group["group"].is_null() {
            std::mem::swap(&mut group, &mut own);
        }
        (group, own)
    }

    /// What holds at the end, whoever pressed what.
    async fn is_done(&self) {
        let (group, own) = self.runs().await;
        self.lin.until(own["id"].as_str().unwrap(), "completed").await;
        assert_eq!(self.shipped(), SHIPPED);
        let kinds = self.lin.kinds(group["id"].as_str().unwrap()).await;
        // Both answers, and only then the batch, each call of it once.
        let last = kinds.iter().rposition(|it| it == "permission.updated").unwrap();
        let decided = kinds.iter().filter(|it| *it == "permission.updated").count();
        let began = kinds[last..].iter().filter(|it| *it == "tool.started").count();
        assert_eq!((decided, began), (2, 3), "{kinds:?}");
        let asked = self.lin.get("/api/permissions?status=granted").await.json();
        let deploy = asked["items"].as_array().unwrap().iter().find(|it| it["risk"] == "high");
        assert_eq!(deploy.unwrap()["comment"], "canary first");
    }
}

/// Back on the card, after the page on which the edit was shown.
const DECIDED: &str = "return /^\\/inbox\\/perm_\\w+$/.test(location.pathname)";
const PULSE: &str = "return document.querySelector('#pulse')?.dataset.state === 'on'";
/// The group's card with the questions on it, and the mail that was blocked.
const ASKED: &str = "return document.querySelectorAll('.room [data-call]').length === 2";
const BLOCKED: &str = "//details[contains(@class,'did')][.//span[text()='send_mail']]";

/// The story with a pointer.
async fn told(told: Told) {
    let company = Company::open(&told).await;
    let tab = &company.tab;
    // Nothing waits, so the first page is for talking, and offers something to say.
    tab.until("return location.pathname === '/chat'").await;
    tab.click(&format!("//button[normalize-space()='{}']", told.wish)).await;
    tab.until("return location.pathname.startsWith('/chat/talk-')").await;
    tab.until(ASKED).await;
    let text = tab.text().await;
    assert!(text.contains("grp_delivery") && text.contains(told.wish), "{text}");
    // Every line is there once, also after the page was refreshed in place.
    let twice = "const ids = [...document.querySelectorAll('[id]')].map((it) => it.id);
        return ids.length - new Set(ids).size";
    assert_eq!(tab.eval(twice).await, 0);
    for tool in ["record", "write_file", "docker_deploy", "send_mail", "read_logs"] {
        assert!(text.contains(tool), "{tool}: {text}");
    }
    let log = tab.eval("return document.querySelector('#log').textContent").await;
    assert!(log.as_str().unwrap().contains("Lin wants release reports short."), "{log}");
    // The title counts what waits; it is asked for apart, after the card stands.
    tab.until("return document.title.startsWith('(2) ')").await;
    // Why the mail was blocked is one click away.
    tab.click(&format!("{BLOCKED}/summary")).await;
    let why = format!(
        "const it = document.evaluate({BLOCKED:?}, document, null, 9, null).singleNodeValue;
         return it.open ? it.innerText : ''"
    );
    let why = tab.eval(&why).await;
    assert!(why.as_str().unwrap().contains("it_manager"), "{why}");
    // One is approved where it stands; the other is opened, edited, and takes a second step.
    let call = |tool: &str| format!("//section[contains(@aria-label,'{tool}')]");
    let gone = "return document.querySelectorAll('.room [data-call]').length === 1";
    tab.click_until(&format!("{}//button[@data-key='a']", call("docker_build")), gone).await;
    assert_eq!(company.shipped(), [""; 0]);
    let link = format!("{}//a[contains(@href,'/inbox/')]", call("docker_deploy"));
    let thread = tab.eval("return location.pathname").await;
    tab.click_until(&link, "return location.pathname.startsWith('/inbox/')").await;
    let edit = format!("{}//details[@data-key='e']", call("docker_deploy"));
    let open = "return document.querySelector('details[data-key=e]')?.open === true";
    tab.click_until(&format!("{edit}/summary"), open).await;
    tab.fill(&format!("{edit}//textarea"), EDITED).await;
    tab.click(&format!("{edit}//button")).await;
    tab.until("return document.querySelector('.diff .plus')?.innerText.includes('canary')").await;
    assert_eq!(company.undecided().await, 1);
    // Neither without a reason nor without the second step.
    tab.click("//form[contains(@action,'/decide')]//button").await;
    tab.fill("//form[contains(@action,'/decide')]//input[@name='comment']", "canary first").await;
    tab.click("//form[contains(@action,'/decide')]//button").await;
    assert_eq!(company.undecided().await, 1);
    tab.click("//form[contains(@action,'/decide')]//input[@type='checkbox']").await;
    tab.click("//form[contains(@action,'/decide')]//button").await;
    tab.until(DECIDED).await;
    tab.go(thread.as_str().unwrap()).await;
    let report = told.report;
    tab.until(&format!("return document.querySelector('#log').innerText.includes({report:?})"))
        .await;
    company.is_done().await;
    // What was decided is known from now on, with where it came from.
    let (group, _) = company.runs().await;
    let source = format!("/runs/{}", group["id"].as_str().unwrap());
    let known = format!(
        "const it = [...document.querySelectorAll('.memories li')]
            .find((it) => it.innerText.includes('Prices are rounded to cents'));
         return Boolean(it?.querySelector('a[href=\"{source}\"]'))"
    );
    let began = Instant::now();
    tab.go("/memory").await;
    while tab.eval(&known).await != true {
        assert!(began.elapsed() < SOON, "{}", tab.text().await);
        tab.go("/memory").await;
    }
    assert_eq!(tab.complaints().await, [""; 0]);
    company.server.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_newcomer_ships_the_fix_in_english() {
    told(ENGLISH).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_newcomer_ships_the_fix_in_chinese() {
    told(CHINESE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_the_whole_story_takes_no_pointer() {
    let company = Company::open(&ENGLISH).await;
    let tab = &company.tab;
    tab.until("return location.pathname === '/chat'").await;
    tab.tab_to("it.matches('.suggestions button')").await;
    tab.press(ENTER).await;
    tab.until("return location.pathname.startsWith('/chat/talk-')").await;
    tab.until(PULSE).await;
    tab.until(ASKED).await;
    tab.tab_to("it.matches('details.did > summary') && it.innerText.includes('send_mail')").await;
    tab.press(ENTER).await;
    tab.until("return document.activeElement.parentElement.open").await;
    tab.tab_to("it.matches('[data-call]') && it.innerText.includes('docker_build')").await;
    let began = Instant::now();
    while company.undecided().await == 2 {
        assert!(began.elapsed() < SOON, "the key does nothing");
        tab.press("a").await;
    }
    tab.tab_to("it.matches('a[href*=\"/inbox/perm_\"]')").await;
    tab.press(ENTER).await;
    tab.until("return location.pathname.startsWith('/inbox/')").await;
    tab.tab_to("it.matches('[data-call]') && it.innerText.includes('docker_deploy')").await;
    let began = Instant::now();
    while tab.eval("return document.activeElement.matches('textarea')").await != true {
        assert!(began.elapsed() < SOON, "the key does nothing");
        tab.press("e").await;
    }
    tab.chord(CONTROL, "a").await;
    tab.press(EDITED).await;
    tab.tab_to("it.matches('details[data-key=e] button')").await;
    tab.press(ENTER).await;
    tab.until("return document.querySelector('.diff .plus')?.innerText.includes('canary')").await;
    tab.tab_to("it.matches('input[name=comment]')").await;
    tab.press("canary first").await;
    tab.tab_to("it.matches('input[name=confirmed]')").await;
    tab.press(" ").await;
    tab.tab_to("it.matches('form[action$=\"/decide\"] button')").await;
    tab.press(ENTER).await;
    tab.until(DECIDED).await;
    tab.until(PULSE).await;
    tab.press("gc").await;
    tab.until("return location.pathname === '/chat'").await;
    tab.tab_to("it.matches('.threads a.row')").await;
    tab.press(ENTER).await;
    tab.until("return document.querySelector('#log')?.innerText.includes('Shipped.')").await;
    company.is_done().await;
    tab.chord(ALT, "1").await;
    assert_eq!(tab.eval("return document.activeElement.id").await, "text");
    tab.tab_to("it.matches('.composer button')").await;
    tab.press("gm").await;
    tab.until("return location.pathname === '/memory'").await;
    assert_eq!(tab.complaints().await, [""; 0]);
    company.server.running.stop().await;
}
