//! Puts a version in force: compiles it with its tools, and lets the gate have it.

use std::sync::Arc;

use chancery_domain::org::Org;
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::tool::Tools;
use chancery_runtime::tool::config::{BuildError, Place, Report, ToolsConfig, build, plan};

use super::mistake::{At, Mistake, Mistakes};
use super::{Files, Loaded, rules};

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

    /// A version as it would be in force, as far as that shows without starting anything.
    pub fn check(&self, old: &ToolsConfig, new: &mut Loaded) -> Result<Authority, Vec<Mistake>> {
        let planned = planned(new, &self.place)?;
        let tools =
            if *old == new.tools { self.authority.get().tools().clone() } else { planned.into() };
        compile(Arc::new(new.org.clone()), tools, &new.files)
    }

    /// Adds what there is to warn of in the tools of a version.
    pub fn warn(&self, loaded: &mut Loaded) -> Result<(), Vec<Mistake>> {
        planned(loaded, &self.place).map(drop)
    }

    pub fn replace(&self, authority: Authority) {
        self.authority.replace(authority);
    }
}

/// A version with its tools and its rules, ready to be put in force.
pub fn compile(org: Arc<Org>, tools: Arc<Tools>, files: &Files) -> Result<Authority, Vec<Mistake>> {
    Authority::under(org, tools, rules::texts(files))
        .map_err(|it| it.into_iter().map(rules::mistake).collect())
}

/// Builds tools; what stands in the way is said as mistakes of their file.
pub async fn tools(
    config: &ToolsConfig,
    place: &Place,
) -> Result<(Arc<Tools>, Report), Vec<Mistake>> {
    match build(config, place).await {
        Ok((tools, report)) => Ok((Arc::new(tools), report)),
        Err(error) => Err(mistakes(error)),
    }
}

/// The tools of a version before anything is started; what is odd about them is added to what
/// there is to warn of.
pub fn planned(loaded: &mut Loaded, place: &Place) -> Result<Tools, Vec<Mistake>> {
    let (tools, warnings) = plan(&loaded.tools, place).map_err(mistakes)?;
    let mut found = Mistakes::default();
    for detail in warnings {
        found.add(At::file("tools.yaml"), "W111", detail);
    }
    loaded.warnings.extend(found.sorted());
    Ok(tools)
}

fn mistakes(error: BuildError) -> Vec<Mistake> {
    let mut mistakes = Mistakes::default();
    for detail in error.0 {
        mistakes.add(At::file("tools.yaml"), "E111", detail);
    }
    mistakes.sorted()
}
