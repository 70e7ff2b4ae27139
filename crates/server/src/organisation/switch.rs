//! Puts a version in force: compiles it with its tools, and lets the gate have it.

use std::sync::Arc;

use chancery_domain::org::Org;
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::tool::Tools;
use chancery_runtime::tool::config::{Place, Report, ToolsConfig, build};

use super::mistake::{At, Mistake, Mistakes};

/// What a version is put in force with.
#[derive(Debug)]
pub struct Switch {
    authority: InForce,
    place: Place,
}

impl Switch {
    pub fn new(authority: InForce, place: Place) -> Switch {
        Switch { authority, place }
    }

    /// The tools of a version. Those in force stay where nothing is said otherwise: servers
    /// that are connected stay so.
    pub async fn prepare(
        &self,
        old: &ToolsConfig,
        new: &ToolsConfig,
    ) -> Result<Arc<Tools>, Vec<Mistake>> {
        if old == new {
            return Ok(self.authority.get().tools().clone());
        }
        let (tools, report) = tools(new, &self.place).await?;
        for warning in report.warnings {
            tracing::warn!("{warning}");
        }
        Ok(tools)
    }

    pub fn replace(&self, org: Arc<Org>, tools: Arc<Tools>) {
        self.authority.replace(Authority::new(org, tools));
    }
}

/// Builds tools; what stands in the way is said as mistakes of their file.
pub async fn tools(
    config: &ToolsConfig,
    place: &Place,
) -> Result<(Arc<Tools>, Report), Vec<Mistake>> {
    match build(config, place).await {
        Ok((tools, report)) => Ok((Arc::new(tools), report)),
        Err(error) => {
            let mut mistakes = Mistakes::default();
            for detail in error.0 {
                mistakes.add(At::file("tools.yaml"), "E111", detail);
            }
            Err(mistakes.sorted())
        }
    }
}
