//! The law in force, when it changes.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::sync::{Arc, Barrier};

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::CallResult;
use chancery_domain::org::{Org, Role};
use chancery_domain::policy::Risk;
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::tool::{CallContext, Done, Effect, Tool, ToolSpec, Tools};
use serde_json::json;

#[derive(Debug)]
struct Named(ToolSpec);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Permit, _: &CallContext) -> Done {
        Done::Result(CallResult::ok(""))
    }
}

fn named(name: String) -> Arc<dyn Tool> {
    Arc::new(Named(ToolSpec {
        name,
        description: String::new(),
        parameters: json!({}),
        risk: Risk::Low,
        capabilities: vec![],
        effect: Effect::Outside,
        idempotent: false,
        supports_parallel: false,
    }))
}

fn org(version: u64) -> Arc<Org> {
    let mut org = Org::new((0..20).map(|n| Role::unlimited(&format!("r{n}"))), []).unwrap();
    org.version = version;
    Arc::new(org)
}

/// Tools arrive, somebody compiles the law over them, and meanwhile another law is put in force:
/// that one holds, over all the tools.
#[test]
fn a_law_is_not_undone_by_tools_that_arrive() {
    for _ in 0..40 {
        let mut tools = Tools::default();
        let later = tools.later("far_");
        for n in 0..200 {
            tools.register(named(format!("near_{n}"))).unwrap();
        }
        let tools = Arc::new(tools);
        let in_force = InForce::new(Authority::new(org(0), tools.clone()));
        let stricter = Authority::new(org(1), tools);
        assert_eq!(later.arrive(vec![named("far_away".to_owned())]), []);
        let (other, barrier) = (in_force.clone(), Arc::new(Barrier::new(2)));
        let begun = barrier.clone();
        let asking = std::thread::spawn(move || {
            begun.wait();
            other.get()
        });
        barrier.wait();
        in_force.replace(stricter);
        asking.join().unwrap();
        let now = in_force.get();
        assert_eq!(now.org().version, 1);
        assert!(now.policy().facts("far_away").is_some());
    }
}
