//! The audit on the command line: looked at, carried away, checked, and tampered with.

use crate::harness::Place;

#[test]
fn the_chain_is_shown_exported_and_verified() {
    let place = Place::configured("");
    let server = place.serve(&[]);
    place.chancery(&["token", "new", "--kind", "human", "--user", "lin"]).done();

    let listed = place.chancery(&["audit", "ls"]);
    assert!(listed.done().trim_start().starts_with("SEQ"), "{listed:?}");
    assert_eq!(listed.out.matches("token.made").count(), 2, "{listed:?}");
    let of_lin = place.chancery(&["audit", "ls", "--user", "lin", "--since", "1h", "--json"]);
    assert_eq!(of_lin.json()["items"].as_array().unwrap().len(), 1);
    assert_eq!(of_lin.json()["items"][0]["kind"], "token.made");
    assert_eq!(place.chancery(&["audit", "ls", "--since", "yesterday"]).code, 1);

    let exported = place.chancery(&["audit", "export"]);
    assert_eq!(exported.done().lines().count(), 3);

    let verified = place.chancery(&["audit", "verify"]);
    let lines: Vec<&str> = verified.done().lines().collect();
    assert!(lines[0].starts_with("3 entries, 20"), "{verified:?}");
    assert!(lines[0].contains(" .. now   chain ok   head "), "{verified:?}");
    assert_eq!(
        lines[1],
        "Shows edits, insertions and deletions inside the log. \
         Cannot show a cut-off tail: compare the head with your anchor."
    );
    let json = place.chancery(&["audit", "verify", "--json"]).json();
    assert_eq!((&json["ok"], &json["entries"]), (&true.into(), &3.into()));

    let anchor = place.chancery(&["audit", "anchor"]);
    let word = anchor.done().split_whitespace().next().unwrap().to_owned();
    assert_eq!(word, format!("3:{}", json["head"].as_str().unwrap()));
    place.write("anchor", &anchor.out);
    place.write("anchor.json", &place.chancery(&["audit", "anchor", "--json"]).out);
    for given in [&*word, "anchor", "anchor.json"] {
        let verified = place.chancery(&["audit", "verify", "--anchor", given]);
        assert!(
            verified.done().contains("The anchor holds: up to entry 3 nothing"),
            "{verified:?}"
        );
    }
    place.write("no-anchor", "hello\n");
    for given in ["no-anchor", "nowhere", "2:abc"] {
        place.chancery(&["audit", "verify", "--anchor", given]).failed(2);
    }
    let other = format!("2:{}", "0".repeat(64));
    let wrong = place.chancery(&["audit", "verify", "--anchor", &other]);
    assert_eq!(wrong.code, 1, "{wrong:?}");

    let database = rusqlite::Connection::open(place.path("chancery-data/chancery.db")).unwrap();
    database.execute("DELETE FROM audit WHERE seq = 1", []).unwrap();
    let broken = place.chancery(&["audit", "verify"]);
    assert_eq!((broken.code, &*broken.err), (1, ""), "{broken:?}");
    let said = "0 entries hold   chain BROKEN   head ";
    assert!(broken.out.starts_with(said), "{broken:?}");
    assert!(broken.out.ends_with("\nentry 1 is missing\n"), "{broken:?}");
    let json = place.chancery(&["audit", "verify", "--json"]);
    assert_eq!((json.code, &json.json()["first_bad"]), (1, &1.into()));
    // What is left can still be read.
    assert_eq!(place.chancery(&["audit", "export"]).done().lines().count(), 2);
    assert_eq!(server.stop(), 0);
}
