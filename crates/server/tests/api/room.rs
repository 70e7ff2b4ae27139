//! A group at work: whose turn it is, what each member reads, and what a person may do about it.

use serde_json::{Value, json};

use crate::harness::{Caller, id};
use crate::house::{House, On, on_both};

on_both! {
    members_speak_in_order_and_read_what_was_said_before_them;
    the_lead_ends_it_early_with_its_answer;
    only_the_lead_concludes;
    a_question_of_a_member_is_asked_in_its_name_and_stops_the_group_alone;
    a_person_speaks_to_the_room_or_to_one_member_and_the_agent_above_is_told;
    a_group_that_is_to_wrap_up_ends_with_the_leads_word;
    a_run_rests_when_it_is_paused_and_goes_on_when_it_is_resumed;
    a_member_that_is_gone_is_passed_over;
}

impl Caller {
    /// A run of a group whose members have these lines.
    async fn convene(&self, group: &str, lines: &Value) -> String {
        let body = json!({"group": group, "input": lines.to_string()});
        let made = self.post("/api/runs", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        id(&made.json())
    }

    /// The members that had the floor, with the round.
    async fn turns(&self, run: &str) -> Vec<String> {
        let page = self.get(&format!("/api/runs/{run}/events")).await.json();
        let turns =
            page["items"].as_array().unwrap().iter().filter(|it| it["type"] == "turn.began");
        let turn =
            |it: &Value| format!("{} {}", it["data"]["member"]["agent"], it["data"]["round"]);
        turns.map(|it| turn(it).replace('"', "")).collect()
    }

    /// Waits until the run rests for a signal, and sends it.
    async fn go(&self, run: &str, key: &str) {
        self.until(run, "waiting").await;
        let signal = json!({"correlation_key": key});
        let sent = self.post(&format!("/api/runs/{run}/signal"), &signal).await;
        assert_eq!(sent.status, 200, "{sent:?}");
    }
}

/// A member that waits for a signal before it says something.
fn waits(key: &str, say: &str) -> Value {
    json!({"calls": [[["wait_for_signal", {"correlation_key": key}]]], "say": say})
}

/// What a member read as its turn began, the last time that it had one.
fn read_by(house: &House, member: &str) -> String {
    let requests = house.model.requests();
    let turn = format!("It is your turn, {member}.");
    let briefs = requests
        .iter()
        .rev()
        .flat_map(|it| it.body["messages"].as_array().cloned().unwrap_or_default());
    let mut briefs = briefs.filter_map(|it| it["content"].as_str().map(str::to_owned));
    briefs.find(|it| it.ends_with(&turn)).unwrap_or_else(|| panic!("{member} had no turn"))
}

async fn members_speak_in_order_and_read_what_was_said_before_them(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({
        "narrow": {"say": "I begin"},
        "pa": {"calls": [[["note", {"to": "x"}]]], "say": "I noted"},
        "payer": {"say": "I end"},
    });
    let run = lin.convene("grp_talk", &lines).await;
    let done = lin.until(&run, "completed").await;
    assert_eq!((&done["output"], &done["group"]), (&json!("I end"), &json!("grp_talk")));
    let turns = ["narrow 1", "pa 1", "payer 1", "narrow 2", "pa 2", "payer 2"];
    assert_eq!(lin.turns(&run).await, turns);
    let read = read_by(&house, "payer");
    for said in ["## narrow\nI begin", "## pa\nI noted", "## payer\nI end"] {
        assert!(read.contains(said), "{read}");
    }
    let system = house.model.requests()[0].body["messages"][0]["content"].clone();
    let system = system.as_str().unwrap();
    assert!(system.starts_with("You may not deploy."), "the member's own prompt: {system}");
    assert!(system.contains("You are `narrow` in the group Talkers"), "{system}");
    assert_eq!(house.ledger(), ["note x", "note x"], "once in each round");
    house.close().await;
}

async fn the_lead_ends_it_early_with_its_answer(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({"payer": {"calls": [[["conclude", {"answer": "enough"}]]]}});
    let run = lin.convene("grp_pay", &lines).await;
    assert_eq!(lin.until(&run, "completed").await["output"], "enough");
    assert_eq!(lin.turns(&run).await, ["payer 1"]);
    house.close().await;
}

async fn only_the_lead_concludes(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({"narrow": {"calls": [[["conclude", {"answer": "mine"}]]], "say": "last"}});
    let run = lin.convene("grp_pay", &lines).await;
    assert_eq!(lin.until(&run, "completed").await["output"], "last");
    assert_eq!(lin.turns(&run).await, ["payer 1", "narrow 1"]);
    // An agent by itself has nothing to conclude.
    let run = lin.script("pa", json!([[["conclude", {"answer": "x"}]]])).await;
    lin.until(&run, "completed").await;
    assert!(house.results()[0].contains("NOT_THE_LEAD"), "{:?}", house.results());
    house.close().await;
}

async fn a_question_of_a_member_is_asked_in_its_name_and_stops_the_group_alone(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({
        "payer": {"say": "you pay"},
        "narrow": {"calls": [[["note", {"to": "x"}], ["pay", {"to": "mei"}]]], "say": "paid"},
    });
    let goal = json!({"group_id": "grp_pay", "goal": lines.to_string()});
    let run = lin.script("pa", json!([[["escalate_to_group", goal]]])).await;
    assert_eq!(lin.until(&run, "waiting").await["waiting_for"], "child");
    let page = lin.get(&format!("/api/runs?parent={run}")).await.json();
    let child = id(&page["items"][0]);
    assert_eq!(lin.until(&child, "waiting").await["waiting_for"], "permission");
    let asked = lin.asked(&child).await;
    assert_eq!(asked.len(), 1);
    let who = (&asked[0]["agent"], &asked[0]["role"], &asked[0]["user"]);
    assert_eq!(who, (&json!("narrow"), &json!("narrow"), &json!("lin")));
    let chain: Vec<&Value> =
        asked[0]["chain"].as_array().unwrap().iter().map(|it| &it["agent"]).collect();
    assert_eq!(chain, ["narrow", "pa"], "{}", asked[0]["chain"]);
    assert_eq!(house.ledger(), [""; 0], "nothing of the batch has run");
    lin.grant(&asked[0]).await;
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note x", "pay mei"]);
    house.close().await;
}

async fn a_person_speaks_to_the_room_or_to_one_member_and_the_agent_above_is_told(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({"payer": waits("go", "I paid"), "narrow": {"say": "I saw"}});
    let goal = json!({"group_id": "grp_pay", "goal": lines.to_string()});
    let run = lin.script("pa", json!([[["escalate_to_group", goal]]])).await;
    lin.until(&run, "waiting").await;
    let child = id(&lin.get(&format!("/api/runs?parent={run}")).await.json()["items"][0]);
    lin.until(&child, "waiting").await;
    let path = format!("/api/runs/{child}/messages");
    for (text, to) in
        [("all of you", None), ("you alone", Some("narrow")), ("not you", Some("payer"))]
    {
        let spoken = lin.post(&path, &json!({"text": text, "to": to})).await;
        assert_eq!(spoken.status, 200, "{spoken:?}");
    }
    let stranger = json!({"text": "x", "to": "mei"});
    lin.post(&path, &stranger).await.problem(400, "unknown_member");
    lin.go(&child, "go").await;
    lin.until(&run, "completed").await;
    // The one who had the floor heard two of them, the next one two others.
    let heard: Vec<String> = house
        .model
        .requests()
        .iter()
        .map(|it| it.body["messages"].to_string())
        .filter(|it| it.contains("It is your turn, payer."))
        .collect();
    let last = heard.last().unwrap();
    assert!(last.contains("all of you") && last.contains("not you"), "{last}");
    assert!(!last.contains("you alone"), "{last}");
    let read = read_by(&house, "narrow");
    assert!(read.contains("lin, a person, to all\nall of you"), "{read}");
    assert!(read.contains("lin, a person, to you\nyou alone"), "{read}");
    assert!(!read.contains("not you"), "{read}");
    // The agent that waits reads that it happened, and what was said.
    let told: Value = serde_json::from_str(&house.results()[0]).unwrap();
    assert_eq!(told["people_spoke"].as_array().unwrap().len(), 3, "{told}");
    assert_eq!(told["people_spoke"][0], json!({"by": "lin", "text": "all of you"}));
    let audit = house.server.operator().get("/api/audit?kind=person.spoke").await.json();
    assert_eq!(audit["items"].as_array().unwrap().len(), 3, "{audit}");
    house.close().await;
}

async fn a_group_that_is_to_wrap_up_ends_with_the_leads_word(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({
        "narrow": {"say": "the lead's word"},
        "pa": waits("go", "half of it"),
        "payer": {"say": "never"},
    });
    let run = lin.convene("grp_talk", &lines).await;
    lin.until(&run, "waiting").await;
    for _ in 0..2 {
        assert_eq!(lin.post(&format!("/api/runs/{run}/wrapup"), &json!({})).await.status, 200);
    }
    lin.go(&run, "go").await;
    let done = lin.until(&run, "completed").await;
    assert_eq!(done["output"], "the lead's word");
    assert_eq!(lin.turns(&run).await, ["narrow 1", "pa 1", "narrow 1"]);
    assert!(read_by(&house, "narrow").contains("wrap up now"));
    lin.post(&format!("/api/runs/{run}/wrapup"), &json!({})).await.problem(409, "run_ended");
    house.close().await;
}

async fn a_run_rests_when_it_is_paused_and_goes_on_when_it_is_resumed(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines =
        json!({"payer": waits("go", "I paid"), "narrow": {"calls": [[["note", {"to": "x"}]]]}});
    let run = lin.convene("grp_pay", &lines).await;
    lin.until(&run, "waiting").await;
    let post = async |verb: &str| lin.post(&format!("/api/runs/{run}/{verb}"), &json!({})).await;
    lin.post(&format!("/api/runs/{run}/resume"), &json!({})).await.problem(409, "not_resumable");
    assert_eq!(post("pause").await.status, 200);
    let signal = json!({"correlation_key": "go"});
    lin.post(&format!("/api/runs/{run}/signal"), &signal).await;
    let resting = loop {
        let shown = lin.get(&format!("/api/runs/{run}")).await.json();
        if shown["waiting_for"] == "pause" {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&resting["status"], house.ledger().len()), (&json!("waiting"), 0));
    assert_eq!(post("resume").await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger(), ["note x"]);
    assert!(lin.kinds(&run).await.contains(&"run.paused".to_owned()));
    house.close().await;
}

async fn a_member_that_is_gone_is_passed_over(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let lines = json!({"payer": waits("go", "I paid"), "narrow": {"say": "not there"}});
    let run = lin.convene("grp_pay", &lines).await;
    lin.until(&run, "waiting").await;
    house.dismiss("narrow").await;
    lin.go(&run, "go").await;
    let done = lin.until(&run, "completed").await;
    assert_eq!(done["output"], "I paid", "the last words of those who are there");
    house.close().await;
}
