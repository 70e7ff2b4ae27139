//! The model of the proofs as a program: checked by Coq, extracted and compiled anew for each
//! test, so that no table can be stale.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// So that two tests of one process have a folder each.
static BUILT: AtomicUsize = AtomicUsize::new(0);

/// In the order in which one stands on another.
pub const THEORIES: [&str; 5] = ["Ruling", "Bounds", "Delegation", "Verdict", "Latch"];

/// A folder of its own, gone with this value.
#[derive(Debug)]
pub struct Model {
    folder: PathBuf,
}

impl Model {
    /// Checks the proofs and compiles what is extracted from them.
    pub fn build() -> Model {
        let model = Model::checked();
        model.coq("Extract");
        let files = ["model.mli", "model.ml", "histories.ml", "tables.ml"];
        let mut compile = model.command("ocamlfind");
        // What is extracted is not written to please a compiler.
        run(compile.args(["ocamlopt", "-w", "-a", "-o", "tables"]).args(files));
        model
    }

    /// Checks the proofs.
    pub fn checked() -> Model {
        let built = BUILT.fetch_add(1, Ordering::Relaxed);
        let name = format!("proofs-{}-{built}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let model = Model { folder };
        for file in std::fs::read_dir(sources()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), model.folder.join(file.file_name())).unwrap();
        }
        for theory in THEORIES {
            model.coq(theory);
        }
        model
    }

    /// Checks one file, and answers what Coq printed.
    pub fn coq(&self, theory: &str) -> String {
        let mut coq = self.command("coqc");
        run(coq.args(["-Q", ".", "Chancery"]).arg(format!("{theory}.v")))
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    /// Every line of one of the model's tables.
    pub fn table(&self, which: &str, mut each: impl FnMut(&str)) {
        let mut tables = self.command(self.folder.join("tables"));
        let mut child = tables.arg(which).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.for_each(|line| each(&line.unwrap()));
        assert!(child.wait().unwrap().success());
    }

    #[expect(clippy::disallowed_methods, reason = "what is proved is proved by another program")]
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // What is left behind is in the folder for what tests leave behind.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn sources() -> PathBuf {
    // Of the checkout that is tested, which may not be the one that was built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    Path::new(&package).join("../../proofs")
}

fn run(command: &mut Command) -> String {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            panic!(
                "the proofs need Coq: install Debian's `coq`, or `cargo xtask test` does: {error}"
            )
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?} failed:\n{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}
