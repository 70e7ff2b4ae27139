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
