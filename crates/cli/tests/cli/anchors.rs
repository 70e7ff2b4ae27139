//! Anchors that are signed: taken, kept elsewhere, and checked by somebody who has no server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::harness::{Place, Went, program, went};

/// What somebody keeps who does not trust the server: two signed anchors, the public key, and an
/// export of a later day.
fn kept() -> Place {
    let place = Place::configured("");
    let server = place.serve(&[]);
    let made = place.chancery(&["audit", "key", "new", "seal"]);
    assert_eq!(made.code, 0, "{made:?}");
    let mut anchors = place.chancery(&["audit", "anchor", "--sign", "seal"]).done().to_owned();
    place.chancery(&["token", "new", "--kind", "human", "--user", "lin"]).done();
    anchors.push_str(place.chancery(&["audit", "anchor", "--sign", "seal", "--json"]).done());
    place.chancery(&["token", "new", "--kind", "human", "--user", "wei"]).done();
    place.write("anchors", &anchors);
    place.write("export", place.chancery(&["audit", "export"]).done());
    assert_eq!(server.stop(), 0);
    std::fs::remove_dir_all(place.path("chancery-data")).unwrap();
    place
}

fn verify(place: &Place, more: &[&str]) -> Went {
    place.chancery(&[&["audit", "verify"], more].concat())
}

fn text(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

#[test]
fn a_signed_anchor_is_checked_with_the_public_key_alone() {
    let place = kept();
    let id = place.chancery(&["audit", "key", "id", "seal.pub"]).done().trim().to_owned();
    let mode = |name| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("seal"), id.len()), (0o600, 64));

    let signature = verify(&place, &["--anchor", "anchors", "--key", "seal.pub"]);
    let said = format!("2 anchors signed by {id}   the last of entry 3, ");
    assert!(signature.done().starts_with(&said), "{signature:?}");
    assert!(signature.out.contains("What it was taken of was not looked at"), "{signature:?}");

    let whole = ["--anchor", "anchors", "--key", "seal.pub", "--export", "export"];
    let whole = verify(&place, &whole);
    assert!(whole.done().contains("\n4 entries, 20"), "{whole:?}");
    let holds = "The anchor holds: up to entry 3 nothing was changed, cut off or written anew.\n";
    assert!(whole.out.ends_with(holds), "{whole:?}");

    let piped = ["audit", "verify", "--anchor", "anchors", "--key", "seal.pub"];
    let piped = [&piped[..], &["--export", "-", "--json"]].concat();
    let json = place.told(&piped, &text(&place, "export")).json();
    assert_eq!((&json["ok"], &json["anchors"]), (&true.into(), &2.into()));
    assert_eq!((&json["seq"], &json["entries"]), (&3.into(), &4.into()));
    assert_eq!(json["key"], *id);
    // The export by itself.
    let alone = verify(&place, &["--export", "export"]);
    assert!(alone.done().contains("hold it against an anchor"), "{alone:?}");
}

#[test]
fn a_stranger_checks_a_signed_anchor_with_openssl() {
    let place = kept();
    // As docs/audit.md has it.
    let documented = include_str!("../../../../docs/audit.md");
    let steps = documented.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let stranger = || {
        let mut shell = program(Path::new("sh"));
        shell.args(["-euc", steps]).current_dir(place.dir.path());
        went(shell)
    };
    let checked = stranger();
    let id = place.chancery(&["audit", "key", "id", "seal.pub"]).done().trim().to_owned();
    assert!(checked.done().contains("Signature Verified Successfully"), "{checked:?}");
    assert!(checked.out.contains(&id), "{checked:?}");
    let anchors = text(&place, "anchors");
    place.write("anchors", &anchors.replace("\"seq\":3", "\"seq\":2"));
    let changed = stranger();
    assert!(changed.code != 0 && changed.out.contains("Failure"), "{changed:?}");
}

#[test]
fn what_does_not_hold_of_a_signed_anchor_is_said_in_one_line() {
    let place = kept();
    let (anchors, export) = (text(&place, "anchors"), text(&place, "export"));
    place.chancery(&["audit", "key", "new", "other"]);
    let check = |anchor: &str, key: &str, export: &str, code: i32, says: &str| {
        place.write("a", anchor);
        place.write("e", export);
        let went = verify(&place, &["--anchor", "a", "--key", key, "--export", "e"]);
        assert!(went.failed(code).contains(says), "{says}: {went:?}");
    };
    let tampered = "was changed: its signature does not hold";
    check(&anchors.replace("\"seq\":3", "\"seq\":4"), "seal.pub", &export, 1, tampered);
    let day = anchors.replace("\"signed_at\":\"20", "\"signed_at\":\"19");
    check(&day, "seal.pub", &export, 1, tampered);
    check(&anchors, "other.pub", &export, 1, "is of the key ");
    // Whoever claims the other key's id has not its signature.
    let id = |of: &str| place.chancery(&["audit", "key", "id", of]).done().trim().to_owned();
    let claimed = anchors.replace(&id("seal.pub"), &id("other.pub"));
    check(&claimed, "other.pub", &export, 1, tampered);

    let lines: Vec<&str> = export.lines().collect();
    let cut = lines[..2].join("\n") + "\n";
    check(&anchors, "seal.pub", &cut, 1, "taken of entry 3, and the export ends with 2");
    check(&anchors, "seal.pub", &export[..cut.len() - 9], 1, "line 2 of the export is no entry");
    let gap = [lines[0], lines[2]].join("\n");
    check(&anchors, "seal.pub", &gap, 1, "entry 3 where entry 2 must be: it is not whole");
    check(&anchors, "seal.pub", &export.replace("lin", "lim"), 1, "entry 3 was changed");
    let long = format!("{}\n{}", "x".repeat(3_000_000), export);
    check(&anchors, "seal.pub", &long, 1, "line 1 of the export is longer than any entry");

    let unknown = anchors.replace("\"seq\":3", "\"seq\":3,\"more\":1");
    check(&unknown, "seal.pub", &export, 2, "unknown field `more`");
    let older = anchors.replace("anchor.v1", "anchor.v0");
    check(&older, "seal.pub", &export, 2, "is no signed anchor");
    check(&anchors.repeat(5000), "seal.pub", &export, 2, "is longer than the ");
    check("hello", "seal.pub", &export, 2, "the last line of `a` is no anchor");
    check(&anchors, "seal", &export, 2, "is no public key of Ed25519");
    check(&format!("1:{}", "0".repeat(64)), "seal.pub", &export, 2, "is not signed");
    verify(&place, &["--key", "seal.pub"]).usage();
    verify(&place, &["--anchor", "anchors", "--export", "export"]).failed(2);
}

#[test]
fn anchors_that_contradict_each_other_need_no_export_to_tell_of_a_rewritten_chain() {
    let place = Place::configured("");
    place.chancery(&["audit", "key", "new", "seal"]);
    let mut anchors = String::new();
    for user in ["lin", "wei"] {
        let server = place.serve(&[]);
        place.chancery(&["token", "new", "--kind", "human", "--user", user]).done();
        anchors.push_str(place.chancery(&["audit", "anchor", "--sign", "seal"]).done());
        server.stop();
        std::fs::remove_dir_all(place.path("chancery-data")).unwrap();
    }
    place.write("anchors", &anchors);
    let went = verify(&place, &["--anchor", "anchors", "--key", "seal.pub"]);
    assert_eq!(went.failed(1), "the anchors of entry 3 cannot be of one chain");
}

#[test]
fn a_key_that_others_can_read_signs_nothing() {
    let place = Place::configured("");
    let made = place.chancery(&["audit", "key", "new", "seal", "--json"]);
    assert_eq!(made.done().lines().count(), 5, "{made:?}");
    let again = place.chancery(&["audit", "key", "new", "seal"]);
    assert!(again.failed(1).contains("`seal` is there already"), "{again:?}");
    let sign = || place.chancery(&["audit", "anchor", "--sign", "seal"]);
    std::fs::set_permissions(place.path("seal"), std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(sign().failed(1).contains("others can read the private key `seal`"));
    std::fs::set_permissions(place.path("seal"), std::fs::Permissions::from_mode(0o600)).unwrap();
    place.write("seal", &text(&place, "seal.pub"));
    assert!(sign().failed(2).contains("`seal` is no private key of Ed25519"));
}
