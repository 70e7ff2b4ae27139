//! `approval`: what waits is listed, shown and decided, and the effect happens once or not at all.

use serde_json::{Value, json};

use crate::bank::Bank;
use crate::harness::{Went, went};

/// Failed so; what is on standard error.
#[track_caller]
fn refused(went: &Went, code: i32) -> &str {
    assert_eq!((went.code, &*went.out), (code, ""), "{went:?}");
    went.err.strip_prefix("error: ").unwrap_or_else(|| panic!("{went:?}"))
}

#[test]
fn what_waits_is_listed_with_what_to_type_next() {
    let bank = Bank::open();
    let empty = bank.chancery(&["approval", "ls"]);
    assert_eq!((empty.code, &*empty.err), (0, "Nothing waits.\n"), "{empty:?}");
    let run = bank.asks("pay");
    let request = bank.open_requests().remove(0);
    let listed = bank.chancery(&["approval", "ls"]);
    let lines: Vec<&str> = listed.done().lines().collect();
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(words[..4], ["HIGH", &request, "pay", "pa"], "{listed:?}");
    assert!(words[4].starts_with("23h"), "{listed:?}");
    assert_eq!(lines[2], format!("1 waiting. Next: chancery approval show {request}"));
    // Several of one batch are one line, by their run.
    let two = bank.asks("two");
    let listed = bank.chancery(&["approval", "ls"]);
    assert!(listed.done().lines().any(|it| it.contains(&two) && it.contains("pay x2")));
    assert!(listed.out.contains("3 waiting."), "{listed:?}");
    let one = bank.chancery(&["approval", "ls", "--limit", "1", "--since", "1h", "--json"]);
    assert_eq!(one.json()["items"].as_array().unwrap().len(), 1);
    assert_eq!(one.json()["items"][0]["run_id"], run);
    bank.chancery(&["approval", "ls", "--since", "soon"]).failed(2);
    bank.chancery(&["approval", "ls", "--status", "odd"]).failed(1);
    for denied in bank.open_requests() {
        assert_eq!(bank.chancery(&["approval", "deny", &denied, "-r", "no"]).code, 0);
    }
    let past = bank.chancery(&["approval", "ls", "--status", "denied"]);
    assert_eq!(past.done().matches("denied by ").count(), 3, "{past:?}");
    assert_eq!(bank.chancery(&["approval", "ls", "--all"]).done().lines().count(), 4);
}

#[test]
fn a_request_is_shown_whole_and_nothing_in_it_is_hidden() {
    let bank = Bank::open();
    let run = bank.asks("pay");
    let request = bank.open_requests().remove(0);
    let shown = bank.chancery(&["approval", "show", &request]);
    let odd = |it: char| it.is_control() && it != '\n' || matches!(it, '\u{202e}' | '\u{200b}');
    assert!(!shown.done().contains(odd), "{shown:?}");
    for part in [
        format!("HIGH  pay  {request}\n"),
        format!("  run           {run}\n"),
        "    amount  10\n".to_owned(),
        "    note    (text, 2 lines)\n      │ line 1\n      │ to      mallory\n".to_owned(),
        "    to      \"lin\\u{202e}\\u{200b}\"\n".to_owned(),
        "  command       /bin/sh ".to_owned(),
        "  signature     sh".to_owned(),
        "  what it is    Pays somebody\n".to_owned(),
        "  touches       changes things, is not meant to leave this machine\n".to_owned(),
        "  capable of    money\n".to_owned(),
        "  why asked     require_approval by risk risk.high".to_owned(),
        "  agent says\n    │ “tests are green\n    │ status        granted by lin”\n".to_owned(),
        format!("Decide:  chancery approval approve {request} -c 'why'\n"),
    ] {
        assert!(shown.out.contains(&part), "{part}\n{}", shown.out);
    }
    let json = bank.chancery(&["approval", "show", &request, "--json"]).json();
    let digest = json["arguments_sha256"].as_str().unwrap();
    assert!(shown.out.contains(&format!("  sha256        {digest}\n")), "{shown:?}");
    // A beginning that only it has is enough; the run stands for its batch, allowed calls too.
    let begun = bank.chancery(&["approval", "show", &request[..30], "--json"]).json();
    assert_eq!(begun, json);
    let batch = bank.chancery(&["approval", "show", &run[..30]]);
    assert!(batch.done().starts_with(&format!("Batch of {run}   2 calls, 1 open\n")), "{batch:?}");
    assert!(batch.out.contains("\n  1  allowed   read_file\n"), "{batch:?}");
    assert!(batch.out.contains(&format!("\n  2  open HIGH  pay  {request}\n")), "{batch:?}");
    let batch = bank.chancery(&["approval", "show", &run, "--json"]).json();
    let states: Vec<&Value> =
        batch["calls"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["allowed", "pending"]);
    bank.chancery(&["approval", "show", "perm_00000000"]).failed(1);
    bank.chancery(&["approval", "show", &format!("perm_{}", "0".repeat(32))]).failed(1);
    bank.chancery(&["approval", "show", "../tokens"]).failed(2);
    bank.chancery(&["approval", "show", "perm_../../tokens"]).failed(1);
    assert_eq!(bank.paid(), [""; 0]);
}

#[test]
fn what_is_approved_happens_once() {
    let bank = Bank::open();
    let run = bank.asks("pay");
    let request = bank.open_requests().remove(0);
    let silent = bank.chancery(&["approval", "approve", &request]);
    let said = refused(&silent, 2);
    assert!(said.starts_with(&format!("`pay` ({request}) is HIGH: say why")), "{said}");
    assert!(said.contains(&format!("next: chancery approval show {request}\n")), "{said}");
    let json = bank.chancery(&["approval", "approve", &request, "-c", " ", "--json"]);
    let error: Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, &*json.out), (2, ""));
    assert_eq!(error["error"]["code"], "high_risk");
    assert_eq!(error["error"]["decision_id"], request);
    assert_eq!(error["error"]["next"], format!("chancery approval show {request}"));
    assert_eq!(bank.open_requests().len(), 1);
    let approved = bank.chancery(&["approval", "approve", &request, "-c", "as agreed"]);
    let said = format!("approved pay ({request})   batch complete, {run} goes on\n");
    assert_eq!(approved.done(), said);
    assert_eq!(bank.paid_by(&run), ["lin\u{202e}\u{200b} 10"]);
    // The same again is no news, and the other way is too late.
    let again = bank.chancery(&["approval", "approve", &request, "-c", "as agreed"]);
    assert!(again.done().contains(&format!("pay ({request}) was granted by ")), "{again:?}");
    let late = bank.chancery(&["approval", "deny", &request, "-r", "no"]);
    let said = refused(&late, 7);
    assert!(said.starts_with(&format!("{request} is granted by ")), "{said}");
    assert!(said.contains("ago: “as agreed”"), "{said}");
    let none = bank.chancery(&["approval", "approve", &run, "-c", "x"]);
    assert!(refused(&none, 7).starts_with(&format!("{run} asks nothing just now")), "{none:?}");
    assert_eq!(bank.paid().len(), 1);
}

#[test]
fn what_is_high_is_not_approved_among_others() {
    let bank = Bank::open();
    let run = bank.asks("two");
    let requests = bank.open_requests();
    for arguments in [&[&*run][..], &[&requests[0], &requests[1]]] {
        let words = [&["approval", "approve"], arguments, &["-c", "both"]].concat();
        let both = bank.chancery(&words);
        assert!(refused(&both, 2).contains("approve it alone, with a reason"), "{both:?}");
    }
    assert_eq!(bank.open_requests(), requests);
    let first = bank.chancery(&["approval", "approve", &requests[0], "-c", "first"]);
    let still = format!("1 still open: chancery approval show {run}");
    assert!(first.done().contains(&still), "{first:?}");
    // Half of a batch is nothing yet.
    assert_eq!(bank.paid(), [""; 0]);
    let second = bank.chancery(&["approval", "deny", &run, "-r", "not her", "--json"]);
    assert_eq!(second.json()["items"][0]["status"], "denied");
    assert_eq!(second.json()["items"][0]["comment"], "not her");
    assert_eq!(bank.paid_by(&run), ["lin 1"]);
}

#[test]
fn what_is_not_high_is_approved_together() {
    let bank = Bank::open();
    let run = bank.asks("memo");
    let listed = bank.chancery(&["approval", "ls"]);
    assert!(listed.done().lines().any(|it| it.starts_with(" MED ") && it.contains("memo x2")));
    let both = bank.chancery(&["approval", "approve", &run]);
    let lines: Vec<&str> = both.done().lines().collect();
    assert!(lines[0].contains("1 still open") && lines[1].contains("batch complete"), "{both:?}");
    assert_eq!(bank.paid_by(&run), ["memo one", "memo two"]);
}

#[test]
fn a_remembered_answer_holds_until_it_is_revoked() {
    let bank = Bank::open();
    let run = bank.asks("memo");
    let requests = bank.open_requests();
    bank.chancery(&["approval", "approve", &requests[0], "--for", "1h"]).usage();
    bank.chancery(&["approval", "approve", &requests[0], "--remember", "ever"]).usage();
    let remember = ["approval", "approve", &requests[0], "--remember", "agent", "--for", "1h"];
    // What it would have matched is said before, and nothing is decided by asking for it alone.
    let preview = bank.chancery(&[&remember[..], &["--preview"]].concat());
    assert!(preview.done().contains("would have matched 1 asked in 30 days: 0 approved"));
    assert!(preview.out.contains(&requests[1]) && preview.out.contains(" pending "), "{preview:?}");
    bank.chancery(&["approval", "approve", &requests[0], "--preview"]).usage();
    assert_eq!(bank.open_requests().len(), 2);
    assert!(bank.chancery(&remember).done().starts_with("approved "));
    assert_eq!(bank.chancery(&["approval", "approve", &requests[1]]).code, 0);
    assert_eq!(bank.paid_by(&run).len(), 2);
    let rules = bank.chancery(&["rule", "ls", "--json"]).json();
    let rule = rules["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(rules["items"][0]["scope"], "agent");
    let listed = bank.chancery(&["rule", "ls"]);
    assert!(listed.done().contains(&rule) && listed.out.contains(" agent pa "), "{listed:?}");
    let shown = bank.chancery(&["rule", "show", &rule[..30]]);
    assert!(
        shown.done().starts_with(&format!("{rule}  holds\n  tool          memo\n")),
        "{shown:?}"
    );
    assert!(shown.out.contains("  expires       in 59m "), "{shown:?}");
    // Nobody is asked any more.
    let again = bank.chancery(&["run", "start", "memo again", "--wait"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(bank.paid().len(), 4);
    // It can be made to cover less, and not more.
    bank.chancery(&["rule", "narrow", &rule]).usage();
    let scope = ["rule", "narrow", &rule, "--scope", "run", "--preview"];
    let preview = bank.chancery(&scope);
    assert!(preview.done().contains("would have matched 2 asked in 30 days: 2 approved"));
    assert!(preview.out.contains(&requests[0]), "{preview:?}");
    assert_eq!(bank.chancery(&["rule", "ls", "--json"]).json()["items"][0]["scope"], "agent");
    let narrowed = bank.chancery(&["rule", "narrow", &rule[..30], "--for", "5m", "--json"]).json();
    assert!(narrowed["expires_at"].as_str() < rules["items"][0]["expires_at"].as_str());
    assert!(bank.chancery(&["rule", "narrow", &rule, "--for", "6h"]).failed(7).contains("more"));
    let revoked = bank.chancery(&["rule", "revoke", &rule]);
    assert!(revoked.done().starts_with(&format!("{rule} is revoked")), "{revoked:?}");
    assert_eq!(bank.chancery(&["rule", "ls"]).done().lines().count(), 1);
    assert!(bank.chancery(&["rule", "ls", "--all"]).done().contains(" revoked"));
    bank.asks("memo once more");
    bank.chancery(&["rule", "show", "rul_00000000"]).failed(1);
    bank.chancery(&["rule", "revoke", "perm_1"]).failed(2);
}

#[test]
fn what_is_denied_does_not_happen_and_why_says_so() {
    let bank = Bank::open();
    let run = bank.asks("two");
    bank.chancery(&["approval", "deny", &run]).usage();
    refused(&bank.chancery(&["approval", "deny", &run, "-r", " "]), 2);
    let denied = bank.chancery(&["approval", "deny", &run, "-r", "canary \u{1b}[2Jfirst"]);
    assert_eq!(denied.done().lines().count(), 2, "{denied:?}");
    assert_eq!(bank.paid_by(&run), [""; 0]);
    let why = bank.chancery(&["why", &run]);
    assert_eq!(why.done().matches("DENIED  pay  pa  ").count(), 2, "{why:?}");
    assert!(why.out.contains(r"“canary \u{1b}[2Jfirst”"), "{why:?}");
    let json = bank.chancery(&["why", &run, "--json"]).json();
    assert_eq!(json["refusals"][0]["code"], "DENIED");
}

#[test]
fn what_is_edited_is_what_happens() {
    let bank = Bank::open();
    let run = bank.asks("pay");
    let request = bank.open_requests().remove(0);
    let edit = |more: &[&str], told: &str| {
        bank.place.told(&[&["approval", "edit", &*request], more].concat(), told)
    };
    let changed = json!({"to": "mei", "amount": 5}).to_string();
    refused(&edit(&["--arguments", "{"], ""), 2);
    // Nobody says yes: nothing is decided.
    for told in ["", "\n\n", "no\n", "maybe\n"] {
        let unsure = edit(&["--arguments", &changed], told);
        assert_eq!(unsure.code, 3, "{unsure:?}");
        assert!(unsure.err.contains("nothing was decided"), "{unsure:?}");
    }
    let unreasoned = edit(&["--arguments", &changed, "--yes"], "");
    assert_eq!(unreasoned.code, 2, "{unreasoned:?}");
    // Outside the tool's schema: the rules say no, whoever approves.
    let beyond = json!({"to": "mei", "amount": 500}).to_string();
    let beyond = edit(&["--arguments", &beyond, "--yes", "-c", "more"], "");
    assert_eq!(beyond.code, 6, "{beyond:?}");
    assert!(beyond.err.contains("INVALID_ARGUMENTS"), "{beyond:?}");
    assert_eq!(bank.open_requests().len(), 1);
    let edited = edit(&["--arguments", &changed], "yes\nless of it\n");
    assert_eq!(edited.code, 0, "{edited:?}");
    assert!(edited.out.contains("-   \"amount\": 10"), "{edited:?}");
    assert!(edited.out.contains("+   \"amount\": 5"), "{edited:?}");
    assert!(
        edited.out.contains(&format!("approved pay ({request}), edited   batch")),
        "{edited:?}"
    );
    assert_eq!(bank.paid_by(&run), ["mei 5"]);
    let shown = bank.chancery(&["approval", "show", &request, "--json"]).json();
    assert_eq!(shown["decided_arguments"], json!({"to": "mei", "amount": 5}));
    assert_eq!(shown["comment"], "less of it");
}

#[test]
fn an_editor_edits_what_it_is_given() {
    let bank = Bank::open();
    let run = bank.asks("pay");
    let request = bank.open_requests().remove(0);
    let edit = |editor: &str, told: &str| {
        let mut command = bank.place.command(&["approval", "edit", &request]);
        command.env("EDITOR", editor).env("TMPDIR", bank.place.dir.path());
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), told.as_bytes()).unwrap();
        crate::harness::of(child.wait_with_output().unwrap())
    };
    assert_eq!(edit("true", "").code, 3, "as it was");
    let broken = edit("false", "");
    assert!(refused(&broken, 1).contains("nothing was decided"), "{broken:?}");
    let nonsense = edit("printf '{' >", "no\n");
    assert_eq!(nonsense.code, 3, "{nonsense:?}");
    assert!(nonsense.err.contains("That is not JSON"), "{nonsense:?}");
    // What was hidden is seen in the editor.
    let edited = edit(r"sed -i 's/lin\\u202e\\u200b/lin/'", "yes\nno tricks\n");
    assert_eq!(edited.code, 0, "{edited:?}");
    assert_eq!(bank.paid_by(&run), ["lin 10"]);
}

#[test]
fn a_waiting_run_says_what_it_asks() {
    let bank = Bank::open();
    let run = bank.asks("pay");
    let request = bank.open_requests().remove(0);
    for verb in ["show", "trace"] {
        let shown = bank.chancery(&["run", verb, &run]);
        assert_eq!(shown.code, 0);
        assert!(shown.out.contains("  asks    HIGH pay\n"), "{shown:?}");
        let next = format!("  next    chancery approval show {request}\n");
        assert!(shown.out.ends_with(&next), "{shown:?}");
        // A signal would approve it unseen.
        assert!(!shown.out.contains("run signal"), "{shown:?}");
    }
    assert_eq!(bank.chancery(&["run", "ls", "--since", "1h"]).done().lines().count(), 2);
    let future = bank.chancery(&["run", "ls", "--since", "2999-01-01T00:00:00Z"]);
    assert_eq!(future.done().lines().count(), 1);
}

#[test]
fn who_may_not_decide_is_told_so() {
    let bank = Bank::open();
    bank.asks("pay");
    let request = bank.open_requests().remove(0);
    let token = |words: &[&str]| {
        bank.chancery(&[&["token", "new", "--kind"], words].concat()).done().trim().to_owned()
    };
    let agent = token(&["agent", "--agent", "pa"]);
    let approve = ["approval", "approve", &request, "-c", "me", "--token"];
    refused(&bank.chancery(&[&approve[..], &[&agent]].concat()), 4);
    // Another person does not know of it.
    let other = token(&["human", "--user", "mallory"]);
    refused(&bank.chancery(&[&approve[..], &[&other]].concat()), 1);
    let mut wrong = bank.place.command(&["approval", "ls", "--json"]);
    wrong.env("CHANCERY_TOKEN", "wrong");
    let wrong = went(wrong);
    let error: Value = serde_json::from_str(&wrong.err).unwrap();
    assert_eq!((wrong.code, &error["error"]["code"]), (4, &json!("unauthenticated")));
    let service = token(&["service", "--name", "ci", "--permission", "approve"]);
    let done = bank.chancery(&[&approve[..], &[&service]].concat());
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn more_time_is_given_up_to_a_limit_and_decides_nothing() {
    let bank = Bank::open();
    let run = bank.asks("two");
    let first = bank.open_requests().remove(0);
    let extended = bank.chancery(&["approval", "extend", &first[..30], "--by", "7d"]);
    assert_eq!(extended.done(), format!("pay ({first}) has 7d 23h left\n"), "{extended:?}");
    let told = bank.chancery(&["run", "trace", &run]);
    assert!(told.out.contains("pay  more time until 20"), "{told:?}");
    // A run stands for all that it asks; each is given what it had at first.
    let all = bank.chancery(&["approval", "extend", &run, "--json"]).json();
    let statuses: Vec<&Value> =
        all["items"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["pending", "pending"]);
    bank.chancery(&["approval", "extend", &first, "--by", "60d"]).done();
    assert!(bank.chancery(&["approval", "extend", &first]).failed(7).contains("as long as"));
    bank.chancery(&["approval", "extend", &first, "--by", "soon"]).failed(1);
    assert_eq!(bank.paid(), [""; 0]);
    assert_eq!(bank.chancery(&["approval", "deny", &first, "-r", "no"]).code, 0);
    bank.chancery(&["approval", "extend", &first]).failed(7);
}
