//! What of the file system, of TCP and of other processes a program reaches. The kernel holds it
//! wherever a path leads: it looks at what was opened, not at the name.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use super::grant::{Access, Grant};

/// Files, devices, TCP, signals and abstract sockets: Linux 6.12.
const NEEDED: ABI = ABI::V6;

/// For this process and all that it starts, for good. All of it, or an error.
pub fn apply(grants: &[Grant], network: bool) -> Result<(), String> {
    let status = restrict(grants, network).map_err(|it| match it {
        RulesetError::CreateRuleset(_)
        | RulesetError::HandleAccesses(_)
        | RulesetError::Scope(_) => {
            format!("the kernel's Landlock is missing or older than Linux 6.12: {it}")
        }
        other => other.to_string(),
    })?;
    match status {
        RulesetStatus::FullyEnforced => Ok(()),
        other => Err(format!("Landlock is not enforced in full: {other:?}")),
    }
}

fn restrict(grants: &[Grant], network: bool) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .scope(Scope::from_all(NEEDED))?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEEDED))?;
    }
    let mut rules = ruleset.create()?;
    for grant in grants {
        rules = rules.add_rule(PathBeneath::new(&grant.at, rights(grant)))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

fn rights(grant: &Grant) -> BitFlags<AccessFs> {
    let file = make_bitflags!(AccessFs::{ReadFile | WriteFile | Execute | Truncate});
    let special = make_bitflags!(AccessFs::{MakeChar | MakeBlock | MakeSock | IoctlDev});
    let rights = match grant.access {
        Access::Read => AccessFs::from_read(NEEDED),
        Access::Write => AccessFs::from_all(NEEDED) & !special,
        Access::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile}),
    };
    if grant.directory { rights } else { rights & file }
}
