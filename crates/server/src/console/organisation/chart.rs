//! Who reports to whom, as a picture: boxes from the board downwards, each above its own.

use chancery_domain::id::RoleId;
use chancery_domain::org::{Org, Role};

use super::agents_of;
use crate::console::html::line;

const WIDTH: f64 = 150.0;
const HEIGHT: f64 = 46.0;
const GAP: f64 = 14.0;
const FALL: f64 = 84.0;

#[derive(Debug, Default)]
pub struct Chart {
    pub boxes: Vec<Node>,
    pub lines: Vec<Edge>,
    pub width: String,
    pub height: String,
}

#[derive(Debug)]
pub struct Node {
    pub x: String,
    pub y: String,
    /// Where its words stand.
    pub text_x: String,
    pub name_y: String,
    pub more_y: String,
    pub name: String,
    pub more: String,
    pub reports_to: String,
}

#[derive(Debug)]
pub struct Edge {
    pub path: String,
    /// A second superior.
    pub dashed: bool,
}

/// A box while it is placed.
struct Placed<'o> {
    role: Option<&'o Role>,
    x: f64,
    depth: usize,
}

impl Chart {
    pub fn of(org: &Org) -> Chart {
        let mut placed = Vec::new();
        let mut next = 0.0;
        let tops: Vec<&Role> = org
            .roles()
            .filter(|it| !it.reports_to.iter().any(|above| org.role(above).is_some()))
            .collect();
        let centres: Vec<f64> =
            tops.iter().map(|role| place(org, role, 1, &mut next, &mut placed)).collect();
        let board = middle(&centres);
        placed.push(Placed { role: None, x: board, depth: 0 });
        draw(org, &placed, next.max(WIDTH + GAP))
    }
}

fn middle(centres: &[f64]) -> f64 {
    match (centres.first(), centres.last()) {
        (Some(first), Some(last)) => f64::midpoint(*first, *last),
        _ => WIDTH / 2.0,
    }
}

/// Places a role above those whose first superior it is, and answers where its middle is.
// A circle in the chain of command is refused when the files are read.
fn place<'o>(
    org: &'o Org,
    role: &'o Role,
    depth: usize,
    next: &mut f64,
    placed: &mut Vec<Placed<'o>>,
) -> f64 {
    let under = |it: &&Role| first_superior(org, it) == Some(&role.id);
    let below: Vec<&Role> = org.roles().filter(under).collect();
    let x = if below.is_empty() {
        let x = *next + WIDTH / 2.0;
        *next += WIDTH + GAP;
        x
    } else {
        let centres: Vec<f64> =
            below.iter().map(|it| place(org, it, depth + 1, next, placed)).collect();
        middle(&centres)
    };
    placed.push(Placed { role: Some(role), x, depth });
    x
}

fn first_superior<'o>(org: &Org, role: &'o Role) -> Option<&'o RoleId> {
    role.reports_to.iter().find(|it| org.role(it).is_some())
}

fn draw(org: &Org, placed: &[Placed<'_>], width: f64) -> Chart {
    let top = |depth: usize| depth as f64 * FALL + 2.0;
    let mut chart = Chart::default();
    let depth = placed.iter().map(|it| it.depth).max().unwrap_or(0);
    chart.width = format!("{width:.0}");
    chart.height = format!("{:.0}", top(depth) + HEIGHT + 4.0);
    let find = |id: &RoleId| placed.iter().find(|it| it.role.is_some_and(|role| role.id == *id));
    for it in placed {
        let Some(role) = it.role else { continue };
        let mut above: Vec<&Placed<'_>> = role.reports_to.iter().filter_map(find).collect();
        if above.is_empty() {
            above.extend(placed.iter().filter(|it| it.role.is_none()));
        }
        for (n, superior) in above.into_iter().enumerate() {
            let (from_y, to_y) = (top(superior.depth) + HEIGHT, top(it.depth));
            let half = f64::midpoint(from_y, to_y);
            let path = format!("M{:.1} {from_y:.1}V{half:.1}H{:.1}V{to_y:.1}", superior.x, it.x);
            chart.lines.push(Edge { path, dashed: n > 0 });
        }
    }
    for it in placed {
        let y = top(it.depth);
        let (name, more, reports_to) = match it.role {
            None => ("board".to_owned(), String::new(), String::new()),
            Some(role) => {
                let agents = agents_of(org, role);
                let tools = role.tools.as_ref().map_or("∞".to_owned(), |it| it.len().to_string());
                let count =
                    if agents.len() == 1 { String::new() } else { format!(" ×{}", agents.len()) };
                let superiors: Vec<&str> = role.reports_to.iter().map(|it| it.as_str()).collect();
                let more = format!("L{} · {tools}{count}", role.level);
                (line(role.id.as_str()), more, line(&superiors.join(", ")))
            }
        };
        chart.boxes.push(Node {
            x: format!("{:.1}", it.x - WIDTH / 2.0),
            y: format!("{y:.1}"),
            text_x: format!("{:.1}", it.x),
            name_y: format!("{:.1}", y + if more.is_empty() { 28.0 } else { 20.0 }),
            more_y: format!("{:.1}", y + 37.0),
            name,
            more,
            reports_to,
        });
    }
    chart
}
