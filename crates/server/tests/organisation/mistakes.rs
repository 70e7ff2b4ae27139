//! Mistakes are found all at once, each with its place and a hint.

use chancery_server::organisation::{load, read_files};

use super::{loaded, said};

#[test]
fn every_mistake_in_every_file_is_reported_at_once() {
    let dir = chancery_testkit::package().join("tests/organisation/broken");
    let (files, mistakes) = read_files(Some(&dir));
    let mistakes = load(files, mistakes).unwrap_err();
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// With roles `top`, `mid` and `low`, an agent each, and this in place of `…`.
fn roles(low: &str, more: &str) -> String {
    format!(
        "roles:\n  top: {{level: 1}}\n  mid: {{level: 2, reports_to: [top]}}\n  low: {{level: 3, \
         reports_to: [mid]{low}}}\nagents:\n  top: {{role: top}}\n  mid: {{role: mid}}\n  \
         low: {{role: low}}\n{more}"
    )
}

#[test]
fn a_sound_organisation_has_no_mistakes() {
    assert_eq!(said(&[("roles.yaml", &roles("", ""))]), "");
}

#[test]
fn a_circle_in_the_chain_of_command_is_named() {
    let text = "roles: {a: {reports_to: [b]}, b: {reports_to: [c]}, c: {reports_to: [a, d]}, \
                d: {reports_to: [d]}}\nagents: {a: {role: a}}";
    let said = said(&[("roles.yaml", text)]);
    let circles: Vec<&str> = said.lines().filter(|it| it.contains("E203")).collect();
    assert_eq!(
        circles,
        [
            "roles.yaml:1:70: E203 a circle in the chain of command: a → b → c → a",
            "roles.yaml:1:95: E203 a circle in the chain of command: d → d",
        ]
    );
}

#[test]
fn what_works_but_hardly_as_meant_is_a_warning() {
    for (file, text, warning) in [
        ("roles.yaml", roles(", tools: [git_psuh]", ""), "W102"),
        ("roles.yaml", roles(", deny_tools: [\"gti_*\"]", ""), "W102"),
        ("roles.yaml", roles("", "users: {lin: {denied_tools: [mcp__none__x]}}"), "W102"),
        ("roles.yaml", roles(", tools: [read_file], deny_tools: [\"read_*\"]", ""), "W103"),
        ("policy.yaml", "capabilities: {telepathy: deny}".to_owned(), "W104"),
        ("policy.yaml", "tools: {\"gti_*\": deny}".to_owned(), "W102"),
        ("roles.yaml", roles("", "").replace("level: 2", "level: 3"), "W105"),
        ("roles.yaml", roles(", tools: [\"docker_*\"]", "users: {lin: {}}"), "W106"),
        ("roles.yaml", roles(", contacts: {mid: always}", ""), "W107"),
        ("roles.yaml", roles(", contacts: {mid: always}", ""), "W108"),
        ("roles.yaml", "users: {lin: {approver: true}}".to_owned(), "W109"),
        ("tools.yaml", "tools: {nobody: {risk: low}}".to_owned(), "W102"),
    ] {
        let files: &[(&str, &str)] = &[(file, &text)];
        assert!(loaded(files).is_ok(), "{}", said(files));
        assert!(said(files).contains(warning), "{warning} is not in {}", said(files));
    }
}

#[test]
fn a_name_that_is_drawn_like_another_is_none() {
    for name in ["ceo\u{200b}", "c\u{202e}oe", "\u{feff}ceo"] {
        let text = format!("roles: {{\"{name}\": {{level: 1}}}}\nagents: {{top: {{role: top}}}}\n");
        let said = said(&[("roles.yaml", &text)]);
        assert!(said.contains("E108") && !said.contains(name), "{said}");
    }
}

#[test]
fn an_approver_answers_what_is_asked() {
    let text = roles(", tools: [\"docker_*\"]", "users: {lin: {}, mei: {approver: true}}");
    assert_eq!(said(&[("roles.yaml", &text)]), "");
}

#[test]
fn tools_of_a_server_that_is_not_there_yet_may_match() {
    let tools = "mcp: {tracker: {url: \"https://tracker.example/mcp\"}}\n\
                 commands: {pay: {description: Pays, command: [pay], capabilities: [gold]}}";
    let text = roles(", tools: [\"mcp__tracker__*\", mcp__tracker__add, \"mcp__*\", pay]", "");
    let policy = "capabilities: {gold: require_human}";
    let files = [("roles.yaml", &*text), ("tools.yaml", tools), ("policy.yaml", policy)];
    assert_eq!(said(&files), "");
}

#[test]
fn a_file_that_cannot_be_read_makes_no_mistakes_in_others() {
    let groups = "groups: {g: {members: [nobody_known]}}";
    let said = said(&[("roles.yaml", "roles: [\n"), ("groups.yaml", groups)]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("roles.yaml:") && said.contains("E101"), "{said}");
}

#[test]
fn a_command_is_checked_as_it_will_be_called() {
    for (text, place, part) in [
        ("commands: {x: {description: d, command: [x, \"{who}\"]}}", "1:12: E111", "{who}"),
        ("commands: {x: {description: d, command: [\"{p}\"]}}", "1:12: E111", "{p}"),
        (
            "commands:\n  x: {description: d, command: [x], parameters: {type: 7}}",
            "2:3: E111",
            "JSON Schema",
        ),
        ("commands: {x: {description: d, command: [x], timeout: soon}}", "1:55: E110", "soon"),
    ] {
        let said = said(&[("tools.yaml", text)]);
        assert!(said.contains(&format!("tools.yaml:{place}")), "{said}");
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_command_in_the_place_of_a_tool_that_holds_to_rules_is_warned_of() {
    let command = "{description: d, command: [x]}";
    let text = format!("commands:\n  send_mail: {command}\n  run_test: {command}\n");
    let said = said(&[("tools.yaml", &text)]);
    let warnings: Vec<&str> = said.lines().filter(|it| it.contains("W111")).collect();
    let warning = "tools.yaml:2:3: W111 command `send_mail` is in the place of the tool";
    assert!(warnings.len() == 1 && warnings[0].starts_with(warning), "{said}");
}

#[test]
fn who_extends_overrides_key_by_key() {
    let text = "extends: builtin\n\
                roles:\n  backend_worker: {deny_tools: [git_push]}\n  auditor: {level: 2}\n\
                agents: {auditor: {role: auditor}}\n";
    let org = loaded(&[("roles.yaml", text)]).unwrap().org;
    let role = org.role(&"backend_worker".into()).unwrap();
    assert_eq!(role.tools.as_ref().unwrap().len(), 13);
    assert_eq!(role.deny_tools[0].value, "git_push");
    assert_eq!(role.deny_tools[0].place.as_ref().unwrap().to_string(), "roles.yaml:3");
    let bound = role.tools.as_ref().unwrap()[0].place.as_ref().unwrap();
    assert_eq!(&*bound.file, "builtin/roles.yaml");
    assert_eq!(org.agents().count(), 11);

    let alone = text.strip_prefix("extends: builtin\n").unwrap();
    let org = loaded(&[("roles.yaml", alone)]).unwrap().org;
    assert!(org.role(&"backend_worker".into()).unwrap().tools.is_none());
    assert_eq!(org.agents().count(), 1);
    // The built-in groups have nobody to work with there.
    assert!(org.groups.is_empty());
}

#[test]
fn an_absent_list_is_no_limit_and_an_empty_one_allows_nothing() {
    let org = loaded(&[("roles.yaml", &roles(", tools: []", ""))]).unwrap().org;
    assert_eq!(org.role(&"low".into()).unwrap().tools, Some(Vec::new()));
    assert_eq!(org.role(&"mid".into()).unwrap().tools, None);
    let said = said(&[("roles.yaml", &roles(", tools: ", ""))]);
    assert!(said.contains("E104") && said.contains("`[]`"), "{said}");
}
