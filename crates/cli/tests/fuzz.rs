//! Every parser of what others wrote, for a moment: what is kept in `fuzz/seeds`, and mutations of
//! it that are the same every time. `cargo fuzz` goes on from there (docs/proof.md).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chancery_runtime::fuzz as runtime;
use chancery_server::fuzz as server;
use chancery_store::fuzz as store;

/// For each target; all of them together are to take less than a minute on two cores.
const TIME: Duration = Duration::from_secs(3);
/// The inputs that are tried when the machine is quick.
const MUTATIONS: usize = 20_000;
const LENGTH_MAX: usize = 4096;

macro_rules! targets {
    ($($name:ident: $target:path,)*) => {
        $(#[test]
        fn $name() {
            play(stringify!($name), $target);
        })*

        /// A target that only the fuzzer knows would not be tried here.
        #[test]
        fn every_target_of_the_fuzzer_is_tried_here() {
            let mut known = vec![$(stringify!($name).to_owned()),*];
            known.sort();
            let mut there: Vec<String> = files(&root().join("fuzz_targets"))
                .iter()
                .filter_map(|it| Some(it.file_stem()?.to_str()?.to_owned()))
                .collect();
            there.sort();
            assert_eq!(known, there);
        }
    };
}

targets! {
    anthropic: runtime::anthropic,
    arguments: runtime::arguments,
    audit_entry: store::audit_entry,
    audit_export: store::audit_export,
    audit_hash: store::audit_hash,
    canonical: runtime::canonical,
    command: server::command,
    copy: store::copy,
    cursor: server::cursor,
    letters: runtime::letters,
    literals: runtime::literals,
    markdown: server::markdown,
    mcp_result: runtime::mcp_result,
    mcp_tool: runtime::mcp_tool,
    openai: runtime::openai,
    organisation: server::organisation,
    raw_arguments: runtime::raw_arguments,
    rules: runtime::rules,
    web_page: runtime::web_page,
    webhook: runtime::webhook,
}

fn root() -> PathBuf {
    chancery_testkit::package().join("../../fuzz")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|it| panic!("{}: {it}", dir.display()));
    let mut files: Vec<PathBuf> =
        entries.filter_map(|it| Some(it.ok()?.path())).filter(|it| it.is_file()).collect();
    files.sort();
    files
}

fn play(name: &str, target: fn(&[u8])) {
    let seeds: Vec<Vec<u8>> = files(&root().join("seeds").join(name))
        .iter()
        .map(|it| std::fs::read(it).unwrap_or_else(|error| panic!("{}: {error}", it.display())))
        .collect();
    assert!(!seeds.is_empty(), "there are no seeds for {name}");
    target(b"");
    seeds.iter().for_each(|it| target(it));
    let mut mutant = Mutant(0x9e37_79b9_7f4a_7c15);
    let began = Instant::now();
    for _ in 0..MUTATIONS {
        if began.elapsed() > TIME {
            return;
        }
        let input = mutant.of(&seeds);
        let tried = std::panic::catch_unwind(|| target(&input));
        if let Err(panic) = tried {
            // To be kept: `printf` makes a seed of it.
            eprintln!("{name} fails on {:?}", input.escape_ascii().to_string());
            std::panic::resume_unwind(panic);
        }
    }
}

/// Changes inputs a little, the same way every time.
struct Mutant(u64);

impl Mutant {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).unwrap_or_default()
    }

    fn of(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        const MARKS: [&[u8]; 16] = [
            b"\0",
            b"\n",
            b"\r\n",
            b"\"",
            b"'",
            b"{",
            b"}",
            b"[",
            b": ",
            b"- ",
            b"<",
            b"@",
            b"://",
            "\u{202e}".as_bytes(),
            "年".as_bytes(),
            b"9007199254740993",
        ];
        let mut input = seeds[self.next(seeds.len())].clone();
        for _ in 0..=self.next(4) {
            let at = self.next(input.len() + 1);
            match self.next(5) {
                0 if at < input.len() => input[at] = u8::try_from(self.next(256)).unwrap_or(0),
                1 => {
                    let end = (at + self.next(16)).min(input.len());
                    input.drain(at..end);
                }
                2 => {
                    let mark = MARKS[self.next(MARKS.len())];
                    input.splice(at..at, mark.iter().copied());
                }
                3 => {
                    let other = &seeds[self.next(seeds.len())];
                    let from = self.next(other.len() + 1);
                    let to = (from + self.next(64)).min(other.len());
                    input.splice(at..at, other[from..to].iter().copied());
                }
                _ => {
                    let end = (at + self.next(32)).min(input.len());
                    let again = input[at..end].to_vec();
                    input.splice(at..at, again);
                }
            }
        }
        input.truncate(LENGTH_MAX);
        input
    }
}
