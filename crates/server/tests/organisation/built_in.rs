//! The organisation that runs when the operator has written none.

use std::collections::BTreeSet;

use chancery_domain::policy::glob;

use super::{loaded, said};

const ROLES: [&str; 9] = [
    "ceo",
    "it_manager",
    "hr_manager",
    "product_manager",
    "backend_worker",
    "frontend_worker",
    "devops_worker",
    "qa_worker",
    "research_worker",
];

#[test]
fn the_matrix_of_roles_and_tools_is_as_reviewed() {
    let loaded = loaded(&[]).unwrap();
    let mut rows: Vec<String> = Vec::new();
    rows.push(format!("{:<20} ceo itm hrm pm  be  fe  dev qa  res", "tool"));
    // Those that belong to no role, and those that every role has.
    let others = ["wait_for_signal", "memory_search", "memory_write", "record"];
    let names = loaded.facts.names().filter(|it| !others.contains(it));
    for tool in names {
        let cells = ROLES.iter().map(|role| {
            let role = loaded.org.role(&(*role).into()).unwrap();
            let bound = role.tools.as_ref().unwrap().iter().any(|it| glob(&it.value, tool));
            if bound { "Y   " } else { "-   " }
        });
        rows.push(format!("{tool:<20} {}", cells.collect::<String>().trim_end()));
    }
    assert_eq!(rows.len(), 44);
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn every_tool_is_bound_by_its_name_and_the_personal_agent_has_no_limit() {
    let org = loaded(&[]).unwrap().org;
    for role in org.roles() {
        let entries = role.tools.iter().flatten();
        assert!(entries.into_iter().all(|it| !it.value.contains('*')), "{}", role.id);
    }
    let pa = org.role_of(&"pa".into()).unwrap();
    assert!(pa.tools.is_none() && pa.deny_tools.is_empty());
    assert!(org.agent(&"pa".into()).unwrap().personal);
    let agents: BTreeSet<&str> = org.agents().map(|(id, _)| id.as_str()).collect();
    assert_eq!(agents, ROLES.into_iter().chain(["pa"]).collect());
}

#[test]
fn sixty_six_triples_of_mail_are_allowed_and_one_to_the_board() {
    let org = loaded(&[]).unwrap().org;
    let mut triples = Vec::new();
    for role in org.roles() {
        for (to, contact) in &role.contacts {
            let needs = if contact.needs_active_contract { " with a contract" } else { "" };
            let line = |kind: &String| format!("{} → {to}: {kind}{needs}", role.id);
            triples.extend(contact.types.iter().map(line));
        }
    }
    let board = triples.iter().filter(|it| it.contains("board")).count();
    assert_eq!((triples.len() - board, board), (66, 1));
    insta::assert_snapshot!(triples.join("\n"));
}

#[test]
fn what_is_built_in_has_the_one_weakness_that_it_is_known_for() {
    assert_eq!(
        said(&[]),
        "builtin/roles.yaml:192:3: W101 `frontend_worker` has no `escalate` tool: when it is \
         stuck it has no way up\n\
         builtin/roles.yaml:289:3: W101 `research_worker` has no `escalate` tool: when it is \
         stuck it has no way up\n"
    );
}

#[test]
fn written_out_it_is_the_same_organisation() {
    let built_in = loaded(&[]).unwrap();
    let files: Vec<(String, String)> =
        built_in.files.whole().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let written = loaded(&files).unwrap();
    let names = |it: &chancery_domain::org::Org| {
        it.roles().map(|it| (it.id.clone(), it.contacts.clone())).collect::<Vec<_>>()
    };
    assert_eq!(names(&written.org), names(&built_in.org));
    assert_eq!(written.org.groups.len(), 2);
    assert_ne!(written.files.digest(), built_in.files.digest());
}

#[test]
fn the_matrix_of_who_writes_what_to_whom_is_as_reviewed() {
    let org = loaded(&[]).unwrap().org;
    let open = chancery_domain::mail::triples(&org);
    let among = |it: &&(String, String, String)| ROLES.contains(&&*it.0) && ROLES.contains(&&*it.1);
    assert_eq!(open.keys().filter(among).count(), 66);
    let to_board: Vec<_> = open.keys().filter(|it| it.1 == "board").collect();
    assert_eq!(to_board.len(), 1, "{to_board:?}");
    let mut rows = std::collections::BTreeMap::<(String, String), Vec<String>>::new();
    for ((from, to, kind), bound) in open {
        let kind = if bound { format!("{kind}*") } else { kind };
        rows.entry((from, to)).or_default().push(kind);
    }
    let rows = rows
        .into_iter()
        .map(|((from, to), kinds)| format!("{from:<16} {to:<16} {}", kinds.join(" ")));
    insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"));
}
