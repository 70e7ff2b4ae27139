//! `run_test`, `run_linter` and `run_health_check` where the operator has said nothing: which
//! programs they are is the operator's to say, under `commands:` in `tools.yaml`.

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::CallResult;
use chancery_domain::policy::Risk;
use serde_json::json;

use super::spec::spec;
use super::{CallContext, Done, Tool, ToolSpec};

const ALL: [(&str, Risk, &str, &str); 3] = [
    ("run_test", Risk::Medium, "Runs the project's tests", "[cargo, test]"),
    ("run_linter", Risk::Low, "Runs the project's linter", "[cargo, clippy]"),
    ("run_health_check", Risk::Low, "Checks whether what was deployed works", "[./health]"),
];

#[derive(Debug)]
pub struct Unsaid {
    spec: ToolSpec,
    example: &'static str,
}

pub fn specs() -> impl Iterator<Item = ToolSpec> {
    tools(|it| it).map(|it| it.spec)
}

pub fn tools(changed: impl Fn(ToolSpec) -> ToolSpec) -> impl Iterator<Item = Unsaid> {
    ALL.into_iter().map(move |(name, risk, does, example)| {
        let description = format!("{does}. Not configured here yet.");
        let parameters = json!({"type": "object"});
        Unsaid { spec: changed(spec(name, risk, &description, parameters)), example }
    })
}

#[async_trait]
impl Tool for Unsaid {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Permit, _: &CallContext) -> Done {
        let (name, example) = (&self.spec.name, self.example);
        Done::Result(CallResult::error(
            "NOT_CONFIGURED",
            format!(
                "`{name}` is not configured: the operator names its program in `tools.yaml`, as in \
                 `commands: {{{name}: {{description: …, command: {example}}}}}`"
            ),
        ))
    }
}
