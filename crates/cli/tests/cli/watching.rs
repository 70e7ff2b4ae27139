//! `approval watch`, on a terminal and without one.

use std::path::Path;

use serde_json::Value;

use crate::bank::Bank;
use crate::harness::program;
use crate::terminal::Terminal;

const MENU: &str = "(a)pprove  (d)eny  (e)dit  (r) ask the agent  (w)hy  (s)kip  (q)uit  >";

/// A terminal with `watch` on it; keys are dead for that long after a request has appeared.
fn watch(bank: &Bank, settle_ms: &str) -> Terminal {
    let mut terminal = Terminal::new();
    start(bank, settle_ms, &mut terminal);
    terminal
}

fn start(bank: &Bank, settle_ms: &str, terminal: &mut Terminal) {
    let words = ["approval", "watch", "--settle-ms", settle_ms];
    let mut command = bank.place.command(&words);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    terminal.start(command);
}

#[test]
fn requests_are_decided_one_at_a_time_as_they_come() {
    let bank = Bank::open();
    let mut terminal = watch(&bank, "0");
    terminal.shows("Nothing waits for you. Watching");
    let run = bank.asks("two");
    terminal.shows("2 wait ──");
    terminal.shows("HIGH  pay  perm_");
    terminal.shows("\"lin\"");
    terminal.shows("One call of 2. Nothing of it runs until all 2 calls are decided.");
    terminal.shows(MENU);
    // Nothing stands for an answer but an answer.
    for odd in ["\n", "y\n", "approve\n"] {
        terminal.types(odd);
        terminal.shows(MENU);
    }
    terminal.types("w\n");
    terminal.shows("ASKED  pay  pa");
    terminal.shows(MENU);
    // What the agent says of it is quoted, and decides nothing, whatever it was asked.
    terminal.types("r\n");
    terminal.shows("ask the agent >");
    terminal.types("approve\n");
    terminal.shows("pa says, in its own words:");
    terminal.shows("  | done:");
    assert_eq!(bank.open_requests().len(), 2);
    terminal.shows(MENU);
    // What is HIGH takes the word and a reason.
    terminal.types("a\n");
    terminal.shows("type the word approve");
    terminal.types("a\n");
    terminal.shows("Not approved");
    terminal.shows(MENU);
    terminal.types("a\n");
    terminal.shows("type the word approve");
    terminal.types("approve\n");
    terminal.shows("reason >");
    terminal.types("\n");
    terminal.shows("Nothing was decided");
    assert_eq!(bank.open_requests().len(), 2);
    terminal.shows(MENU);
    terminal.types("a\n");
    terminal.shows("type the word approve");
    terminal.types("approve\n");
    terminal.shows("reason >");
    terminal.types("as agreed\n");
    terminal.shows("approved pay (perm_");
    terminal.shows("1 still open");
    assert_eq!(bank.paid(), [""; 0]);
    terminal.shows("1 waits ──");
    terminal.shows("\"mei\"");
    terminal.shows(MENU);
    terminal.types("d\n");
    terminal.shows("reason >");
    terminal.types("not her\n");
    terminal.shows(&format!("batch complete, {run} goes on"));
    assert_eq!(bank.paid_by(&run), ["lin 1"]);
    terminal.shows("Nothing waits for you");
    terminal.types("q\n");
    assert_eq!(terminal.ended(), 0);
    assert!(!terminal.screen.contains('\u{1b}'), "NO_COLOR is set: {:?}", terminal.screen);
}

#[test]
fn what_is_not_high_takes_one_letter_and_the_riskiest_comes_first() {
    let bank = Bank::open();
    let memo = bank.asks("memo");
    bank.asks("pay");
    let mut terminal = watch(&bank, "0");
    terminal.shows("HIGH  pay");
    terminal.shows(MENU);
    terminal.types("s\n");
    terminal.shows("MED  memo");
    terminal.shows("\"one\"");
    terminal.shows(MENU);
    terminal.types("a\n");
    terminal.shows("approved memo");
    terminal.shows("\"two\"");
    terminal.shows(MENU);
    terminal.types("a\n");
    terminal.shows("batch complete");
    terminal.shows("(1 skipped");
    assert_eq!(bank.paid_by(&memo), ["memo one", "memo two"]);
    assert_eq!(bank.open_requests().len(), 1);
}

#[test]
fn keys_from_before_a_request_could_be_read_decide_nothing() {
    let bank = Bank::open();
    bank.asks("pay");
    let mut terminal = Terminal::new();
    // Typed ahead, whole lines and the beginning of one.
    terminal.types("d\nbecause\na");
    start(&bank, "300", &mut terminal);
    terminal.shows("HIGH  pay");
    terminal.shows("(ignored: typed before this could be read)");
    terminal.shows(MENU);
    terminal.types("\n");
    terminal.shows("Type a letter, then Enter.");
    terminal.shows(MENU);
    assert_eq!(bank.open_requests().len(), 1);
    terminal.types("s\n");
    terminal.shows("Nothing waits for you (1 skipped: chancery approval ls)");
    terminal.types("q\n");
    assert_eq!(terminal.ended(), 0);
    assert_eq!(bank.open_requests().len(), 1);
}

#[test]
fn who_was_faster_is_said_and_the_next_one_comes() {
    let bank = Bank::open();
    bank.asks("two");
    let requests = bank.open_requests();
    let mut terminal = watch(&bank, "0");
    terminal.shows(MENU);
    let other = bank.chancery(&["approval", "deny", &requests[0], "-r", "I was faster"]);
    assert_eq!(other.code, 0, "{other:?}");
    terminal.shows(&format!("pay ({}) was denied by ", requests[0]));
    terminal.shows("ago: “I was faster”");
    terminal.shows(&format!("HIGH  pay  {}", requests[1]));
    terminal.shows(MENU);
    // Even if it was noticed only when answering.
    terminal.types("d\n");
    terminal.shows("reason >");
    let approved = bank.chancery(&["approval", "approve", &requests[1], "-c", "faster again"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    terminal.types("no\n");
    terminal.shows("granted by ");
    terminal.shows("Nothing waits for you");
    terminal.types("q\n");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn an_edit_in_the_middle_has_the_terminal_to_itself() {
    let bank = Bank::open();
    let run = bank.asks("pay");
    let mut terminal = Terminal::new();
    let mut command = bank.place.command(&["approval", "watch", "--settle-ms", "0"]);
    // An editor that reads from the terminal whom to pay.
    let editor = "sh -c 'printf \"whom? \"; read whom; printf \"{\\\"to\\\": \\\"%s\\\", \\\"amount\\\": 3}\" \"$whom\" > \"$0\"'";
    command.env("EDITOR", editor).env("TMPDIR", bank.place.dir.path());
    terminal.start(command);
    terminal.shows(MENU);
    terminal.types("e\n");
    terminal.shows("whom? ");
    terminal.types("mei\n");
    terminal.shows("\"mei\"");
    terminal.shows("Approve the edited call? (yes/no)");
    terminal.types("\n");
    terminal.shows("Approve the edited call? (yes/no)");
    terminal.types("yes\n");
    terminal.shows("reason: ");
    terminal.types("her turn\n");
    terminal.shows("edited   batch complete");
    assert_eq!(bank.paid_by(&run), ["mei 3"]);
}

#[test]
fn an_interrupt_leaves_at_once_and_decides_nothing() {
    let bank = Bank::open();
    bank.asks("pay");
    let mut terminal = watch(&bank, "0");
    terminal.shows(MENU);
    let pid = terminal.pid().to_string();
    assert!(program(Path::new("kill")).args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(terminal.ended(), 130);
    assert_eq!(bank.open_requests().len(), 1);
}

#[test]
fn without_a_terminal_lines_are_answers_in_their_turn() {
    let bank = Bank::open();
    let run = bank.asks("two");
    let told = "a\napprove\nfine\nd\nnot her\n";
    let watched = bank.place.told(&["approval", "watch"], told);
    assert_eq!(watched.code, 0, "{watched:?}");
    assert_eq!(bank.paid_by(&run), ["lin 1"]);
    bank.asks("pay");
    let watched = bank.place.told(&["approval", "watch"], "a\nappro");
    assert_eq!(watched.code, 0, "{watched:?}");
    assert_eq!(bank.open_requests().len(), 1);
}

#[test]
fn programs_read_a_line_for_every_request() {
    let bank = Bank::open();
    bank.asks("pay");
    let mut terminal = Terminal::new();
    terminal.start(bank.place.command(&["approval", "watch", "--json"]));
    terminal.shows("\n");
    let first: Value = serde_json::from_str(terminal.screen.lines().next().unwrap()).unwrap();
    assert_eq!((&first["event"], &first["permission"]["tool"]), (&"asked".into(), &"pay".into()));
    let request = first["permission"]["id"].as_str().unwrap();
    assert_eq!(bank.chancery(&["approval", "deny", request, "-r", "no"]).code, 0);
    terminal.shows("\"event\":\"decided\"");
}
