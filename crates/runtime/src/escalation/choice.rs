//! Which group suits a goal, when nobody has named one.

use chancery_domain::id::{GroupId, ProjectId};
use chancery_domain::memory::analyse;
use chancery_domain::org::{Group, Org};

/// What a group must reach to be chosen, and by how much it must be ahead of the next one.
const ENOUGH: f64 = 1.0;

/// The group that suits a goal best, and why. `None`: none suits it clearly.
pub fn choose(
    org: &Org,
    goal: &str,
    project: Option<&ProjectId>,
    above: impl Fn(&GroupId) -> bool,
) -> Option<(GroupId, String)> {
    let goal = analyse::query(goal);
    let groups = org.groups_at_work().filter(|(id, _)| !above(id));
    let mut scored: Vec<(f64, bool, &GroupId, Vec<String>)> = groups
        .map(|(id, group)| {
            let (score, met) = score(&goal, group);
            (score, serves(group, project), id, met)
        })
        .filter(|(score, ..)| *score >= ENOUGH)
        .collect();
    // The better score first; of equals, the one of the project; then by name, so that the same
    // goal finds the same group.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(b.2)));
    let (best, serves, id, met) = scored.first()?;
    // Two that suit it alike are the model's to choose from.
    if let Some((next, also, ..)) = scored.get(1)
        && next == best
        && also == serves
    {
        return None;
    }
    Some(((*id).clone(), format!("score {best:.1}: {}", met.join(", "))))
}

fn serves(group: &Group, project: Option<&ProjectId>) -> bool {
    let named = |it: &ProjectId| group.tags.iter().any(|tag| tag == it.as_str());
    project.is_some_and(named)
}

/// How well a group suits a goal: a tag counts more than a name, a name more than a description.
fn score(goal: &[String], group: &Group) -> (f64, Vec<String>) {
    let fields = [
        ("tag", 2.0, group.tags.join(" ")),
        ("name", 1.5, group.name.clone()),
        ("description", 1.0, group.description.clone()),
    ];
    let (mut score, mut met) = (0.0, Vec::new());
    for (field, weight, text) in fields {
        for word in analyse::query(&text) {
            if goal.contains(&word) {
                score += weight;
                met.push(format!("{field} `{word}`"));
            }
        }
    }
    (score, met)
}
