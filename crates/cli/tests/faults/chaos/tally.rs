//! What came of it all: the logs, the far side's ledger and what people were told, held against
//! each other. Reads only what it is given, and finds every wrong, not the first.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Everything that is known afterwards.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// The runs whose making was answered with 201, each with its plan.
    pub plans: BTreeMap<String, String>,
    /// The logs of the runs that were found.
    pub logs: BTreeMap<String, Vec<Value>>,
    /// The far side: an idempotency key for each effect, `! question` before each answer to one.
    pub ledger: Vec<String>,
    pub answers: Vec<Answer>,
    pub signals: Vec<Signal>,
}

/// A person's word on a question, and what they were told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub question: String,
    pub decision: &'static str,
    /// `None`: nobody answered.
    pub status: Option<u16>,
}

/// A signal that was sent, and what its sender was told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    pub run: String,
    pub key: String,
    pub status: Option<u16>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Figures {
    pub runs: usize,
    pub completed: usize,
    pub lost: usize,
    pub events: usize,
    pub batches: usize,
    /// How often the last open question of a batch was answered.
    pub resumptions: usize,
    pub questions: usize,
    pub answers: usize,
    pub late_answers: usize,
    pub unknown_asked: usize,
    pub run_again_by_a_person: usize,
    pub signals: usize,
    pub calls_started: usize,
    pub effects: usize,
    /// Calls that had their effect more often than they were let to.
    pub doubled: usize,
}

#[derive(Debug, Default)]
pub struct Tally {
    pub figures: Figures,
    pub wrongs: Vec<String>,
}

/// One call, by its idempotency key.
#[derive(Debug, Default)]
struct Life {
    starts: usize,
    finishes: usize,
    unknown: usize,
    /// A person said: run it again.
    again: usize,
    /// What had to be answered before anything of its batch could run.
    behind: BTreeSet<String>,
}

/// A log as far as it was read.
#[derive(Debug, Default)]
struct Reading {
    /// The tools of the batch that is open, by call; and the keys of those that have started.
    tools: BTreeMap<String, String>,
    keys: BTreeMap<String, String>,
    /// What was asked when the batch was proposed.
    behind: BTreeSet<String>,
    /// What is asked now.
    open: BTreeSet<String>,
    is_closed: bool,
    wait: Option<String>,
    batches: usize,
    completed: usize,
}

impl Tally {
    pub fn of(evidence: &Evidence) -> Tally {
        let mut tally = Tally::default();
        let (mut lives, mut decisions) = (BTreeMap::new(), BTreeMap::new());
        tally.figures.runs = evidence.plans.len();
        for (run, plan) in &evidence.plans {
            let log = evidence.logs.get(run).map(Vec::as_slice).unwrap_or_default();
            tally.read(run, plan, log, &mut lives, &mut decisions);
        }
        tally.hold_ledger(&evidence.ledger, &lives);
        tally.hear(evidence, &decisions);
        tally
    }

    fn wrong(&mut self, what: String) {
        self.wrongs.push(what);
    }

    fn read(
        &mut self,
        run: &str,
        plan: &str,
        log: &[Value],
        lives: &mut BTreeMap<String, Life>,
        decisions: &mut BTreeMap<String, String>,
    ) {
        let mut reading = Reading { is_closed: true, ..Reading::default() };
        for (place, event) in log.iter().enumerate() {
            if event["seq"] != place as u64 + 1 {
                self.wrong(format!("{run} has a gap before {event}"));
            }
            let kind = event["type"].as_str().unwrap_or_default();
            if let Err(what) = self.follow(&mut reading, kind, &event["data"], lives, decisions) {
                self.wrong(format!("{run} at {}: {what}", place + 1));
            }
        }
        self.figures.events += log.len();
        let ends = log.last().is_some_and(|it| it["type"] == "run.completed");
        if reading.completed == 1 && ends {
            self.figures.completed += 1;
        } else {
            self.figures.lost += 1;
            let last = log.last().map(|it| it["type"].clone()).unwrap_or_default();
            self.wrong(format!("{run} is lost: its log has {} events, last {last}", log.len()));
        }
        let planned = plan.split(' ').count();
        if reading.batches != planned {
            self.wrong(format!("{run} has {} batches, not {planned}", reading.batches));
        }
    }

    fn follow(
        &mut self,
        reading: &mut Reading,
        kind: &str,
        data: &Value,
        lives: &mut BTreeMap<String, Life>,
        decisions: &mut BTreeMap<String, String>,
    ) -> Result<(), String> {
        let call = text(&data["call"]);
        let wrong = |what: &str| Err(format!("{what}: {kind} {data}"));
        match kind {
            "batch.proposed" => {
                if !std::mem::take(&mut reading.is_closed) {
                    return wrong("a batch begins before the last one is closed");
                }
                reading.propose(data);
                self.figures.batches += 1;
                self.figures.questions += reading.open.len();
            }
            "permission.requested" => {
                self.figures.questions += 1;
                self.figures.unknown_asked += 1;
                reading.open.insert(text(&data["request"]["id"]));
                match reading.keys.get(&call).and_then(|it| lives.get_mut(it)) {
                    Some(life) => life.unknown += 1,
                    None => return wrong("asked about a call that has not started"),
                }
            }
            "permission.updated" => {
                let question = text(&data["permission"]);
                if !reading.open.remove(&question) {
                    return wrong("answered though it is not open");
                }
                let decision = match data["decision"].as_str() {
                    Some(word) => word.to_owned(),
                    None => "supplied".to_owned(),
                };
                if let Some(life) = reading.keys.get(&call).and_then(|it| lives.get_mut(it))
                    && decision == "granted"
                {
                    life.again += 1;
                    self.figures.run_again_by_a_person += 1;
                }
                decisions.insert(question, decision);
                self.figures.resumptions += usize::from(reading.open.is_empty());
            }
            _ if kind.starts_with("tool.") => self.follow_call(reading, kind, data, lives)?,
            "batch.closed" if std::mem::replace(&mut reading.is_closed, true) => {
                return wrong("a batch is closed twice");
            }
            "wait.began" => reading.wait = Some(text(&data["correlation_key"])),
            "signal.received" => {
                self.figures.signals += 1;
                if reading.wait.take() != Some(text(&data["correlation_key"])) {
                    return wrong("a signal ends no wait");
                }
            }
            "run.completed" => reading.completed += 1,
            _ => {}
        }
        Ok(())
    }

    /// What becomes of one call.
    fn follow_call(
        &mut self,
        reading: &mut Reading,
        kind: &str,
        data: &Value,
        lives: &mut BTreeMap<String, Life>,
    ) -> Result<(), String> {
        let call = text(&data["call"]);
        let wrong = |what: &str| Err(format!("{what}: {kind} {data}"));
        match kind {
            "tool.started" => {
                if !reading.open.is_empty() || reading.is_closed {
                    return wrong("a call starts while its batch is not settled");
                }
                if reading.tools.get(&call).is_some_and(|it| it != "wait_for_signal") {
                    let key = text(&data["idempotency_key"]);
                    let life = lives.entry(key.clone()).or_default();
                    life.starts += 1;
                    life.behind.clone_from(&reading.behind);
                    reading.keys.insert(call, key);
                    self.figures.calls_started += 1;
                }
            }
            "tool.finished" => {
                let Some(life) = reading.keys.get(&call).and_then(|it| lives.get_mut(it)) else {
                    return wrong("a call ends that has not started");
                };
                life.finishes += 1;
                if data["result"]["is_error"] == true {
                    return wrong("a call ends badly");
                }
            }
            "tool.retried" => return wrong("a call is run again, and nobody was asked"),
            _ => {}
        }
        Ok(())
    }

    /// Effects without a start, too many, too few, too early.
    fn hold_ledger(&mut self, ledger: &[String], lives: &BTreeMap<String, Life>) {
        let mut effects: BTreeMap<&str, usize> = BTreeMap::new();
        let mut answered: BTreeSet<&str> = BTreeSet::new();
        for line in ledger {
            if let Some(question) = line.strip_prefix("! ") {
                answered.insert(question);
                continue;
            }
            self.figures.effects += 1;
            *effects.entry(line).or_default() += 1;
            let Some(life) = lives.get(line) else {
                self.wrong(format!("{line} had an effect and has no durable start"));
                continue;
            };
            if let Some(early) = life.behind.iter().find(|it| !answered.contains(it.as_str())) {
                self.wrong(format!("{line} had an effect before {early} was answered"));
            }
        }
        for (key, life) in lives {
            let happened = effects.get(key.as_str()).copied().unwrap_or(0);
            let said = format!("{key} had its effect {happened} times: {life:?}");
            if happened > 1 + life.again {
                self.figures.doubled += 1;
                self.wrong(format!("doubled: {said}"));
            }
            if life.starts != 1 + life.again || life.finishes > 1 {
                self.wrong(format!("started or ended too often: {said}"));
            }
            match life.finishes {
                0 if life.unknown < life.starts => self.wrong(format!("not ended: {said}")),
                1 if happened == 0 => self.wrong(format!("no effect: {said}")),
                _ => {}
            }
        }
    }

    /// What people were told is what the logs say.
    fn hear(&mut self, evidence: &Evidence, decisions: &BTreeMap<String, String>) {
        for Answer { question, decision, status } in &evidence.answers {
            self.figures.answers += 1;
            match status {
                Some(200) if decisions.get(question).map(String::as_str) != Some(*decision) => {
                    let stands = decisions.get(question);
                    self.wrong(format!("{question} was {decision}, says a 200; not {stands:?}"));
                }
                Some(409) => self.figures.late_answers += 1,
                None | Some(200 | 503) => {}
                Some(other) => self.wrong(format!("{question} was {decision}: {other}")),
            }
        }
        for Signal { run, key, status } in &evidence.signals {
            match status {
                Some(200) => {}
                // 404: whoever was asked has not heard of the wait. 409: it is over.
                None | Some(404 | 409 | 503) => continue,
                Some(other) => self.wrong(format!("{run} was signalled {key}: {other}")),
            }
            let log = evidence.logs.get(run).map(Vec::as_slice).unwrap_or_default();
            let of_key = |it: &&Value| {
                it["type"] == "signal.received" && it["data"]["correlation_key"] == key.as_str()
            };
            if log.iter().filter(of_key).count() != 1 {
                self.wrong(format!("{run} was signalled {key}, says a 200: it is not there once"));
            }
        }
    }
}

impl Reading {
    fn propose(&mut self, data: &Value) {
        self.batches += 1;
        self.keys.clear();
        self.tools.clear();
        self.open.clear();
        for proposal in data["calls"].as_array().into_iter().flatten() {
            self.tools.insert(text(&proposal["call"]["id"]), text(&proposal["call"]["tool"]));
            let asked = &proposal["answer"]["request"]["id"];
            self.open.extend(asked.as_str().map(str::to_owned));
        }
        self.behind.clone_from(&self.open);
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

mod tests;
