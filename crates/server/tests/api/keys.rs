//! Keys: what they do where the focus is, and what they do not do elsewhere.

use chancery_testkit::mcp_servers;
use serde_json::json;

use crate::console::Browser;
use crate::harness::Caller;
use crate::house::{House, On};
use crate::tab::{CONTROL, DOWN, END, ENTER, ESCAPE, HOME, LEFT, RIGHT, SHIFT, SOON, TAB, Tab, UP};

/// At the console as lin, where a note is asked about.
pub async fn at_home() -> (House, Caller, Tab) {
    let house = House::open(On::Sqlite).await;
    house.change("", "tools: {note: require_approval}\n").await;
    let lin = house.lin().await;
    let tab = Tab::open(&house.server).await;
    tab.be(&Browser::of(&house.server, "lin").await).await;
    (house, lin, tab)
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_keys_lead_everywhere_and_can_be_turned_off() {
    let (house, lin, tab) = at_home().await;
    let (run, asked) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    tab.go("/runs").await;
    tab.press("?").await;
    tab.until("return document.querySelector('dialog[open] .keylist') !== null").await;
    let axe = std::fs::read_to_string(mcp_servers::axe().unwrap()).unwrap();
    assert_eq!(tab.axe(&axe).await, json!([]));
    tab.press(ESCAPE).await;
    tab.until("return document.querySelector('dialog') === null").await;
    tab.press("gm").await;
    tab.until("return location.pathname === '/memory'").await;
    // What is typed into a field leads nowhere.
    tab.tab_to("it.matches('input[name=q]')").await;
    tab.press("gi?").await;
    assert_eq!(tab.eval("return document.activeElement.value").await, "gi?");
    assert_eq!(tab.eval("return location.pathname").await, "/memory");
    // Jumping finds a question by its tool, and a run by its id.
    tab.chord(CONTROL, "k").await;
    tab.until("return document.activeElement.matches('dialog input')").await;
    tab.press("note").await;
    let found = format!(
        "return document.querySelector('dialog a.row')?.getAttribute('href') === '/inbox/{}'",
        asked[0]["id"].as_str().unwrap()
    );
    tab.until(&found).await;
    tab.press(ENTER).await;
    tab.until("return location.pathname.startsWith('/inbox/perm_')").await;
    tab.chord(CONTROL, "k").await;
    tab.until("return document.activeElement.matches('dialog input')").await;
    tab.press(&run).await;
    tab.press(ENTER).await;
    tab.until(&format!("return location.pathname === '/runs/{run}'")).await;
    // Somebody whose machine listens turns letters off; Ctrl K stays.
    tab.go("/help").await;
    tab.tab_to("it.matches('button[name=keys][value=off]')").await;
    tab.press(ENTER).await;
    tab.until("return document.body.dataset.keys === 'off'").await;
    tab.press("?gi").await;
    assert_eq!(tab.eval("return document.querySelector('dialog') === null").await, true);
    tab.go("/inbox").await;
    tab.tab_to("it.matches('[data-call]')").await;
    tab.until("return performance.now() > 1200").await;
    tab.press("aed").await;
    assert_eq!(tab.eval("return document.activeElement.matches('[data-call]')").await, true);
    tab.chord(CONTROL, "k").await;
    tab.until("return document.activeElement.matches('dialog input')").await;
    let still = lin.get("/api/permissions?status=pending").await.json();
    assert_eq!(still["items"].as_array().unwrap().len(), 1);
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_high_risk_is_never_one_key() {
    let (house, lin, tab) = at_home().await;
    let (_, asked) = lin.asking("pa", json!([[["pay", {"to": "b"}]]])).await;
    tab.go("/inbox").await;
    tab.tab_to("it.matches('[data-call]')").await;
    tab.until("return performance.now() > 1200").await;
    tab.press("a").await;
    let said = tab.eval("return document.querySelector('#say').textContent").await;
    assert!(said.as_str().unwrap().contains("Shift A"), "{said}");
    // More time is one key, for it decides nothing.
    tab.press("+").await;
    let path = format!("/api/permissions/{}", asked[0]["id"].as_str().unwrap());
    let began = std::time::Instant::now();
    while lin.get(&path).await.json()["expires_at"] == asked[0]["expires_at"] {
        assert!(began.elapsed() < SOON, "the key does nothing");
    }
    assert_eq!(lin.get(&path).await.json()["status"], "pending");
    tab.chord(SHIFT, "A").await;
    tab.until("return document.activeElement.matches('details.strong textarea')").await;
    assert_eq!(house.ledger(), [""; 0]);
    tab.press("salary").await;
    tab.tab_to("it.matches('details.strong button')").await;
    // The second step is missing: the browser says so, and nothing is sent.
    tab.press(ENTER).await;
    assert_eq!(lin.get(&path).await.json()["status"], "pending");
    tab.tab_to("it.matches('input[name=confirmed]')").await;
    tab.press(" ").await;
    tab.tab_to("it.matches('details.strong button')").await;
    tab.press(ENTER).await;
    lin.permission_until(&asked[0], "granted").await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_a_trace_is_walked_by_keys() {
    let (house, lin, tab) = at_home().await;
    let batches = json!([[["note", {"to": "x"}]], [["burn", {"to": "y"}]]]);
    let (run, asked) = lin.asking("pa", batches).await;
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    tab.go(&format!("/runs/{run}")).await;
    tab.tab_to("it.matches('[data-trace] [data-item]')").await;
    tab.press("]").await;
    let here = "return document.activeElement.closest('tr').innerText";
    assert!(tab.eval(here).await.as_str().unwrap().contains("burn"));
    tab.press(RIGHT).await;
    let open = "return document.activeElement.closest('details').open";
    assert_eq!(tab.eval(open).await, true);
    tab.press("k").await;
    assert!(!tab.eval(here).await.as_str().unwrap().contains("burn"));
    tab.press("f").await;
    let pressed = "return document.querySelector('#follow').getAttribute('aria-pressed')";
    assert_eq!(tab.eval(pressed).await, "true");
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_several_alike_are_picked_and_answered_by_keys() {
    let (house, lin, tab) = at_home().await;
    let mut runs = Vec::new();
    for to in ["x", "y"] {
        runs.push(lin.asking("pa", json!([[["note", {"to": to}]]])).await.0);
    }
    let (other, _) = lin.asking("payer", json!([[["note", {"to": "z"}]]])).await;
    tab.go("/inbox").await;
    assert_eq!(tab.eval("return document.querySelectorAll('.pick').length").await, 2);
    tab.tab_to("it.matches('.pickable a.row')").await;
    tab.press("x").await;
    tab.press("j").await;
    tab.press("x").await;
    let picked = "return document.querySelectorAll('.pick input:checked').length";
    assert_eq!(tab.eval(picked).await, 2);
    tab.tab_to("it.matches('#bulk button')").await;
    tab.press(ENTER).await;
    tab.until("return document.querySelectorAll('.picked .exact').length === 2").await;
    let axe = std::fs::read_to_string(mcp_servers::axe().unwrap()).unwrap();
    assert_eq!(tab.axe(&axe).await, json!([]));
    assert_eq!(house.ledger(), [""; 0]);
    tab.tab_to("it.matches('button[value=grant]')").await;
    tab.press(ENTER).await;
    for run in &runs {
        lin.until(run, "completed").await;
    }
    assert_eq!(lin.get(&format!("/api/runs/{other}")).await.json()["status"], "waiting");
    let icon = "return document.querySelector('link[rel=icon]').href.startsWith('data:')";
    tab.until(icon).await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_arrows_lead_through_a_matrix_and_its_rows_are_narrowed_by_name() {
    let (house, _, tab) = at_home().await;
    tab.go("/org").await;
    tab.tab_to("it.matches('#tools input[type=search]')").await;
    // Each matrix is one stop: the next Tab leads into it, one more out of it.
    tab.press(TAB).await;
    let at = "const cell = document.activeElement.closest('td');
        return cell && [cell.closest('section').id, cell.closest('tr').sectionRowIndex, cell.cellIndex]";
    assert_eq!(tab.eval(at).await, json!(["tools", 0, 1]));
    tab.press(TAB).await;
    // Nobody writes to themselves: such a cell is passed over.
    assert_eq!(tab.eval(at).await, json!(["mail", 0, 2]));
    tab.press(DOWN).await;
    assert_eq!(tab.eval(at).await, json!(["mail", 2, 2]));
    tab.chord(SHIFT, TAB).await;
    let last = "const it = document.querySelector('#tools .matrix');
        return [it.tBodies[0].rows.length - 1, it.tHead.rows[0].cells.length - 1]";
    let last = tab.eval(last).await;
    for (key, row, column) in [
        (RIGHT, json!(0), json!(2)),
        (DOWN, json!(1), json!(2)),
        (LEFT, json!(1), json!(1)),
        (LEFT, json!(1), json!(1)),
        (END, json!(1), last[1].clone()),
        (HOME, json!(1), json!(1)),
    ] {
        tab.press(key).await;
        assert_eq!(tab.eval(at).await, json!(["tools", row, column]));
    }
    tab.chord(CONTROL, END).await;
    assert_eq!(tab.eval(at).await, json!(["tools", last[0], last[1]]));
    tab.chord(CONTROL, HOME).await;
    assert_eq!(tab.eval(at).await, json!(["tools", 0, 1]));
    // It is left where it was.
    tab.press(RIGHT).await;
    tab.press(TAB).await;
    tab.chord(SHIFT, TAB).await;
    assert_eq!(tab.eval(at).await, json!(["tools", 0, 2]));
    // Only what has the name is there to be gone through.
    tab.chord(SHIFT, TAB).await;
    tab.press("PAY").await;
    let names = "return [...document.querySelectorAll('#tools tbody tr:not([hidden]) code')]
        .map((it) => it.innerText)";
    assert_eq!(tab.eval(names).await, json!(["pay"]));
    let said = "return document.querySelector('#say').textContent";
    assert_eq!(tab.eval(said).await, format!("1 of {} tools", last[0].as_u64().unwrap() + 1));
    tab.press(TAB).await;
    tab.press(DOWN).await;
    let row = "return document.activeElement.closest('tr').id";
    assert_eq!(tab.eval(row).await, "tool-pay");
    let axe = std::fs::read_to_string(mcp_servers::axe().unwrap()).unwrap();
    assert_eq!(tab.axe(&axe).await, json!([]));
    tab.press(ENTER).await;
    tab.until("return document.querySelector('#cell h2')?.innerText.includes('pay') === true")
        .await;
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}

/// Whether nothing lies over what has the focus.
const ON_TOP: &str = "const it = document.activeElement;
    const { left, top, width, height } = it.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2) === it";
/// Whether the matrix is scrolled down and aside, whether the heads of the cell that has the focus
/// are seen, and how far they are from its edges.
const HEADS: &str = "const it = document.activeElement; const box = it.closest('.scroll');
    box.scrollIntoView({ block: 'center' });
    const column = box.querySelectorAll('thead th')[it.closest('td').cellIndex];
    const row = it.closest('tr').querySelector('th');
    const seen = (node) => {
        const { left, top, width, height } = node.getBoundingClientRect();
        return node.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    };
    const place = box.getBoundingClientRect();
    return [box.scrollTop > 0, box.scrollLeft > 0, seen(column), seen(row),
        Math.round(column.getBoundingClientRect().top - place.top),
        Math.round(row.getBoundingClientRect().left - place.left)]";

#[tokio::test(flavor = "multi_thread")]
async fn heavy_the_heads_of_a_matrix_stay_and_cover_nothing_that_has_the_focus() {
    let (house, _, tab) = at_home().await;
    for theme in ["light", "dark"] {
        tab.cookie(&format!("chancery_theme={theme}")).await;
        tab.width(320).await;
        tab.go("/org").await;
        tab.tab_to("it.matches('#tools td a')").await;
        for (key, scrolled) in [(END, true), (HOME, false)] {
            tab.chord(CONTROL, key).await;
            assert_eq!(tab.eval(HEADS).await, json!([scrolled, scrolled, true, true, 0, 0]));
        }
        // Step by step, too: what comes to lie beneath a head is brought out.
        tab.chord(CONTROL, END).await;
        for key in [UP; 16].into_iter().chain([LEFT; 8]) {
            tab.press(key).await;
            assert_eq!(tab.eval(ON_TOP).await, true, "{theme}");
        }
    }
    assert_eq!(tab.complaints().await, [""; 0]);
    house.close().await;
}
