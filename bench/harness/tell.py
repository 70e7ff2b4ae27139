"""What was measured, in a table and a picture. Pure: results in, text out."""

import statistics

from . import draw

RAW = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
# Restate keeps a log of its own: what it is held against is the same disk under SQLite.
LIMIT = {"sqlite": "sqlite", "postgres": "postgres", "its own log": "sqlite"}
# What we hold ourselves to.
BARS = [
    ("64 runs: SQLite against Restate", "64", "chancery-sqlite", "restate", 3.5),
    ("64 runs: PostgreSQL against DBOS for Rust", "64", "chancery-postgres", "dbos-rust-postgres", 1.8),
]


def peers_table(results):
    cycles, rows = results["cycles"], []
    for name, about in results["peers"].items():
        seen = [it for it in cycles if name in it["peers"]]
        if not seen:
            continue
        cells = [about["title"] + (f" {about['version']}" if about["version"] else ""), about["place"],
                 _store(about["store"])]
        for clients in ("1", "64"):
            rates = [it["peers"][name][clients]["steps_per_second"] for it in seen]
            shares = [_share(it, name, about, clients) for it in seen]
            cells += [_spread(rates, ",.0f"), _spread(shares, ".2f")]
        figures = [it["peers"][name] for it in seen]
        cells += [_approval(figures), f"{_median(it['peak_mb'] for it in figures):.0f} MB",
                  f"{_median(it['start_ms'] for it in figures):,.0f} ms",
                  _cpu([it["64"] for it in figures], about)]
        rows.append(cells)
    for store, title in RAW.items():
        cells = [f"raw {title} {results['versions'].get(store, '')}".strip(), "–", title]
        for clients in ("1", "64"):
            cells += [_spread([it["raw"][store][clients] for it in cycles], ",.0f"), "1"]
        rows.append(cells + ["–"] * 4)
    head = ["", "where", "store", "steps/s, 1 run", "of raw", "steps/s, 64 runs", "of raw",
            "approval to next step, p50 / p99", "peak memory", "start", "processor time a step"]
    return "\n\n".join(filter(None, [
        "# Peers, side by side", _about(results), _table(head, rows), _bars(results),
        _killed(results.get("killed", {}), results["peers"]), CAVEATS])) + "\n"


def peers_picture(results):
    panels = []
    for clients, heading in (("64", "64 runs at a time"), ("1", "One run at a time")):
        rows = []
        for store, title in RAW.items():
            rates = [it["raw"][store][clients] for it in results["cycles"]]
            rows.append((f"raw {title}", "limit", min(rates), _median(rates), max(rates)))
        for name, about in results["peers"].items():
            rates = [it["peers"][name][clients]["steps_per_second"]
                     for it in results["cycles"] if name in it["peers"]]
            if rates:
                kind = "ours" if about["ours"] else "other"
                where = f"{_store(about['store'])}{', HTTP' if about['ours'] and about['place'] == 'HTTP' else ''}"
                rows.append((f"{about['title']}, {where}", kind, min(rates), _median(rates), max(rates)))
        rows.sort(key=lambda it: -it[3])
        panels.append((heading, "steps/s", rows))
    return draw.dots("Durable steps a second", f"{_where(results)}. Dot: median; line: range.", panels)


def scale_table(results):
    parts = ["# Scale", _about(results)]
    for axis, heading in AXES.items():
        head, rows = [heading], []
        for store in ("sqlite", "postgres"):
            for point in results["axes"].get(store, {}).get(axis, []):
                told = {name: form.format(point[key]) for key, (name, form) in COLUMNS.items() if key in point}
                head = head if len(head) > len(told) + 1 else [heading, "store", *told]
                rows.append([f"{point['n']:,}", RAW[store], *told.values()])
        if rows:
            parts.append(_table(head, rows))
    return "\n\n".join(parts) + "\n"


def scale_picture(results):
    panels = []
    for axis, key, heading, unit, across in PANELS:
        series = []
        for store, kind in (("sqlite", "ours"), ("postgres", "third")):
            points = results["axes"].get(store, {}).get(axis, [])
            line = [(it["n"], it[key]) for it in points if it.get(key) is not None and it["n"] > 0]
            if line:
                series.append((RAW[store], kind, line))
        if series:
            panels.append((heading, unit, across, series))
    return draw.lines("How it grows", f"{_where(results)}. Powers of ten.", panels)


AXES = {"finished": "finished runs", "waiting": "waiting runs", "workers": "runs at a time",
        "servers": "servers"}
COLUMNS = {
    "steps_per_second": ("steps/s", "{:,.0f}"), "claim_us": ("empty claim, µs", "{:,.0f}"),
    "list_newest_ms": ("newest 50, ms", "{:.2f}"), "list_user_ms": ("of a person, ms", "{:.2f}"),
    "list_waiting_ms": ("that wait, ms", "{:.2f}"), "ready_ms": ("start to ready, ms", "{:,.0f}"),
    "resident_mb": ("memory, MB", "{:.0f}"), "disk_mb": ("disk, MB", "{:,.1f}"),
    "database_processors": ("processors of the database", "{:.2f}"),
}
PANELS = [
    ("finished", "steps_per_second", "Steps, 64 runs", "1/s", "finished runs in the store"),
    ("finished", "claim_us", "An empty claim", "µs", "finished runs in the store"),
    ("finished", "list_newest_ms", "The newest 50 runs", "ms", "finished runs in the store"),
    ("finished", "disk_mb", "Disk", "MB", "finished runs in the store"),
    ("finished", "ready_ms", "Start to ready", "ms", "finished runs in the store"),
    ("waiting", "steps_per_second", "Steps, 64 runs", "1/s", "waiting runs in the store"),
    ("workers", "steps_per_second", "Steps, one server", "1/s", "runs at a time"),
    ("servers", "steps_per_second", "Steps, several servers", "1/s", "servers of 64 runs"),
]
CAVEATS = """How to read it, and what it does not say: docs/bench.md."""


def _share(cycle, name, about, clients):
    """Against the raw limit of the same cycle: the machine of another minute is another machine."""
    return cycle["peers"][name][clients]["steps_per_second"] / cycle["raw"][LIMIT[about["store"]]][clients]


def _bars(results):
    rows = []
    for what, clients, ours, theirs, bar in BARS:
        both = [it["peers"] for it in results["cycles"] if {ours, theirs} <= it["peers"].keys()]
        if both:
            ratios = [it[ours][clients]["steps_per_second"] / it[theirs][clients]["steps_per_second"] for it in both]
            rows.append([what, f"{bar} ×", _spread(ratios, ".2f") + " ×",
                         "held" if _median(ratios) >= bar else "missed"])
    return _table(["", "bar", "measured", ""], rows) if rows else ""


def _killed(killed, peers):
    rows = []
    for name, trials in killed.items():
        if trials:
            column = lambda key: [it[key] for it in trials]
            rows.append([name, str(len(trials)), _range(column("twice"), "d"), _range(column("lost"), "d"),
                         _range(column("unknown"), "d"), f"{_range(column('first_effect_s'), '.1f')} s"])
    if not rows:
        return ""
    words = "`kill -9` in the middle of 40 runs of ten effects, counted at the far side."
    head = ["", "kills", "effects twice", "effects lost", "asked a person about", "first effect after the restart"]
    return f"{words}\n\n{_table(head, rows)}"


def _about(results):
    return f"{_where(results)}. Measured {results['at']}, {results['how']}."


def _where(results):
    machine = results["machine"]
    return f"{machine['processors']} processors ({machine['model']}), {machine['memory_gb']} GB, {machine['disk']}"


def _store(store):
    return RAW.get(store, store)


def _approval(figures):
    waits = [it["approval_ms"] for it in figures if "approval_ms" in it]
    if not waits:
        return "–"
    return f"{_median(it['p50'] for it in waits):.1f} / {_median(it['p99'] for it in waits):.1f} ms"


def _cpu(figures, about):
    engine = f"{_median(it['engine_cpu_ms'] for it in figures):.2f}"
    database = f" + {_median(it['database_cpu_ms'] for it in figures):.2f}"
    return f"{engine}{database if about['store'] == 'postgres' else ''} ms"


def _median(values):
    return statistics.median(values)


def _spread(values, form):
    middle, spread = format(_median(values), form), _range(values, form)
    return middle if middle == spread else f"{middle} ({spread})"


def _range(values, form):
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def _table(head, rows):
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])
