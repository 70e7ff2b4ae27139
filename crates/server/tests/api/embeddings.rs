//! The second signal of a search: what is meant, told by a far side that may be away.

use std::time::{Duration, Instant};

use chancery_server::config::{Config, EmbeddingsConfig};
use chancery_testkit::fake_embeddings::{FakeEmbeddings, Notion};
use serde_json::{Value, json};

use crate::harness::{Caller, answer, id};
use crate::house::{House, On, on_both};

on_both! {
    what_is_said_in_other_words_is_found_by_what_it_means;
    both_signals_together_put_first_what_has_both;
    a_search_is_as_it_was_while_the_far_side_is_away_and_nothing_is_lost_by_it;
    what_the_far_side_refuses_holds_nothing_up;
    what_is_forgotten_or_somebody_elses_is_not_found_by_its_meaning;
}

const NOTIONS: &[Notion] =
    &[&["cat", "feline"], &["ship", "vessel"], &["bread", "loaf"], &["paint", "colour"]];

async fn notions() -> FakeEmbeddings {
    FakeEmbeddings::start(NOTIONS).await.unwrap()
}

async fn house(on: On, far: &FakeEmbeddings) -> House {
    let base_url = far.base_url();
    let configured = |config: &mut Config| {
        let model = "notions".to_owned();
        config.memory.embeddings =
            Some(EmbeddingsConfig { base_url, model, api_key_env: None, dimensions: None });
    };
    House::with(on, configured).await
}

impl Caller {
    async fn remembers(&self, content: &str) -> String {
        let body = json!({"content": content, "type": "archival"});
        let made = self.post("/api/memories", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        id(&made.json())
    }

    async fn looks_for(&self, question: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/memories/search?q={question}&mode=flat")).await.json();
        page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
    }

    /// Memories are read a moment after they are written.
    async fn finds_some_day(&self, question: &str) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let found = self.looks_for(question).await;
            if !found.is_empty() {
                return found;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{question} finds nothing");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn contents(found: &[Value]) -> Vec<&str> {
    found.iter().map(|it| it["content"].as_str().unwrap()).collect()
}

async fn what_is_said_in_other_words_is_found_by_what_it_means(on: On) {
    let far = notions().await;
    let house = house(on, &far).await;
    let lin = house.lin().await;
    lin.remembers("The cat sleeps on the sofa").await;
    lin.remembers("The ship leaves at noon").await;
    let found = lin.finds_some_day("feline").await;
    assert_eq!(contents(&found), ["The cat sleeps on the sofa"]);
    assert_eq!(found[0]["why"], "is near in meaning");
    // What agents remember is read as well, and they find it the same way.
    let asks = json!([[["memory_write", {"content": "The vessel is late", "type": "episodic"}]]]);
    let run = lin.script("pa", asks).await;
    lin.until(&run, "completed").await;
    let found = lin.finds_some_day("ship").await;
    assert!(!found.is_empty());
    let began = Instant::now();
    while !far.shown().iter().any(|it| it == "The vessel is late") {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", far.shown());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let run = lin.script("pa", json!([[["memory_search", {"query": "ship"}]]])).await;
    lin.until(&run, "completed").await;
    assert!(house.results()[0].contains("The vessel is late"), "{:?}", house.results());
    house.close().await;
}

async fn both_signals_together_put_first_what_has_both(on: On) {
    let far = notions().await;
    let house = house(on, &far).await;
    let lin = house.lin().await;
    lin.remembers("A loaf was left in the harbour").await;
    lin.remembers("The harbour is closed").await;
    lin.remembers("Bread is baked in the morning").await;
    let began = Instant::now();
    let found = loop {
        let found = lin.looks_for("bread+harbour").await;
        // By words alone the shortest text comes first.
        if contents(&found).last() == Some(&"The harbour is closed") {
            break found;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(found.len(), 3);
    for it in &found {
        let score = it["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{it}");
    }
    house.close().await;
}

async fn a_search_is_as_it_was_while_the_far_side_is_away_and_nothing_is_lost_by_it(on: On) {
    let far = notions().await;
    far.be_away(true);
    let (with, without) = (house(on, &far).await, House::open(on).await);
    let mut told = Vec::new();
    for house in [&with, &without] {
        let lin = house.lin().await;
        lin.remembers("The cat sleeps on the sofa").await;
        lin.remembers("A sofa is red").await;
        assert_eq!(lin.looks_for("feline").await.len(), 0);
        let found = lin.looks_for("sofa").await;
        let seen: Vec<Value> =
            found.iter().map(|it| json!([it["content"], it["score"], it["why"]])).collect();
        told.push(seen);
    }
    assert_eq!(told[0].len(), 2);
    assert_eq!(told[0], told[1]);
    assert_eq!(far.shown(), [""; 0]);
    // It was written while nobody could tell what it means, and the server went down since.
    let house = with.restart().await;
    far.be_away(false);
    let found = house.lin().await.finds_some_day("feline").await;
    assert_eq!(contents(&found), ["The cat sleeps on the sofa"]);
    house.close().await;
    without.close().await;
}

async fn what_the_far_side_refuses_holds_nothing_up(on: On) {
    let far = notions().await;
    far.refuse("unspeakable");
    let house = house(on, &far).await;
    let lin = house.lin().await;
    lin.remembers("An unspeakable cat").await;
    lin.remembers("A vessel in the fog").await;
    let found = lin.finds_some_day("ship").await;
    assert_eq!(contents(&found), ["A vessel in the fog"]);
    // It is still found by its words.
    assert_eq!(contents(&lin.looks_for("unspeakable").await), ["An unspeakable cat"]);
    house.close().await;
}

async fn what_is_forgotten_or_somebody_elses_is_not_found_by_its_meaning(on: On) {
    let far = notions().await;
    let house = house(on, &far).await;
    let lin = house.lin().await;
    let own = json!({"content": "My own feline", "type": "core", "scope": {"user": "lin"}});
    assert_eq!(lin.post("/api/memories", &own).await.status, 201);
    let shared = lin.remembers("The office feline").await;
    let began = Instant::now();
    while lin.looks_for("cat").await.len() < 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", far.shown());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mei = house.server.human("mei").await;
    assert_eq!(contents(&mei.looks_for("cat").await), ["The office feline"]);
    let request = lin.request(reqwest::Method::DELETE, &format!("/api/memories/{shared}"));
    assert_eq!(answer(request).await.status, 200);
    assert_eq!(mei.looks_for("cat").await.len(), 0);
    assert_eq!(contents(&lin.looks_for("cat").await), ["My own feline"]);
    // A correction takes the place of what it corrects, in meaning too.
    let page = lin.get("/api/memories?type=core").await.json();
    let body = json!({"content": "My own loaf", "type": "core", "scope": {"user": "lin"},
        "supersedes": page["items"][0]["id"]});
    assert_eq!(lin.post("/api/memories", &body).await.status, 201);
    assert_eq!(contents(&lin.finds_some_day("bread").await), ["My own loaf"]);
    assert_eq!(lin.looks_for("cat").await.len(), 0);
    house.close().await;
}
