//! `chancery org`: files without a server, versions with one.

use serde_json::json;

use crate::harness::Place;

#[test]
fn what_is_written_out_has_no_mistakes_and_is_not_written_over() {
    let place = Place::new();
    place.chancery(&["org", "init", "org"]).done();
    let checked = place.chancery(&["org", "check", "org"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.out.starts_with("org   10 agents, 47 tools, 2 problems\nW101 "), "{checked:?}");
    assert!(checked.out.ends_with("0 errors, 2 warnings\n"), "{checked:?}");
    assert_eq!(
        place.chancery(&["org", "diff", "builtin", "org"]).done(),
        "no difference in meaning\n"
    );

    std::fs::write(place.path("org/roles.yaml"), "roles: {}").unwrap();
    place.chancery(&["org", "init", "org"]).failed(2);
    assert_eq!(std::fs::read_to_string(place.path("org/roles.yaml")).unwrap(), "roles: {}");
    assert!(!place.path("chancery-data").exists());
}

#[test]
fn every_mistake_is_shown_with_its_place_and_a_hint() {
    let place = Place::new();
    std::fs::create_dir(place.path("org")).unwrap();
    place.write("org/roles.yaml", "roles:\n  a: {tols: []}\nagents:\n  x: {role: b}\n");
    place.write("org/policy.yaml", "risk: {high: alow}\n");
    let checked = place.chancery(&["org", "check", "org"]);
    assert_eq!((checked.code, &*checked.err), (1, ""));
    assert_eq!(
        checked.out,
        "org   3 problems\n\
         E107 `risk.high` is `alow`, which is none of `allow`, `require_approval`, `require_human`, \
         `deny`  policy.yaml:1:14\n     did you mean `allow`?\n\
         E105 `tols` is not a key that is known in `roles.a`                                              \
         roles.yaml:2:7\n     did you mean `tools`?\n\
         E201 `agents.x.role` names a role that does not exist: `b`                                       \
         roles.yaml:4:13\n\
         3 errors, 0 warnings\n"
    );
    let json = place.chancery(&["org", "check", "org", "--json"]);
    assert_eq!(json.code, 1);
    assert_eq!(json.json()["mistakes"][1]["hint"], "did you mean `tools`?");
    assert_eq!(json.json()["errors"], 3);
    assert_eq!(place.chancery(&["org", "check", "nowhere"]).code, 1);
}

#[test]
fn the_chart_and_the_matrix_are_shown_without_a_server() {
    let place = Place::new();
    let chart = place.chancery(&["org", "show", "--chart"]);
    assert!(chart.done().starts_with("board (people)\n├ ceo  L1  7 tools\n"), "{}", chart.out);
    assert!(chart.out.contains("frontend_worker  L3  12 tools  (2 managers)"), "{}", chart.out);
    let mail = place.chancery(&["org", "show", "--mail", "--json"]).json();
    let open = mail["items"].as_array().unwrap();
    let clarifies = json!({"from": "product_manager", "to": "frontend_worker",
        "type": "requirement_clarification", "needs_contract": true});
    assert!(open.contains(&clarifies), "{mail}");
    assert!(!open.iter().any(|it| it["from"] == "backend_worker" && it["to"] == "ceo"), "{mail}");
    assert!(place.chancery(&["org", "show", "--mail"]).done().contains("an active contract"));
    place.chancery(&["org", "show", "--mail", "--chart"]).usage();
    let matrix = place.chancery(&["org", "show", "--tools", "--json"]).json();
    assert_eq!(
        matrix["ceo"],
        json!([
            "generate_contract",
            "memory_search",
            "memory_write",
            "read_reports",
            "record",
            "send_mail",
            "write_note"
        ])
    );
    assert!(place.chancery(&["org", "show"]).done().contains("no limit"));
}

#[test]
fn a_difference_is_said_in_meaning() {
    let place = Place::new();
    std::fs::create_dir(place.path("org")).unwrap();
    place.write("org/policy.yaml", "extends: builtin\ncapabilities: {deploy: allow}\n");
    place.write(
        "org/roles.yaml",
        "extends: builtin\nroles:\n  qa_worker: {deny_tools: [run_test]}\n\
         agents: {ceo: {active: false}}\nusers: {lin: {approver: true}}\n",
    );
    assert_eq!(
        place.chancery(&["org", "diff", "builtin", "org"]).done(),
        "- role qa_worker: loses tool run_test\n\
         - role qa_worker: deny_tools: run_test is new\n\
         - agent ceo: is deactivated\n\
         + user lin: becomes an approver\n\
         + policy: capabilities.deploy becomes allow (was require_human)\n"
    );
}

#[test]
fn a_server_is_given_a_version_and_an_earlier_one_again() {
    let place = Place::configured("");
    std::fs::create_dir(place.path("new")).unwrap();
    place.write("new/policy.yaml", "extends: builtin\ntools: {git_push: deny}\n");
    let serving = place.serve(&[]);
    let change = "- policy: tools.git_push becomes deny (was allow)\n";
    assert_eq!(
        place.chancery(&["org", "apply", "new", "--dry-run"]).done(),
        format!("{change}it can be put in force; nothing was changed\n")
    );
    assert_eq!(
        place.chancery(&["org", "apply", "new"]).done(),
        format!("{change}version 2 is in force\n")
    );
    assert_eq!(place.chancery(&["org", "diff", "1"]).done(), change);
    let history = place.chancery(&["org", "history", "--json"]).json();
    let sources: Vec<_> =
        history["items"].as_array().unwrap().iter().map(|it| &it["source"]).collect();
    assert_eq!(sources, ["api", "built-in"]);

    place.chancery(&["org", "export", "out"]).done();
    let exported = std::fs::read_to_string(place.path("out/policy.yaml")).unwrap();
    assert_eq!(exported, "extends: builtin\ntools: {git_push: deny}\n");
    assert!(place.path("out/roles.yaml").exists());

    let reverted = place.chancery(&["org", "revert", "1"]);
    assert!(reverted.done().ends_with("version 3 is in force\n"), "{reverted:?}");
    assert_eq!(place.chancery(&["org", "diff", "1", "3"]).done(), "no difference in meaning\n");
    place.chancery(&["org", "revert", "9"]).failed(1);

    place.write("new/policy.yaml", "risk: {low: perhaps}\n");
    let refused = place.chancery(&["org", "apply", "new"]);
    assert_eq!(refused.code, 1);
    assert!(refused.out.contains("\nE107 "), "{refused:?}");
    assert_eq!(serving.stop(), 0);
}
