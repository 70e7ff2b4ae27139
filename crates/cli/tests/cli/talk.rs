//! `chat`: every line is a run of one session, and the model sees what was said before.

use chancery_testkit::fake_model::{Answer, Behaviour, FakeModel};

use crate::harness::Place;

/// A place whose model is the test's.
fn place_with(model: &FakeModel) -> Place {
    let place = Place::new();
    place.write(
        "chancery.toml",
        &format!(
            "listen = \"127.0.0.1:0\"\n[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\n\
             retries = 0\n",
            model.chat_url()
        ),
    );
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn a_talk_keeps_its_session() {
    let model = FakeModel::start().await.unwrap();
    model.otherwise(|number, _| Behaviour::Stream(Answer::text(&format!("answer {number}"))));
    let place = place_with(&model);
    let server = place.serve(&[]);
    let talked = place.told(&["chat"], "my name is Lin\n\n   \nwhat is my name?\nlast line");
    assert_eq!(talked.done(), "answer 1\nanswer 2\nanswer 3\n");
    let asked = model.requests();
    let said = |number: usize| -> Vec<String> {
        let messages = asked[number].body["messages"].as_array().unwrap();
        let spoken = messages.iter().filter(|it| it["role"] != "system");
        spoken.map(|it| it["content"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(said(0), ["my name is Lin"]);
    assert_eq!(said(1), ["my name is Lin", "answer 1", "what is my name?"]);
    assert_eq!(said(2).len(), 5);
    // One thing, and on with it under the same key.
    let one = place.chancery(&["chat", "-m", "first", "--session", "s"]);
    assert_eq!(one.done(), "answer 4\n");
    let two = place.chancery(&["chat", "-m", "second", "--session", "s", "--json"]);
    assert_eq!(two.json()["session_key"], "s");
    let messages = model.requests()[4].body["messages"].to_string();
    assert!(messages.contains("first") && messages.contains("answer 4"), "{messages}");
    // A group is talked with like an agent; what is neither is said so.
    let group = place.chancery(&["chat", "-m", "hello all", "--to", "grp_research", "--json"]);
    assert_eq!(group.json()["group"], "grp_research", "{group:?}");
    let nobody = place.chancery(&["chat", "-m", "hello", "--to", "grp_nobody"]);
    assert!(nobody.failed(1).contains("there is no agent `grp_nobody`"));
    // Another talk knows nothing of it.
    place.chancery(&["chat", "-m", "third"]).done();
    let last = model.requests().pop().unwrap();
    assert!(!last.body["messages"].to_string().contains("first"));
    assert_eq!(server.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_is_exit_code_5_and_can_be_resumed() {
    let model = FakeModel::start().await.unwrap();
    model.will(Behaviour::status(400, "no such model"));
    model.otherwise(|_, _| Behaviour::Stream(Answer::text("better")));
    let place = place_with(&model);
    let _server = place.serve(&[]);
    let failed = place.chancery(&["chat", "-m", "hello"]);
    assert_eq!((failed.code, &*failed.err), (5, ""), "{failed:?}");
    assert!(
        failed.out.starts_with("[failed] ") && failed.out.contains("no such model"),
        "{failed:?}"
    );
    let listed = place.chancery(&["run", "ls", "--json"]).json();
    let run = listed["items"][0]["id"].as_str().unwrap();
    assert_eq!(place.chancery(&["run", "resume", run]).code, 0);
    let ended = place.chancery(&["run", "trace", run, "--follow"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let stranger = place.chancery(&["chat", "--to", "stranger", "-m", "x"]);
    assert_eq!(stranger.failed(1), "there is no agent `stranger`");
}
