"""`kill -9` in the middle of 40 runs of ten effects each, counted at the far side: a file to which
every effect appends a line with one write. Twice is an effect that was there already; lost is one
that never came."""

import collections
import json
import os
import random
import signal
import time
import urllib.request

from . import install, ours, peers
from .processes import Lines, end, until

RUNS, STEPS = 40, 10
# An effect that has not come after this has not come.
PATIENCE = 60


class FarSide:
    def __init__(self, folder):
        self.path = os.path.join(folder, "effects")
        open(self.path, "w").close()

    def effects(self):
        with open(self.path) as file:
            return collections.Counter(file.read().split())

    def count(self):
        return sum(self.effects().values())


def measure(bench, name, seed):
    """Kills at a moment that the seed picks, starts again, and counts."""
    folder = bench.folder("killed")
    far_side = FarSide(folder)
    moment = random.Random(seed).randint(RUNS, RUNS * (STEPS - 2))
    victim = VICTIMS[name](bench, folder, far_side)
    try:
        victim.start()
        until(lambda: far_side.count() >= moment, PATIENCE)
        victim.kill()
        at, began = far_side.count(), time.monotonic()
        victim.again()
        until(lambda: far_side.count() > at, PATIENCE)
        first = time.monotonic() - began
        whole = lambda: victim.look() or len(far_side.effects()) == RUNS * STEPS
        until(whole, PATIENCE, 0.05)
        # Whoever repeats something does so by now.
        time.sleep(2)
        effects = far_side.effects()
        return {
            "killed_at": at,
            "twice": sum(effects.values()) - len(effects),
            "lost": RUNS * STEPS - len(effects),
            "unknown": victim.unknown,
            "first_effect_s": first,
        }
    finally:
        victim.end()


class Library:
    """Works in the process that is killed; another one takes up what it left."""

    unknown = 0

    def __init__(self, command, far_side):
        self.command = [*command, "--effects", far_side.path, "--runs", RUNS]
        self.process = None

    def start(self):
        self.process = Lines(self.command)
        self.process.said("made")

    def kill(self):
        self.process.kill()

    def again(self):
        self.process = Lines([*self.command, "--recover"])

    def look(self):
        return False

    def end(self):
        if self.process:
            end(self.process.process)


class Restate:
    """The server or the service is killed, and started again."""

    unknown = 0

    def __init__(self, which, folder, far_side):
        self.which, self.folder, self.far_side = which, folder, far_side
        self.processes = {}

    def start(self):
        for which in ("server", "service"):
            self._start(which)
        peers.restate_ready()
        for n in range(RUNS):
            request = urllib.request.Request(
                f"http://127.0.0.1:{peers.INGRESS}/Agent/effects/send",
                json.dumps(f"run-{n}").encode(), {"content-type": "application/json"})
            urllib.request.urlopen(request, timeout=10).read()

    def _start(self, which):
        if which == "server":
            data = os.path.join(self.folder, "restate")
            os.makedirs(data, exist_ok=True)
            self.processes[which] = peers.restate_server(data)
        else:
            self.processes[which] = peers.restate_service("--effects", self.far_side.path)

    def kill(self):
        self.processes[self.which].send_signal(signal.SIGKILL)
        self.processes[self.which].wait()

    def again(self):
        self._start(self.which)

    def look(self):
        return False

    def end(self):
        for process in self.processes.values():
            end(process)


class Ours:
    """The server is killed. What was in flight it asks a person about, who looks at the far side:
    what is there is told as done, and what is not is let run."""

    def __init__(self, bench, folder, far_side, database):
        self.bench, self.folder, self.far_side, self.database = bench, folder, far_side, database
        self.unknown, self.server = 0, None
        ours.prepare(folder, far_side.path)

    def start(self):
        self.again()
        for n in range(RUNS):
            self.server.ask("/api/runs", {"agent": "pa", "input": f"run-{n}"})

    def kill(self):
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()

    def again(self):
        self.server = ours.serve(self.bench, self.folder, self.database)

    def look(self):
        there = self.far_side.effects()
        for asked in self.server.ask("/api/permissions?status=pending&limit=200")["items"]:
            self.unknown += 1
            of = asked["arguments"]
            done = f"{of['run']},{of['step']}" in there
            payload = {"result": "done, as the far side shows"} if done else {"approved": True}
            self.server.ask(f"/api/runs/{asked['run_id']}/signal",
                            {"correlation_key": asked["correlation_key"], "payload": payload})
        return False

    def end(self):
        if self.server:
            end(self.server.process)


def _python(name, store):
    def victim(bench, folder, far_side):
        url = peers.python_url(bench, name, store)
        return Library(peers.python_command(bench, name, store, url), far_side)
    return victim


def _ours(store):
    def victim(bench, folder, far_side):
        database = bench.postgres.fresh("killed") if store == "postgres" else None
        return Ours(bench, folder, far_side, database)
    return victim


VICTIMS = {
    "chancery-sqlite": _ours("sqlite"),
    "chancery-postgres": _ours("postgres"),
    "restate-server": lambda bench, folder, far_side: Restate("server", folder, far_side),
    "restate-service": lambda bench, folder, far_side: Restate("service", folder, far_side),
    "dbos-rust-postgres": lambda bench, folder, far_side: Library(
        [install.rust("dbos"), "--url", bench.postgres.fresh("killed")], far_side),
    "dbos-python-postgres": _python("dbos", "postgres"),
    "langgraph-postgres": _python("langgraph", "postgres"),
    "langgraph-sqlite": _python("langgraph", "sqlite"),
}
