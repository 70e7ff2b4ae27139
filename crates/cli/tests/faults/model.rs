//! A model whose every answer follows from what it is asked, so that it says the same again after
//! a crash. The run's input is its plan: a word for each message, a letter for each call.
//!
//! `e` an effect, `a` one that somebody must approve, `u` an unhurried one, `s` a slow one, `p` one that takes its time and may be run
//! again, `k` one that kills its server (and may be run again), `w` a wait for the signal
//! `go-<word's place>`, `t` the same for two seconds at the most.

use chancery_testkit::fake_model::{Answer, Behaviour, FakeModel, Seen};

pub async fn start(name: &'static str) -> FakeModel {
    let model = FakeModel::start().await.unwrap();
    model.otherwise(move |_, seen| Behaviour::Plain(answer(name, seen)));
    model
}

fn answer(name: &str, seen: &Seen) -> Answer {
    let messages = seen.body["messages"].as_array().cloned().unwrap_or_default();
    let said = |role: &str| messages.iter().filter(|it| it["role"] == *role).count();
    let plan = messages.iter().find(|it| it["role"] == "user").map(|it| it["content"].clone());
    let plan = plan.as_ref().and_then(|it| it.as_str()).unwrap_or_default().to_owned();
    let place = said("assistant");
    let mut answer = match plan.split(' ').nth(place) {
        None => Answer::text("done"),
        Some(word) => word.chars().fold(Answer::text(""), |answer, letter| match letter {
            'e' => answer.and_call("effect", "{}"),
            'a' => answer.and_call("asked_effect", "{}"),
            'u' => answer.and_call("unhurried_effect", "{}"),
            'p' => answer.and_call("patient_effect", "{}"),
            's' => answer.and_call("slow_effect", "{}"),
            'k' => answer.and_call("killer", "{}"),
            'w' => answer
                .and_call("wait_for_signal", &format!(r#"{{"correlation_key": "go-{place}"}}"#)),
            't' => answer.and_call(
                "wait_for_signal",
                &format!(r#"{{"correlation_key": "go-{place}", "timeout": 2}}"#),
            ),
            other => panic!("no plan has `{other}`"),
        }),
    };
    answer = answer.with_ids(&format!("call_{place}"));
    answer.model = name.to_owned();
    answer
}
