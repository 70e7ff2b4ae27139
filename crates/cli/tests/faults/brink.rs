//! `kill -9` before, amid and after every append from a group's last word on: the child's end,
//! the parent's waking and its answer, the deposit. Each time the story comes to the same end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chancery_testkit::fake_model::{Answer, Behaviour, FakeModel, Seen};
use chancery_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::api::Api;
use crate::house::House;
use crate::server::Server;
use crate::until;

const ROLES: &str = "
extends: builtin
roles: {clerk: {prompt: You are a clerk.}}
agents: {pa: {role: clerk}}
";
const GROUPS: &str = "
groups: {grp_one: {name: One, description: Pursues goals, members: [pa]}}
";
/// Fewer deaths than this, and the brinks are not where they were.
const BRINKS_MIN: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn death_at_any_append_of_a_childs_end_on_sqlite_loses_nothing_and_doubles_nothing() {
    die_everywhere(House { lease_seconds: 1, ..House::new() }).await;
}

#[tokio::test]
async fn death_at_any_append_of_a_childs_end_on_postgres_loses_nothing_and_doubles_nothing() {
    let database = TestDatabase::create().await;
    die_everywhere(House::on(database.url(), 1)).await;
}

/// When the next server is to die: so many brinks after a group has said its last word.
type Fate = Arc<Mutex<Option<u64>>>;

async fn die_everywhere(house: House) {
    std::fs::write(house.path().join("org/roles.yaml"), ROLES).unwrap();
    std::fs::write(house.path().join("org/groups.yaml"), GROUPS).unwrap();
    let armed = house.path().join("brink");
    let fate = Fate::default();
    let model = storyteller(fate.clone(), armed.clone()).await;
    let mut start = house.start("one", &model);
    let named = ("CHANCERY_TEST_BRINK".to_owned(), armed.display().to_string());
    start.environment.push(named);
    let mut server = start.serve().await;
    let mut stories = Vec::new();
    for brink in 0.. {
        *fate.lock().unwrap() = Some(brink);
        let story = server.api.create(&format!("story-{brink}"), &format!("story {brink}")).await;
        stories.push(story.clone());
        let died = dies(&mut server, &armed, &story, brink).await;
        if died {
            server = start.serve().await;
        }
        has_come_to_its_end(&server.api, &story, brink).await;
        if !died {
            break;
        }
    }
    let deaths = stories.len() as u64 - 1;
    println!("{deaths} deaths");
    assert!(deaths >= BRINKS_MIN, "{deaths} deaths");
    // Nothing came later either.
    for (brink, story) in (0..).zip(&stories) {
        has_come_to_its_end(&server.api, story, brink).await;
    }
    let all = server.api.get("/api/memories?type=archival&limit=200").await;
    assert_eq!(all["items"].as_array().unwrap().len(), stories.len() * 2);
}

/// Whether the server dies on the way, or tells the story to its end.
async fn dies(server: &mut Server, armed: &Path, story: &str, brink: u64) -> bool {
    until("neither death nor end", PATIENCE, async || {
        if server.ended().is_some() {
            return Some(true);
        }
        let (_, run) = server.api.try_get(&format!("/api/runs/{story}")).await?;
        if run["status"] != "completed" || deposited(&server.api, brink).await.len() < 2 {
            return None;
        }
        // What is left of the count shows that the brinks have come to an end.
        armed.exists().then(|| std::fs::remove_file(armed).unwrap()).map(|()| false)
    })
    .await
}

async fn has_come_to_its_end(api: &Api, story: &str, brink: u64) {
    let outcome = format!("outcome {brink}");
    let told = api.reaches(story, "completed", PATIENCE).await;
    let children = api.get(&format!("/api/runs?parent={story}")).await;
    let [child] = &children["items"].as_array().unwrap()[..] else { panic!("{children}") };
    assert_eq!((&child["status"], &child["output"]), (&json!("completed"), &json!(outcome)));
    let log = api.events(story).await;
    let of = |kind: &str| log.iter().filter(|it| it["type"] == *kind).collect::<Vec<_>>();
    let [handed] = &of("child.ended")[..] else { panic!("{brink}: {log:#?}") };
    let handed: Value =
        serde_json::from_str(handed["data"]["result"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(handed, json!({"success": true, "result": outcome}));
    assert_eq!(of("run.completed").len(), 1, "{log:#?}");
    // It answers with what it was handed.
    assert_eq!(told["output"], format!("told of {handed}"));
    let known = until("no deposit", PATIENCE, async || {
        Some(deposited(api, brink).await).filter(|it| it.len() >= 2)
    });
    let known = known.await;
    let mut texts: Vec<&str> = known.iter().map(|it| it["content"].as_str().unwrap()).collect();
    texts.sort_unstable();
    assert_eq!(texts, [format!("decision {brink}"), outcome], "{known:#?}");
    for it in known {
        assert_eq!(it["sources"].as_array().unwrap().len(), 1, "{it:#}");
        assert_eq!(it["metadata"]["source_run_id"], child["id"], "{it:#}");
    }
}

/// What the project knows of a story.
async fn deposited(api: &Api, brink: u64) -> Vec<Value> {
    let Some((200, page)) = api.try_get("/api/memories?type=archival&limit=200").await else {
        return Vec::new();
    };
    let own = format!(" {brink}");
    let all = page["items"].as_array().cloned().unwrap_or_default();
    all.into_iter()
        .filter(|it| it["content"].as_str().is_some_and(|it| it.ends_with(&own)))
        .collect()
}

/// A parent hands its story to the group; the group decides, and says what came of it.
async fn storyteller(fate: Fate, armed: PathBuf) -> FakeModel {
    let model = FakeModel::start().await.unwrap();
    model.otherwise(move |_, seen| {
        let (answer, is_last_word) = line(seen);
        if is_last_word && let Some(brink) = fate.lock().unwrap().take() {
            // In one go, for the server reads it at any moment.
            let draft = armed.with_extension("draft");
            std::fs::write(&draft, brink.to_string()).unwrap();
            std::fs::rename(&draft, &armed).unwrap();
        }
        Behaviour::Plain(answer)
    });
    model
}

/// What is said next, and whether it is the group's last word.
fn line(seen: &Seen) -> (Answer, bool) {
    let messages = seen.body["messages"].as_array().cloned().unwrap_or_default();
    let of = |role: &'static str| messages.iter().filter(move |it| it["role"] == role);
    let first = of("user").next().and_then(|it| it["content"].as_str()).unwrap_or_default();
    let line = first.lines().next().unwrap_or_default();
    let (what, number) = line.split_once(' ').unwrap_or_default();
    let handed = of("tool").next().and_then(|it| it["content"].as_str());
    match (what, handed) {
        ("story", None) => {
            let goal = json!({"group_id": "grp_one", "goal": format!("goal {number}")});
            (Answer::call("escalate_to_group", &goal.to_string()).with_ids("over"), false)
        }
        ("story", Some(handed)) => (Answer::text(&format!("told of {handed}")), false),
        (_, None) => {
            let record = json!({"kind": "DECISION", "content": format!("decision {number}")});
            (Answer::call("record", &record.to_string()).with_ids("noted"), false)
        }
        (_, Some(_)) => (Answer::text(&format!("outcome {number}")), true),
    }
}
