//! The log of a run as JSON, page by page.

use serde_json::{Value, json};

use crate::harness::{Server, id};

#[tokio::test]
async fn the_log_of_a_run_is_shown_in_order() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = id(&operator.run("hello").await);
    operator.until(&run, "completed").await;
    let page = operator.get(&format!("/api/runs/{run}/events")).await.json();
    let items = page["items"].as_array().unwrap();
    let kinds: Vec<(&Value, &Value)> = items.iter().map(|it| (&it["seq"], &it["type"])).collect();
    assert_eq!(
        kinds,
        [
            (&json!(1), &json!("run.created")),
            (&json!(2), &json!("run.started")),
            (&json!(3), &json!("run.completed")),
        ]
    );
    assert_eq!(items[0]["data"]["input"], "hello");
    assert_eq!(items[0]["data"]["by"], json!({"kind": "user", "id": "operator"}));
    assert!(items[0]["at"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    assert_eq!(page["next_cursor"], Value::Null);
    server.running.stop().await;
}

#[tokio::test]
async fn pages_of_events_have_no_gap_and_no_double() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = operator.waiting().await;
    for n in 0..20 {
        let body = json!({"text": format!("message {n}")});
        assert_eq!(operator.post(&format!("/api/runs/{run}/messages"), &body).await.status, 200);
    }
    let path = format!("/api/runs/{run}/events");
    let whole = operator.get(&path).await.json()["items"].as_array().unwrap().clone();
    for limit in [1, 3, 7, 1000] {
        let mut seen = Vec::new();
        let mut after = "0".to_owned();
        loop {
            let page = operator.get(&format!("{path}?after={after}&limit={limit}")).await.json();
            seen.extend(page["items"].as_array().unwrap().clone());
            match page["next_cursor"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, whole, "{limit}");
    }
    // A cursor by the name that every list gives it.
    let page = operator.get(&format!("{path}?cursor=3")).await.json();
    assert_eq!(page["items"].as_array().unwrap(), &whole[3..]);
    server.running.stop().await;
}

#[tokio::test]
async fn places_beyond_every_log_are_beyond_this_one() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = operator.waiting().await;
    let path = format!("/api/runs/{run}/events");
    for after in ["1000", "9223372036854775807"] {
        let page = operator.get(&format!("{path}?after={after}")).await;
        assert_eq!(page.json(), json!({"items": [], "next_cursor": null}), "{after}");
    }
    assert_eq!(operator.get(&format!("{path}?limit=4294967295")).await.status, 200);
    for query in [
        "after=-1",
        // These would wrap around in a store that counts with 63 bits.
        "after=9223372036854775808",
        "cursor=18446744073709551615",
        "after=18446744073709551616",
        "after=x",
        "limit=-1",
        "before=1",
    ] {
        operator.get(&format!("{path}?{query}")).await.problem(400, "bad_request");
    }
    server.running.stop().await;
}
