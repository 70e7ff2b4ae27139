"""Every figure that `chancery bench` prints, one command after the other, with what it printed."""

import os
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What each one shows, and its words after `chancery bench`. `DATABASE`, `MEMORIES` and `TRACES` are
# filled in; what needs something that was not named is left out, and says so.
COMMANDS = [
    ("The spine on both databases", "runs --database DATABASE"),
    ("Servers of one run each on one PostgreSQL", "runs --quick --servers 4 --server-runs 1 --database DATABASE"),
    ("Servers whose model takes five milliseconds",
     "runs --quick --servers 4 --server-runs 4 --model-ms 5 --database DATABASE"),
    ("Servers whose model takes twenty milliseconds",
     "runs --quick --servers 4 --server-runs 4 --model-ms 20 --database DATABASE"),
    ("A hundred thousand runs that wait", "runs --seconds 0.3 --waiting 100000"),
    ("Rulings, alone and through the door", "authority"),
    ("Mail", "mail"),
    ("Processes behind walls", "spawn"),
    ("The doors", "doors"),
    ("Memory, what is found", "memory --quality --data-set MEMORIES"),
    ("Memory, how long it takes on SQLite", "memory"),
    ("Recorded attacks at the gate", "agentdojo TRACES"),
]


def measure(bench, note):
    """Answers with the sections of a page."""
    named = {"MEMORIES": bench.args.memories, "TRACES": bench.args.traces}
    known = {name: it and os.path.abspath(it) for name, it in named.items()}
    sections = []
    for about, words in COMMANDS:
        missing = [it for it in words.split() if it in known and not known[it]]
        if missing:
            sections.append((about, words, f"(left out: name {missing[0]} with --{missing[0].lower()})"))
            continue
        fill = {**known, "DATABASE": bench.postgres.fresh("figures") if "DATABASE" in words else None}
        command = [bench.chancery, "bench", *(fill.get(it) or it for it in words.split())]
        note(f"bench {words}")
        began = time.monotonic()
        done = subprocess.run([*command, "--data", bench.folder("figures")], cwd=ROOT,
                              capture_output=True, text=True)
        said = done.stdout.rstrip() if done.returncode == 0 else f"(failed)\n{done.stderr.rstrip()}"
        note(f"  {time.monotonic() - began:.0f} s")
        sections.append((about, words, said))
    return sections


def page(results):
    """Pure: what was measured, as Markdown."""
    machine = results["machine"]
    head = (f"# Figures\n\n{machine['processors']} processors ({machine['model']}), {machine['memory_gb']} GB, "
            f"{machine['disk']}. Measured {results['at']} by `bench/run figures`. Ratios count, and only within "
            "one command: a machine of another minute is another machine. What is held against what: docs/bars.md.")
    parts = [f"## {about}\n\n`chancery bench {words}`\n\n```\n{said}\n```" for about, words, said in results["sections"]]
    return "\n\n".join([head, *parts]) + "\n"
