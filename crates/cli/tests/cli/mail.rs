//! `mail`, `contract` and `can-mail`, against a server of the real binary.

use serde_json::Value;

use crate::harness::Place;

#[test]
fn the_board_issues_a_contract_and_follows_it() {
    let place = Place::configured("[mail]\ndrives_work = false\n");
    let _server = place.serve(&[]);
    let json = |words: &[&str]| place.chancery(&[words, &["--json"]].concat()).json();
    let issued = json(&["contract", "new", "--to", "ceo", "--title", "Ship it"]);
    let id = issued["id"].as_str().unwrap();
    assert_eq!(issued["state"], "pending");
    let shown = place.chancery(&["contract", "show", id]).out;
    assert!(shown.contains("Ship it") && shown.contains("board to ceo"), "{shown}");
    let listed = json(&["contract", "ls", "--state", "pending"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    let closed = json(&["contract", "close", id, "--note", "not now"]);
    assert_eq!(closed["state"], "cancelled");
    let inbox = json(&["mail", "ls", "--agent", "ceo"]);
    assert_eq!(inbox["items"][0]["type"], "contract");
}

#[test]
fn can_mail_says_no_with_the_step_and_exit_code_six() {
    let place = Place::configured("[mail]\ndrives_work = false\n");
    let _server = place.serve(&[]);
    let json = |words: &[&str]| place.chancery(&[words, &["--json"]].concat()).json();
    let went = place.chancery(&["can-mail", "backend_worker", "ceo", "--type", "info"]);
    assert_eq!(went.code, 6, "{went:?}");
    assert!(went.out.contains("step `contact`"), "{went:?}");
    let went = place.chancery(&["can-mail", "ceo", "it_manager", "--type", "contract"]);
    assert_eq!(went.code, 0, "{went:?}");
    let sent = json(&["mail", "send", "--to", "ceo", "--subject", "s"]);
    let shown: Value = json(&["mail", "show", sent["id"].as_str().unwrap()]);
    assert_eq!(shown["from"], "board");
    let went = place.chancery(&["mail", "send", "--to", "qa_worker", "--subject", "s"]);
    assert_eq!(went.code, 4, "{went:?}");
    let rejected = json(&["mail", "rejections"]);
    assert_eq!(rejected["items"][0]["to_agent"], "qa_worker");
}

#[test]
fn every_rejected_mail_is_explained_whether_the_audit_has_it_or_not() {
    let place = Place::configured("[mail]\ndrives_work = false\n");
    let _server = place.serve(&[]);
    let rejected = || place.chancery(&["mail", "rejections", "--json"]).json()["items"][0].clone();
    let went = place.chancery(&["mail", "send", "--to", "qa_worker", "--subject", "s"]);
    assert_eq!(went.code, 4, "{went:?}");
    let explained = |id: &str| {
        // What is listed is what is asked for.
        let listed = place.chancery(&["mail", "rejections"]).out;
        assert!(listed.trim_end().ends_with(id), "{listed}");
        let told = place.chancery(&["why", id]);
        let ways = "What would let it through";
        for part in ["contact", "may not write to `qa_worker`", "By the rules in force (v", ways] {
            assert!(told.code == 0 && told.out.contains(part), "{part}: {told:?}");
        }
        told.out
    };
    let (entry, number) = (rejected()["audit_id"].clone(), rejected()["id"].clone());
    assert!(explained(entry.as_str().unwrap()).starts_with("DENIED"), "{entry}");
    // One that was recorded before the audit had entries of them.
    let database = rusqlite::Connection::open(place.path("chancery-data/chancery.db")).unwrap();
    let gone = database.execute("DELETE FROM audit WHERE kind = 'mail.rejected'", []).unwrap();
    assert_eq!((gone, &rejected()["audit_id"]), (1, &Value::Null));
    let told = explained(number.as_str().unwrap());
    assert!(told.starts_with("REJECTED  info  board to qa_worker"), "{told}");
    assert_eq!(place.chancery(&["why", "77"]).code, 1);
}
