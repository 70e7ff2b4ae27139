//! The tools that there are without anybody's configuration, by name, with what they are taken
//! to be when files are checked. What a tool is when it is called, it says itself.

use chancery_domain::policy::Risk::{self, High, Low, Medium};

/// The forty of the built-in organisation, and those that belong to no role.
pub const TOOLS: &[(&str, Risk, &[&str])] = &[
    ("approve_deployment", Medium, &[]),
    ("assign_task", Low, &[]),
    ("conclude", Low, &[]),
    ("create_agent_jd", High, &[]),
    ("create_contract", Medium, &[]),
    ("deactivate_agent", High, &[]),
    ("docker_build", Medium, &[]),
    ("docker_deploy", High, &["deploy"]),
    ("escalate", Low, &[]),
    ("escalate_to_group", Medium, &[]),
    ("generate_contract", Medium, &[]),
    ("git_branch", Medium, &[]),
    ("git_commit", Medium, &[]),
    ("git_push", Medium, &[]),
    ("list_agents", Low, &[]),
    ("list_available_groups", Low, &[]),
    ("manage_backlog", Low, &[]),
    ("manage_ci_config", High, &[]),
    ("manage_tools", High, &[]),
    ("memory_search", Low, &[]),
    ("memory_write", Low, &[]),
    ("prioritize_tasks", Low, &[]),
    ("read_code", Low, &[]),
    ("read_contract", Low, &[]),
    ("read_file", Low, &["read_files"]),
    ("read_logs", Low, &[]),
    ("read_reports", Low, &[]),
    ("read_tech_reports", Low, &[]),
    ("read_url", Medium, &[]),
    ("read_user_feedback", Low, &[]),
    ("record", Low, &[]),
    ("request_budget", Low, &[]),
    ("review_pr", Low, &[]),
    ("run_health_check", Low, &[]),
    ("run_linter", Low, &[]),
    ("run_test", Medium, &[]),
    ("send_mail", Low, &[]),
    ("submit_report", Low, &[]),
    ("update_agent_jd", High, &[]),
    ("update_org_chart", High, &[]),
    ("wait_for_signal", Low, &[]),
    ("web_search", Medium, &[]),
    ("write_file", Medium, &["write_files"]),
    ("write_note", Low, &[]),
    ("write_prd", Low, &[]),
    ("write_report", Low, &[]),
    ("write_verdict", Low, &[]),
];

/// Those of them that no command can stand for.
pub const BUILT_IN: &[&str] = &[
    "conclude",
    "escalate_to_group",
    "list_available_groups",
    "memory_search",
    "memory_write",
    "read_file",
    "record",
    "wait_for_signal",
    "write_file",
];

/// Capabilities that the built-in policy speaks of, so that an operator's tool can have them.
pub const CAPABILITIES: &[&str] = &["deploy", "payment", "send_email", "write_db"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_is_taken_to_be_is_what_it_says_of_itself() {
        for spec in chancery_runtime::tool::config::specs() {
            let known = TOOLS.iter().find(|it| it.0 == spec.name);
            let (_, risk, capabilities) = known.unwrap_or_else(|| panic!("{}", spec.name));
            assert_eq!(*risk, spec.risk, "{}", spec.name);
            assert_eq!(*capabilities, spec.capabilities, "{}", spec.name);
        }
    }
}
