//! Who reads and writes memories, and what follows from it: the only place where it is said
//! what may be read by whom, and in which tiers a search goes.

use super::{MemoryKind, Partition, Scope};
use crate::event::{Actor, Created};
use crate::id::{AgentId, GroupId, ProjectId, UserId};

/// A run, or a person who asks themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    org: String,
    user: UserId,
    run: Option<RunSide>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RunSide {
    project: Option<ProjectId>,
    group: Option<GroupId>,
    agent: AgentId,
    /// Started by a person, for nobody else's goal.
    is_persons_own: bool,
}

/// In which order tiers are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Flat,
    Personal,
    Group,
}

/// What a person says about what they look for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub project: Option<ProjectId>,
    pub group: Option<GroupId>,
    pub agent: Option<AgentId>,
    pub kind: Option<MemoryKind>,
}

/// What may be read, in tiers. Holding one is the right to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    org: String,
    user: UserId,
    tiers: Vec<Tier>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    pub name: &'static str,
    /// In hundredths.
    pub share: u32,
    pub which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    These(Vec<Partition>),
    /// All that the reader may read, as far as it fits.
    All(Narrow),
}

/// Only what has these parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrow {
    own: bool,
    asked: Asked,
}

/// Where something may be written. Holding one is the right to write there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    partition: Partition,
    owner: UserId,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a search of mode `group` names a group")]
    NoGroup,
    #[error("this is another user's memory")]
    OthersUser,
    #[error("a preference is of type `core`")]
    PreferenceKind,
    #[error("a preference belongs to a user: it is written with the scope of its own user")]
    PreferenceOfNobody,
    #[error(
        "a preference is written in the person's own run: not by a group, not in a run that another run started"
    )]
    NotPersonsOwn,
    #[error("records are for the members of a group at work")]
    NotAGroup,
}

impl Party {
    /// As a run: its scope comes from how it was created, and from nothing that is said in it.
    pub fn of_run(created: &Created) -> Party {
        Party {
            org: created.org.clone(),
            user: created.user.clone(),
            run: Some(RunSide {
                project: created.project.clone(),
                group: created.group.clone(),
                agent: created.agent.clone(),
                is_persons_own: created.group.is_none()
                    && created.parent.is_none()
                    && matches!(created.by, Actor::User(_))
                    // To go on with an agent's goal does not make it the person's.
                    && created.forked.as_ref().is_none_or(|it| matches!(it.by, Actor::User(_))),
            }),
        }
    }

    /// As a person. Whoever calls this has made sure that it is them.
    pub fn of_person(org: &str, user: UserId) -> Party {
        Party { org: org.to_owned(), user, run: None }
    }

    pub fn user(&self) -> &UserId {
        &self.user
    }

    pub fn org(&self) -> &str {
        &self.org
    }

    /// A person reads what is theirs, and what belongs to nobody in particular.
    pub fn may_read(&self, scope: &Scope) -> bool {
        scope.org == self.org && scope.user.as_ref().is_none_or(|it| *it == self.user)
    }

    /// The search that goes with a run: a group's for its members, else its person's.
    pub fn run_search(&self, kind: Option<MemoryKind>) -> Plan {
        let side = self.run.clone();
        let (project, group, agent) =
            side.map_or((None, None, None), |it| (it.project, it.group, Some(it.agent)));
        let tiers = match group {
            Some(group) => self.group_tiers(project, group, kind),
            None => self.personal_tiers(project, agent, kind),
        };
        self.plan(tiers)
    }

    /// What the person wants of the agent whose run it is. A group has no part in that.
    pub fn preferences(&self) -> Plan {
        let tiers = match &self.run {
            Some(run) if run.group.is_none() => {
                let tiers = self.personal_tiers(run.project.clone(), Some(run.agent.clone()), None);
                tiers.into_iter().take(1).collect()
            }
            _ => Vec::new(),
        };
        self.plan(tiers)
    }

    /// A search that a person asks for.
    pub fn search(&self, mode: Mode, asked: Asked) -> Result<Plan, Refusal> {
        let Asked { project, group, agent, kind } = asked;
        let tiers = match mode {
            Mode::Flat => {
                let asked = Asked { project, group, agent, kind };
                vec![all(Narrow { own: false, asked })]
            }
            Mode::Personal => self.personal_tiers(project, agent, kind),
            Mode::Group => self.group_tiers(project, group.ok_or(Refusal::NoGroup)?, kind),
        };
        Ok(self.plan(tiers))
    }

    /// All that may be read, or of it only what is the reader's own.
    pub fn everything(&self, own: bool, asked: Asked) -> Plan {
        self.plan(vec![all(Narrow { own, asked })])
    }

    fn plan(&self, tiers: Vec<Tier>) -> Plan {
        Plan { org: self.org.clone(), user: self.user.clone(), tiers }
    }

    fn personal_tiers(
        &self,
        project: Option<ProjectId>,
        agent: Option<AgentId>,
        kind: Option<MemoryKind>,
    ) -> Vec<Tier> {
        let own = Scope { user: Some(self.user.clone()), ..Scope::org(&self.org) };
        let preferences = Partition {
            scope: Scope { agent, ..own.clone() },
            kind: MemoryKind::Core,
            preference: true,
        };
        let enterprise = Partition::new(Scope::org(&self.org), MemoryKind::Archival);
        let history = Partition::new(Scope { project, ..own }, MemoryKind::Episodic);
        vec![
            tier("preferences", 30, vec![preferences], kind),
            tier("enterprise", 40, vec![enterprise], kind),
            tier("history", 30, vec![history], kind),
        ]
    }

    fn group_tiers(
        &self,
        project: Option<ProjectId>,
        group: GroupId,
        kind: Option<MemoryKind>,
    ) -> Vec<Tier> {
        let org = Scope::org(&self.org);
        let of_project = Scope { project: project.clone(), ..org.clone() };
        let of_group = Scope { group: Some(group), ..org.clone() };
        let both = |scope: &Scope, kinds: [MemoryKind; 2]| {
            kinds.into_iter().map(|kind| Partition::new(scope.clone(), kind)).collect::<Vec<_>>()
        };
        // What a group wrote down for a project, and what it knows whatever it works on.
        let in_project = project.clone().map(|it| Scope { project: Some(it), ..of_group.clone() });
        let boards = in_project.into_iter().chain([of_group]);
        let board = |it: Scope| both(&it, [MemoryKind::Core, MemoryKind::Episodic]);
        let blackboard = boards.flat_map(board).collect();
        // Without a project there is no project's knowledge beside the enterprise's.
        let of_project = match project {
            Some(_) => both(&of_project, [MemoryKind::Archival, MemoryKind::Core]),
            None => vec![Partition::new(of_project, MemoryKind::Core)],
        };
        let enterprise = vec![Partition::new(org, MemoryKind::Archival)];
        vec![
            tier("blackboard", 50, blackboard, kind),
            tier("project", 30, of_project, kind),
            tier("enterprise", 20, enterprise, kind),
        ]
    }

    /// Where a run may write: its group's blackboard, or its person's memory.
    pub fn run_home(&self, kind: MemoryKind, preference: bool) -> Result<Home, Refusal> {
        let Some(run) = &self.run else { return Err(Refusal::NotPersonsOwn) };
        let org = Scope::org(&self.org);
        if preference {
            if !run.is_persons_own {
                return Err(Refusal::NotPersonsOwn);
            }
            if kind != MemoryKind::Core {
                return Err(Refusal::PreferenceKind);
            }
            let (user, agent) = (Some(self.user.clone()), Some(run.agent.clone()));
            let scope = Scope { user, agent, ..org };
            return Ok(self.home(Partition { scope, kind, preference }));
        }
        let project = run.project.clone();
        let scope = match &run.group {
            Some(group) => Scope { project, group: Some(group.clone()), ..org },
            None => Scope { project, user: Some(self.user.clone()), ..org },
        };
        Ok(self.home(Partition::new(scope, kind)))
    }

    /// Where a member of a group writes down what the others are to know.
    pub fn blackboard(&self) -> Result<Home, Refusal> {
        match &self.run {
            Some(RunSide { group: Some(_), .. }) => self.run_home(MemoryKind::Episodic, false),
            _ => Err(Refusal::NotAGroup),
        }
    }

    /// Where a person may write: what is theirs, and what belongs to nobody in particular.
    pub fn person_home(&self, partition: Partition) -> Result<Home, Refusal> {
        if !self.may_read(&partition.scope) {
            return Err(Refusal::OthersUser);
        }
        if partition.preference {
            if partition.kind != MemoryKind::Core {
                return Err(Refusal::PreferenceKind);
            }
            if partition.scope.user.is_none() {
                return Err(Refusal::PreferenceOfNobody);
            }
        }
        Ok(self.home(partition))
    }

    fn home(&self, partition: Partition) -> Home {
        Home { partition, owner: self.user.clone() }
    }
}

/// The share of a plan with one tier.
fn all(narrow: Narrow) -> Tier {
    Tier { name: "all", share: 100, which: Which::All(narrow) }
}

fn tier(
    name: &'static str,
    share: u32,
    mut partitions: Vec<Partition>,
    kind: Option<MemoryKind>,
) -> Tier {
    partitions.retain(|it| kind.is_none_or(|kind| it.kind == kind));
    Tier { name, share, which: Which::These(partitions) }
}

impl Plan {
    pub fn org(&self) -> &str {
        &self.org
    }

    /// Whose own memories it reaches.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// Whether a partition that was found belongs to a tier: asked again of everything that a
    /// database says is there.
    pub fn admits(&self, tier: &Tier, partition: &Partition) -> bool {
        let party = Party::of_person(&self.org, self.user.clone());
        party.may_read(&partition.scope)
            && match &tier.which {
                Which::These(these) => these.contains(partition),
                Which::All(narrow) => narrow.admits(partition),
            }
    }
}

impl Narrow {
    fn admits(&self, partition: &Partition) -> bool {
        fn fits<T: PartialEq>(asked: &Option<T>, found: &Option<T>) -> bool {
            asked.is_none() || asked == found
        }
        let Scope { user, project, group, agent, .. } = &partition.scope;
        (!self.own || user.is_some())
            && fits(&self.asked.project, project)
            && fits(&self.asked.group, group)
            && fits(&self.asked.agent, agent)
            && self.asked.kind.is_none_or(|it| it == partition.kind)
    }
}

impl Home {
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// On whose behalf it is written.
    pub fn owner(&self) -> &UserId {
        &self.owner
    }
}
