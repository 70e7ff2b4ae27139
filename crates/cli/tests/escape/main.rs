//! Attempts to get out, each for real: as root, as anybody, and where there are no namespaces.
//!
//! Run as root: what an agent's own user is worth shows in no other way. Where that cannot be,
//! `CHANCERY_TEST_WITHOUT_ROOT=1` says that it is known.

mod resident;
mod rows;
mod world;

use std::fmt::Write as _;
use std::time::Duration;

use chancery_runtime::sandbox::Namespaces;

use rows::{Outcome, ROWS};
use world::World;

const WORLDS: [(&str, Namespaces); 3] =
    [("root", Namespaces::Own), ("anybody", Namespaces::Users), ("bare", Namespaces::None)];

/// What would be left of them, without walls, is for nobody to clean up.
const HARMFUL: [&str; 4] = ["forks", "fill", "burn", "daemon"];

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    let known = std::env::var_os("CHANCERY_TEST_WITHOUT_ROOT").is_some();
    assert!(root || known, "the escape suite runs as root; CHANCERY_TEST_WITHOUT_ROOT=1 skips it");
    root
}

#[test]
fn heavy_nothing_gets_out_but_what_the_documents_say() {
    if !is_root() {
        return;
    }
    let worlds = WORLDS.map(|(name, namespaces)| (name, namespaces, World::new(namespaces)));
    let free = World::new(Namespaces::None);
    let mut possible = Vec::new();
    let mut table = String::from("attempt | stopped by | root | anybody | bare\n");
    let mut wrong = Vec::new();
    for row in ROWS {
        let mut cells = Vec::new();
        for (name, namespaces, world) in &worlds {
            let went = world.attempt(row.words);
            let expected = match row.outcome {
                Outcome::Stopped => true,
                Outcome::NeedsNamespaces => *namespaces != Namespaces::None,
                Outcome::GetsThrough => false,
            };
            if went.stopped != expected || went.took > Duration::from_secs(30) {
                wrong.push(format!("{name}: {}: {went:?}", row.attempt));
            }
            cells.push(if went.stopped { "stopped" } else { "GETS THROUGH" });
        }
        // What a user without privileges can do anyway, or else these walls would be of no use.
        // How much that is depends on the machine.
        if !HARMFUL.contains(&row.words[0]) && !free.attempt_freely(row.words).stopped {
            possible.push(row.attempt);
        }
        writeln!(table, "{} | {} | {}", row.attempt, row.layers, cells.join(" | ")).unwrap();
    }
    for (name, _, world) in &worlds {
        if world.path("outside/open/preloaded").exists() {
            wrong.push(format!("{name}: a library was loaded into the launcher"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(possible.len() >= 40, "without walls only this is possible: {possible:?}");
    insta::assert_snapshot!(table);
}

#[test]
fn heavy_processes_have_no_more_memory_together_than_one_may_have() {
    if !is_root() {
        return;
    }
    let world = World::new(Namespaces::Own);
    let went = world.attempt(&["hoard"]);
    // Where no groups can be made, nothing but each process's own limit is there.
    assert_eq!(went.stopped, world.has_groups(), "{went:?}");
    let bare = World::new(Namespaces::None);
    assert!(!bare.attempt(&["hoard"]).stopped, "each of them alone may have as much");
}
