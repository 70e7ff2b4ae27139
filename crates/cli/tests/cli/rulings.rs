//! `can-i`, `why` and `policy`: what the rules would say, and why they said it.

use serde_json::{Value, json};

use crate::bank::Bank;
use crate::harness::Place;

/// Which role of the built-in organisation is given which tool.
const MATRIX: &str = "\
generate_contract Y--------
create_contract -YYY-----
send_mail YYYYYYYYY
write_note YYYY-----
read_reports YYYY-----
read_tech_reports -Y-------
read_code -Y-------
review_pr -Y-------
manage_tools -Y-------
assign_task -Y-------
approve_deployment -Y-------
request_budget -Y-------
create_agent_jd --Y------
update_agent_jd --Y------
deactivate_agent --Y------
update_org_chart --Y------
list_agents --Y------
write_prd ---Y-----
manage_backlog ---Y-----
read_user_feedback ---Y-----
prioritize_tasks ---Y-----
read_file ----YYYY-
write_file ----YYYY-
run_test ----YY-Y-
git_commit ----YY---
git_push ----YY---
git_branch ----YY---
docker_build ------Y--
docker_deploy ------Y--
manage_ci_config ------Y--
run_health_check ------Y--
read_logs ------Y--
run_linter -------Y-
write_verdict -------Y-
web_search --------Y
read_url --------Y
write_report --------Y
read_contract ----YYYYY
submit_report ----YYYYY
escalate -YYYY-YY-
";
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
fn can_i_says_yes_ask_or_no_and_runs_nothing() {
    let bank = Bank::open();
    let yes = bank.chancery(&["can-i", "pa", "read_file", "path=brief.txt"]);
    assert!(yes.done().starts_with("yes   "), "{yes:?}");
    let ask = bank.chancery(&["can-i", "pa", "pay", "to=lin", "amount:=10"]);
    assert_eq!((ask.code, &*ask.err), (8, ""), "{ask:?}");
    assert!(ask.out.starts_with("ask   require_approval by risk `risk.high"), "{ask:?}");
    let memo = bank.chancery(&["can-i", "pa", "memo", "text=x"]);
    assert!(memo.out.contains("`capabilities.paper (policy.yaml:3"), "{memo:?}");
    // What does not fit the schema is no call at all.
    let text = bank.chancery(&["can-i", "pa", "pay", "to=lin", "amount=10"]);
    assert_eq!(text.code, 6, "{text:?}");
    assert!(text.out.starts_with("no    deny by tool `INVALID_ARGUMENTS`"), "{text:?}");
    for no in [&["qa_worker", "pay"][..], &["pa", "vault"], &["pa", "nothing"], &["nobody", "pay"]]
    {
        let went = bank.chancery(&[&["can-i"], no].concat());
        assert_eq!((went.code, &*went.err), (6, ""), "{went:?}");
        assert!(
            went.out.starts_with("no    deny by ") && went.out.lines().count() == 1,
            "{went:?}"
        );
    }
    let json = bank.chancery(&["can-i", "pa", "pay", "--args", "{}", "--json"]);
    assert_eq!((json.code, &json.json()["ruling"]), (6, &json!("deny")));
    assert_eq!(json.json()["layers"].as_array().unwrap().len(), 8);
    // Under what a run was given, by the beginning of its id.
    let run = bank.asks("pay");
    let under = ["can-i", "pa", "memo", "--run", &run[..30], "--as", "operator"];
    assert_eq!(bank.chancery(&under).code, 8);
    bank.chancery(&["can-i", "pa", "memo", "--run", "run_00000000"]).failed(1);
    bank.chancery(&["can-i", "pa", "pay", "to"]).failed(2);
    bank.chancery(&["can-i", "pa", "pay", "--args", "[]"]).failed(2);
    bank.chancery(&["can-i", "pa", "pay", "to=lin", "--args", "{}"]).usage();
    assert_eq!(bank.paid(), [""; 0]);
}

#[test]
fn why_explains_a_ruling_by_its_id() {
    let bank = Bank::open();
    let asked = bank.chancery(&["can-i", "qa_worker", "vault", "--json"]).json();
    let id = asked["id"].as_str().unwrap();
    let why = bank.chancery(&["why", id]);
    assert!(why.done().starts_with("DENIED  vault  qa_worker  "), "{why:?}");
    for part in [
        "role",
        "FAIL",
        "capability",
        "What would let it through\n  ",
        "\n  org change  add `vault` to qa_worker.tools (builtin/roles.yaml:",
    ] {
        assert!(why.out.contains(part), "{part}: {why:?}");
    }
    assert_eq!(bank.chancery(&["why", id, "--json"]).json()["ruling"], "deny");
    bank.chancery(&["why", &format!("aud_{}", "0".repeat(32))]).failed(1);
    bank.chancery(&["why", "because"]).failed(2);
    // Somebody else's ruling is not there.
    let token = bank.chancery(&["token", "new", "--kind", "human", "--user", "mallory"]);
    let secret = token.done().trim();
    bank.chancery(&["why", id, "--token", secret]).failed(1);
}

#[test]
fn why_explains_a_request_and_the_refusals_of_a_run() {
    let bank = Bank::open();
    bank.asks("memo");
    let request = bank.open_requests().remove(0);
    let why = bank.chancery(&["why", &request[..30]]);
    assert!(why.done().starts_with("ASKED  memo  pa  "), "{why:?}");
    assert!(why.out.contains("All layers, as the rules are now (require_approval):\n"), "{why:?}");
    for line in ["  1 identity    pass ", "  6 capability  ask ", "  8 limits      - "] {
        assert!(why.out.lines().any(|it| it.starts_with(line)), "{line}: {why:?}");
    }
    let way = format!("  now         someone approves it: chancery approval show {request}\n");
    assert!(why.out.ends_with(&way), "{why:?}");
    let vault = bank.chancery(&["run", "start", "vault", "--wait", "--json"]);
    assert_eq!(vault.code, 0, "{vault:?}");
    let run = vault.json()["id"].as_str().unwrap().to_owned();
    let why = bank.chancery(&["why", &run]);
    assert!(why.done().starts_with("DENIED  vault  pa  "), "{why:?}");
    assert!(why.out.contains("capabilities.gold (policy.yaml:3"), "{why:?}");
    // Each refusal has an id, and that is explained too.
    let json = bank.chancery(&["why", &run, "--json"]).json();
    let id = json["refusals"][0]["decision_id"].as_str().unwrap();
    assert!(bank.chancery(&["why", id]).done().starts_with("DENIED  vault  pa  "));
    let nothing = bank.chancery(&["run", "start", "hello", "--wait", "--json"]).json();
    let nothing = nothing["id"].as_str().unwrap();
    assert_eq!(
        bank.chancery(&["why", nothing]).done(),
        format!("Nothing was refused in {nothing}.\n")
    );
    assert_eq!(bank.paid(), [""; 0]);
}

#[test]
fn a_policy_is_explained_layer_by_layer() {
    let bank = Bank::open();
    let words = ["policy", "explain", "--agent", "qa_worker", "--tool", "vault"];
    let explained = bank.chancery(&words);
    let lines: Vec<&str> = explained.done().lines().collect();
    assert_eq!(lines[0], "deny  vault  qa_worker");
    let layers: Vec<&str> =
        lines[1..9].iter().filter_map(|it| it.split_whitespace().nth(1)).collect();
    let all =
        ["identity", "tool", "delegation", "role", "risk", "capability", "arguments", "limits"];
    assert_eq!(layers, all, "{explained:?}");
    assert_eq!(explained.out.matches(" FAIL ").count(), 2, "role and capability: {explained:?}");
    let json = bank.chancery(&[&words[..], &["--args", "{}", "--json"]].concat()).json();
    assert_eq!(json["ruling"], "deny");
}

#[test]
fn expectations_are_held_against_the_server() {
    let bank = Bank::open();
    bank.place.write(
        "good.yaml",
        "- {agent: pa, tool: pay, expect: require_approval}\n\
         - {agent: pa, tool: pay, args: {to: lin, amount: 1000}, expect: deny}\n\
         - {agent: qa_worker, tool: read_file, args: {path: tests/x}, user: lin, expect: allow}\n",
    );
    let good = bank.chancery(&["policy", "test", "good.yaml"]);
    assert_eq!(good.done(), "3 expectations, 0 failed\n");
    bank.place.write(
        "bad.yaml",
        "- {agent: pa, tool: pay, expect: allow}\n- {agent: pa, tool: vault, expect: deny}\n",
    );
    let bad = bank.chancery(&["policy", "test", "bad.yaml"]);
    assert_eq!(bad.code, 1, "{bad:?}");
    let first = "FAILED 1  pa pay: expected allow, and it is require_approval\n";
    assert!(
        bad.out.starts_with(first) && bad.out.ends_with("\n2 expectations, 1 failed\n"),
        "{bad:?}"
    );
    assert!(bad.out.contains("  5 risk        ask     risk.high"), "{bad:?}");
    let json = bank.chancery(&["policy", "test", "bad.yaml", "--json"]);
    assert_eq!((json.code, &json.json()["failures"][0]["number"]), (1, &json!(1)));
    for wrong in ["[]", "", "- {agent: pa}", "- {agent: pa, tool: pay, expect: maybe}", "{"] {
        bank.place.write("wrong.yaml", wrong);
        let went = bank.chancery(&["policy", "test", "wrong.yaml"]);
        assert!(went.failed(2).starts_with("wrong.yaml"), "{wrong}: {went:?}");
    }
    bank.chancery(&["policy", "test", "absent.yaml"]).failed(1);
}

#[test]
fn the_built_in_matrix_is_the_one_that_was_decided() {
    let place = Place::new();
    let matrix = place.chancery(&["policy", "matrix", "--json"]).json();
    for line in MATRIX.lines() {
        let (tool, cells) = line.split_once(' ').unwrap();
        for (role, cell) in ROLES.into_iter().zip(cells.chars()) {
            let ruling = matrix[role][tool].as_str().unwrap();
            assert_eq!(ruling != "deny", cell == 'Y', "{role} {tool}: {ruling}");
        }
    }
    let tools: Vec<&String> = matrix["ceo"].as_object().unwrap().keys().collect();
    let known =
        |it: &&&String| MATRIX.lines().any(|line| line.split(' ').next() == Some(it.as_str()));
    let others: Vec<&str> = tools.iter().filter(|it| !known(it)).map(|it| it.as_str()).collect();
    assert_eq!(
        others,
        [
            "conclude",
            "escalate_to_group",
            "list_available_groups",
            "memory_search",
            "memory_write",
            "record",
            "wait_for_signal"
        ]
    );
    let shown = place.chancery(&["policy", "matrix"]);
    let deploy =
        shown.done().lines().find(|it| it.trim_start().starts_with("docker_deploy ")).unwrap();
    assert_eq!((deploy.matches('◐').count(), deploy.matches('✕').count()), (2, 8), "{deploy}");
    assert!(!place.path("chancery-data").exists());
}

#[test]
fn the_matrix_of_a_server_has_its_tools() {
    let bank = Bank::open();
    let matrix = bank.chancery(&["policy", "matrix", "--json"]).json();
    let cells: Vec<&Value> =
        ["pay", "memo", "vault", "read_file"].map(|it| &matrix["personal_agent"][it]).into();
    assert_eq!(cells, ["require_approval", "require_approval", "deny", "allow"]);
    assert_eq!(matrix["qa_worker"]["pay"], "deny");
}

#[test]
fn past_calls_are_ruled_on_under_files_that_are_not_in_force() {
    let bank = Bank::open();
    bank.asks("memo");
    std::fs::create_dir(bank.place.path("new")).unwrap();
    for file in ["tools.yaml", "policy.yaml"] {
        let text = std::fs::read_to_string(bank.place.path("org").join(file)).unwrap();
        bank.place.write(&format!("new/{file}"), &text);
    }
    let same = bank.chancery(&["policy", "diff", "new"]);
    let none = "0 of 2 calls would be ruled on otherwise\n0 of 0 mails would go otherwise: 0 \
                blocked ones delivered, 0 delivered ones blocked\n";
    assert_eq!((same.code, &*same.out), (0, none), "{same:?}");
    bank.place.write("new/policy.yaml", "extends: builtin\ncapabilities: {paper: allow}\n");
    let changed = bank.chancery(&["policy", "diff", "new", "--json"]).json();
    assert_eq!(changed["calls"], 2);
    let change = &changed["changes"][0];
    let words = [&change["tool"], &change["before"], &change["after"], &change["times"]];
    assert_eq!(words, [&json!("memo"), &json!("require_approval"), &json!("allow"), &json!(2)]);
    let shown = bank.chancery(&["policy", "diff", "new"]);
    assert!(shown.out.contains("require_approval -> allow"), "{shown:?}");
    assert!(shown.out.contains("2 of 2 calls would be ruled on otherwise\n"), "{shown:?}");
    // The mail of that time is tried, too.
    assert_eq!(bank.chancery(&["mail", "send", "--to", "qa_worker", "--subject", "s"]).code, 4);
    bank.place.write(
        "new/roles.yaml",
        "extends: builtin\nroles:\n  qa_worker: {reports_to: [it_manager, board]}\n",
    );
    let changed = bank.chancery(&["policy", "diff", "new", "--json"]).json();
    let mail = &changed["mail"];
    assert_eq!([&mail["mails"], &mail["passed"], &mail["blocked"]], [1, 1, 0], "{changed}");
    assert_eq!(mail["changes"][0]["to"], "qa_worker");
    let shown = bank.chancery(&["policy", "diff", "new"]);
    let told = "1 of 1 mails would go otherwise: 1 blocked ones delivered, 0 delivered ones \
                blocked\n";
    assert!(shown.out.ends_with(told) && shown.out.contains("deny -> allow"), "{shown:?}");
    assert_eq!(bank.chancery(&["policy", "diff", "nowhere"]).code, 1);
}
