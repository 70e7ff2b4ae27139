//! What a server stands in: its settings, the operator's commands, and the far side, a file to
//! which every effect appends its idempotency key with one write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chancery_testkit::fake_model::FakeModel;
use tempfile::TempDir;

use crate::server::{Server, Start};

#[derive(Debug)]
pub struct House {
    pub dir: TempDir,
    /// Absent: SQLite, in each server's own directory.
    pub database: Option<String>,
    pub lease_seconds: u64,
    pub on_unknown_outcome: &'static str,
    pub workers: u32,
}

const TOOLS: &str = "
commands:
  effect: {description: Has an effect, command: [/bin/sh, ORG/effect.sh]}
  slow_effect: {description: Has an effect after a while, command: [/bin/sh, ORG/slow.sh]}
  unhurried_effect: {description: Takes a little, command: [/bin/sh, ORG/unhurried.sh]}
  patient_effect: {description: May be run again, command: [/bin/sh, ORG/patient.sh], idempotent: true}
  asked_effect: {description: Is asked about, command: [/bin/sh, ORG/effect.sh], risk: high}
  killer: {description: Has an effect and kills, command: [/bin/sh, ORG/killer.sh], idempotent: true}
";

impl House {
    pub fn new() -> House {
        let dir = TempDir::with_prefix("chancery-faults-").unwrap();
        let org = dir.path().join("org");
        std::fs::create_dir(&org).unwrap();
        let tools = TOOLS.replace("ORG", &org.display().to_string());
        std::fs::write(org.join("tools.yaml"), tools).unwrap();
        let effects = dir.path().join("effects");
        let effect =
            format!("printf '%s\\n' \"$CHANCERY_IDEMPOTENCY_KEY\" >> '{}'\n", effects.display());
        std::fs::write(&effects, "").unwrap();
        std::fs::write(org.join("effect.sh"), &effect).unwrap();
        std::fs::write(org.join("slow.sh"), format!("{effect}sleep 3\n")).unwrap();
        let unhurried = format!("sleep 0.02\n{effect}sleep 0.05\n");
        std::fs::write(org.join("unhurried.sh"), unhurried).unwrap();
        std::fs::write(org.join("patient.sh"), format!("{effect}sleep 0.4\n")).unwrap();
        std::fs::write(org.join("killer.sh"), format!("{effect}kill -9 $PPID\n")).unwrap();
        House { dir, database: None, lease_seconds: 10, on_unknown_outcome: "ask", workers: 64 }
    }

    pub fn on(database: String, lease_seconds: u64) -> House {
        House { database: Some(database), lease_seconds, ..House::new() }
    }

    /// How often each key has had its effect.
    pub fn effects(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.dir.path().join("effects")).unwrap();
        let mut effects = BTreeMap::new();
        for key in text.lines() {
            *effects.entry(key.to_owned()).or_default() += 1;
        }
        effects
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn data(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// How to start the server of that name: it has no walls around its commands, whose effects
    /// are outside and one of which kills it; and it has a data directory and a model of its own.
    pub fn start(&self, name: &str, model: &FakeModel) -> Start {
        let settings = self.dir.path().join(format!("{name}.toml"));
        let text = format!(
            "workers = {}\nisolation.mode = \"off\"\n[limits]\nlease_seconds = {}\n[tools]\non_unknown_outcome = \"{}\"\n\
             [models.default]\nprovider = \"openai\"\nmodel = \"fake\"\nbase_url = \"{}\"\n",
            self.workers,
            self.lease_seconds,
            self.on_unknown_outcome,
            model.chat_url(),
        );
        std::fs::write(&settings, text).unwrap();
        let mut arguments = vec![
            "serve".to_owned(),
            "--listen".to_owned(),
            "127.0.0.1:0".to_owned(),
            "--config".to_owned(),
            settings.display().to_string(),
            "--org".to_owned(),
            self.dir.path().join("org").display().to_string(),
            "--data".to_owned(),
            self.data(name).display().to_string(),
        ];
        if let Some(url) = &self.database {
            arguments.extend(["--database".to_owned(), url.clone()]);
        }
        Start { launcher: Vec::new(), arguments, environment: Vec::new() }
    }

    pub async fn serve(&self, name: &str, model: &FakeModel) -> Server {
        self.start(name, model).serve().await
    }
}
