//! What `bench/run` stands on: the work that it asks of our binary, and how it tells of figures.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Place, program};

fn bench(name: &str) -> PathBuf {
    chancery_testkit::package().join("../../bench").join(name)
}

#[test]
fn figures_are_told_in_the_same_table_and_picture_each_time() {
    let place = Place::new();
    for name in ["peers.json", "scale.json"] {
        std::fs::copy(bench("sample").join(name), place.path(name)).unwrap();
    }
    let mut tell = program(Path::new("python3"));
    tell.arg(bench("run")).args(["tell", "--results"]).arg(place.dir.path());
    let told = tell.output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    for name in ["peers.md", "peers.svg", "scale.md", "scale.svg"] {
        let written = std::fs::read_to_string(place.path(name)).unwrap();
        let expected = std::fs::read_to_string(bench("sample").join(name)).unwrap();
        assert_eq!(
            written, expected,
            "{name}: if so it should be, `bench/run tell --results bench/sample`"
        );
    }
}

fn lines(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let went = place.told(arguments, "");
    assert_eq!(went.code, 0, "{went:?}");
    went.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn our_work_is_told_in_the_lines_that_every_peer_prints() {
    let place = Place::new();
    let told = lines(
        &place,
        &["bench", "peer", "--seconds", "0.2", "--clients", "1,4", "--approvals", "2"],
    );
    let said: Vec<&str> = told.iter().map(|it| it["said"].as_str().unwrap()).collect();
    assert_eq!(said, ["ready", "begin", "end", "begin", "end", "approvals"]);
    for (at, clients) in [(2, 1), (4, 4)] {
        assert_eq!(told[at]["clients"], clients);
        assert!(told[at]["runs"].as_u64().unwrap() >= clients, "{}", told[at]);
    }
    assert_eq!(told[5]["ms"].as_array().unwrap().len(), 2);

    let raw = lines(&place, &["bench", "peer", "--raw", "--seconds", "0.1", "--clients", "1,4"]);
    assert_eq!(raw.len(), 2);
    assert!(raw.iter().all(|it| it["per_second"].as_f64().unwrap() > 1.0), "{raw:?}");
}

#[test]
fn a_store_is_filled_with_so_many_runs_and_the_load_ends_beside_them() {
    let place = Place::new();
    let to = ["--to", "20,300", "--seconds", "0.2", "--json"];
    for axis in ["finished", "waiting"] {
        let went = place.chancery(&[&["bench", "scale", axis][..], &to].concat());
        assert_eq!(went.code, 0, "{went:?}");
        let points = went.json();
        let of = |name: &str| -> Vec<f64> {
            points.as_array().unwrap().iter().map(|it| it[name].as_f64().unwrap()).collect()
        };
        assert_eq!(of("n"), [20.0, 300.0], "{axis}");
        assert!(of("steps_per_second").iter().all(|it| *it > 1.0), "{axis}: {points}");
        let there = of("there");
        // Of those that ended, the first load has added some.
        let expected = if axis == "waiting" { there[1] == 300.0 } else { there[1] > 300.0 };
        assert!(there[0] == 20.0 && expected, "{axis}: {there:?}");
    }
}

/// What is measured in is removed afterwards: it must be nobody's.
#[test]
fn a_folder_that_holds_something_is_neither_measured_in_nor_removed() {
    let place = Place::new();
    let kept = place.path("theirs");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("chancery.db"), "theirs").unwrap();
    let data = kept.to_str().unwrap();
    for words in [&["runs", "--quick"][..], &["peer"], &["scale", "finished", "--to", "1"]] {
        let went = place.chancery(&[&["bench"], words, &["--data", data]].concat());
        assert_eq!(went.code, 1, "{words:?}: {went:?}");
        assert!(went.err.contains("is not empty"), "{words:?}: {went:?}");
        assert_eq!(std::fs::read_to_string(kept.join("chancery.db")).unwrap(), "theirs");
    }
}
