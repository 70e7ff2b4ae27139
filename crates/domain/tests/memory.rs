//! Searches hold to their limits and to their tiers, whoever asks for what.

use chancery_domain::event::{Actor, Created};
use chancery_domain::id::*;
use chancery_domain::memory::quota::quotas;
use chancery_domain::memory::{
    Asked, MemoryKind, Mode, Partition, Party, Plan, Refusal, Scope, Which,
};
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

const PERSONAL: [u32; 3] = [30, 40, 30];
const GROUP: [u32; 3] = [50, 30, 20];

#[test]
fn quotas_add_up_to_the_limit() {
    let ample = |shares: [u32; 3]| shares.map(|it| (it, 1000));
    for (limit, personal, group) in [
        (10, [3, 4, 3], [5, 3, 2]),
        (5, [2, 2, 1], [3, 1, 1]),
        (1, [0, 1, 0], [1, 0, 0]),
        (3, [1, 1, 1], [1, 1, 1]),
        (0, [0, 0, 0], [0, 0, 0]),
    ] {
        assert_eq!(quotas(limit, &ample(PERSONAL)), personal, "{limit}");
        assert_eq!(quotas(limit, &ample(GROUP)), group, "{limit}");
    }
}

#[test]
fn what_a_tier_does_not_use_flows_on() {
    let of = |found: [usize; 3]| quotas(10, &[(30, found[0]), (40, found[1]), (30, found[2])]);
    assert_eq!(of([0, 100, 100]), [0, 7, 3]);
    assert_eq!(of([100, 1, 100]), [3, 1, 6]);
    assert_eq!(of([100, 100, 0]), [6, 4, 0]);
    assert_eq!(of([1, 1, 1]), [1, 1, 1]);
    assert_eq!(of([100, 0, 0]), [10, 0, 0]);
}

proptest! {
    #[test]
    fn quotas_fill_the_limit_and_never_exceed_it(
        limit in 0usize..300,
        tiers in prop::collection::vec((0u32..100, 0usize..200), 1..6),
    ) {
        let taken = quotas(limit, &tiers);
        let found: usize = tiers.iter().map(|(_, found)| found).sum();
        let shared = tiers.iter().any(|(share, _)| *share > 0);
        let expected = if shared { limit.min(found) } else { 0 };
        prop_assert_eq!(taken.iter().sum::<usize>(), expected);
        for (takes, (_, found)) in taken.iter().zip(&tiers) {
            prop_assert!(takes <= found);
        }
    }

    #[test]
    fn a_tier_that_has_enough_has_its_share(limit in 0usize..300, shares in shares()) {
        let tiers: Vec<(u32, usize)> = shares.iter().map(|it| (*it, 1000)).collect();
        for (takes, share) in quotas(limit, &tiers).iter().zip(&shares) {
            let exact = limit * *share as usize;
            prop_assert!(*takes >= exact / 100 && *takes <= exact.div_ceil(100));
        }
    }

    /// Whatever a person or a run asks for: nothing of another organisation, nothing of another
    /// user, and in tiers nothing but what the tier is for.
    #[test]
    fn no_plan_admits_what_is_not_the_readers(
        created in created(), partition in partition(), mode in mode(), asked in asked(),
    ) {
        let run = Party::of_run(&created);
        let person = Party::of_person(&created.org, created.user.clone());
        let mut plans = vec![run.run_search(asked.kind), person.everything(false, asked.clone())];
        plans.extend(person.search(mode, asked));
        for plan in plans {
            let admitted = plan.tiers().iter().any(|it| plan.admits(it, &partition));
            let others = partition.scope.org != created.org
                || partition.scope.user.as_ref().is_some_and(|it| *it != created.user);
            prop_assert!(!(admitted && others), "{plan:?}");
        }
    }

    #[test]
    fn a_group_and_a_person_do_not_read_each_others_memory(
        created in created(), partition in partition(),
    ) {
        let plan = Party::of_run(&created).run_search(None);
        let admitted = plan.tiers().iter().any(|it| plan.admits(it, &partition));
        if admitted && created.group.is_some() {
            prop_assert_eq!(&partition.scope.user, &None);
            prop_assert!(!partition.preference);
        } else if admitted {
            prop_assert_eq!(&partition.scope.group, &None);
        }
    }

    #[test]
    fn a_run_writes_where_it_was_made_to_and_finds_it_there(
        created in created(), preference: bool,
    ) {
        let party = Party::of_run(&created);
        let kind = if preference { MemoryKind::Core } else { MemoryKind::Episodic };
        match party.run_home(kind, preference) {
            Ok(home) => {
                prop_assert_eq!(&home.partition().scope.org, &created.org);
                prop_assert_eq!(&home.partition().scope.group, &created.group);
                let plan = party.run_search(None);
                prop_assert!(plan.tiers().iter().any(|it| plan.admits(it, home.partition())));
            }
            Err(refusal) => {
                prop_assert_eq!(refusal, Refusal::NotPersonsOwn);
                prop_assert!(created.group.is_some() || created.parent.is_some()
                    || !matches!(created.by, Actor::User(_)));
            }
        }
        prop_assert_eq!(party.blackboard().is_ok(), created.group.is_some());
    }

    #[test]
    fn partitions_are_one_if_and_only_if_they_are_written_alike(a in partition(), b in partition()) {
        prop_assert_eq!(a == b, a.tuple() == b.tuple());
    }
}

#[test]
fn the_tiers_are_those_of_the_design() {
    let created = Created {
        org: "acme".to_owned(),
        agent: "pa".into(),
        role: "personal_agent".into(),
        user: "lin".into(),
        project: Some("shop".into()),
        group: None,
        session_key: None,
        parent: None,
        ancestors: vec![],
        room: None,
        persons_words: vec![],
        delegated: None,
        input: String::new(),
        by: Actor::User("lin".into()),
        org_version: 0,
        contract: None,
        mails: vec![],
        call: None,
        forked: None,
    };
    assert_eq!(
        written(&Party::of_run(&created).run_search(None)),
        [
            r#"preferences 30 ["acme","lin",null,null,"pa","core",true]"#,
            r#"enterprise 40 ["acme",null,null,null,null,"archival",false]"#,
            r#"history 30 ["acme","lin","shop",null,null,"episodic",false]"#,
        ]
    );
    let group = Created { group: Some("grp_delivery".into()), ..created };
    assert_eq!(
        written(&Party::of_run(&group).run_search(None)),
        [
            r#"blackboard 50 ["acme",null,"shop","grp_delivery",null,"core",false]"#,
            r#"blackboard 50 ["acme",null,"shop","grp_delivery",null,"episodic",false]"#,
            r#"blackboard 50 ["acme",null,null,"grp_delivery",null,"core",false]"#,
            r#"blackboard 50 ["acme",null,null,"grp_delivery",null,"episodic",false]"#,
            r#"project 30 ["acme",null,"shop",null,null,"archival",false]"#,
            r#"project 30 ["acme",null,"shop",null,null,"core",false]"#,
            r#"enterprise 20 ["acme",null,null,null,null,"archival",false]"#,
        ]
    );
}

#[test]
fn a_person_writes_preferences_of_their_own_alone() {
    let lin = Party::of_person("acme", "lin".into());
    let preference = |user: Option<&str>, kind| Partition {
        scope: Scope { user: user.map(UserId::from), ..Scope::org("acme") },
        kind,
        preference: true,
    };
    assert!(lin.person_home(preference(Some("lin"), MemoryKind::Core)).is_ok());
    for (partition, refusal) in [
        (preference(Some("bo"), MemoryKind::Core), Refusal::OthersUser),
        (preference(None, MemoryKind::Core), Refusal::PreferenceOfNobody),
        (preference(Some("lin"), MemoryKind::Episodic), Refusal::PreferenceKind),
        (Partition::new(Scope::org("other"), MemoryKind::Archival), Refusal::OthersUser),
    ] {
        assert_eq!(lin.person_home(partition), Err(refusal));
    }
}

fn written(plan: &Plan) -> Vec<String> {
    let tiers = plan.tiers().iter();
    tiers
        .flat_map(|tier| {
            let Which::These(these) = &tier.which else { panic!("{tier:?}") };
            these.iter().map(move |it| format!("{} {} {}", tier.name, tier.share, it.tuple()))
        })
        .collect()
}

fn shares() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![Just(PERSONAL.to_vec()), Just(GROUP.to_vec()), Just(vec![100])]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("\",null".to_owned())]
}

fn kind() -> impl Strategy<Value = MemoryKind> {
    prop::sample::select(&MemoryKind::ALL[..])
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Flat), Just(Mode::Personal), Just(Mode::Group)]
}

fn partition() -> impl Strategy<Value = Partition> {
    let scope = (
        name(),
        option::of(name().prop_map(UserId)),
        option::of(name().prop_map(ProjectId)),
        option::of(name().prop_map(GroupId)),
        option::of(name().prop_map(AgentId)),
    );
    (scope, kind(), any::<bool>()).prop_map(
        |((org, user, project, group, agent), kind, preference)| Partition {
            scope: Scope { org, user, project, group, agent },
            kind,
            preference,
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    (
        option::of(name().prop_map(ProjectId)),
        option::of(name().prop_map(GroupId)),
        option::of(name().prop_map(AgentId)),
        option::of(kind()),
    )
        .prop_map(|(project, group, agent, kind)| Asked { project, group, agent, kind })
}

fn created() -> impl Strategy<Value = Created> {
    let by = prop_oneof![
        Just(Actor::User("lin".into())),
        Just(Actor::Service("ci".to_owned())),
        Just(Actor::Agent("pa".into())),
    ];
    (
        (name(), name(), name()),
        option::of(name()),
        option::of(name()),
        option::of(Just(RunId(Uuid::from_u128(9)))),
        by,
    )
        .prop_map(|((org, user, agent), project, group, parent, by)| Created {
            org,
            agent: AgentId(agent),
            role: "worker".into(),
            user: UserId(user),
            project: project.map(ProjectId),
            group: group.map(GroupId),
            session_key: None,
            parent,
            ancestors: vec![],
            room: None,
            persons_words: vec![],
            delegated: None,
            input: String::new(),
            by,
            org_version: 0,
            contract: None,
            mails: vec![],
            call: None,
            forked: None,
        })
}
