"""The peers: what each one is, how it is started, and what is read of it from outside."""

import json
import os
import subprocess
import time
import urllib.request
from dataclasses import dataclass

from . import install, ours
from .processes import (Failed, Lines, end, family_seconds, peak_mb, processor_seconds, until)


@dataclass(frozen=True)
class Peer:
    title: str
    version: str
    # Whose raw limit it is held against. Restate keeps a log of its own on the same disk.
    store: str
    # Where the work is done: in the process that asks for it, or behind HTTP.
    place: str
    start: object
    ours: bool = False


class Bench:
    """What a measurement needs: a scratch folder on a real disk, a PostgreSQL, our binary."""

    def __init__(self, scratch, postgres, chancery, args):
        self.scratch, self.postgres, self.chancery, self.args = scratch, postgres, chancery, args

    def folder(self, name):
        path = os.path.join(self.scratch, f"{name}-{time.monotonic_ns()}")
        os.mkdir(path)
        return path

    def told(self):
        """What every peer is told."""
        args = self.args
        return ["--seconds", args.seconds, "--clients", "1,64", "--approvals", args.approvals]


def measure(bench, name):
    """One peer's figures, each read from outside in the same way."""
    peer, servers, load = PEERS[name], [], None
    try:
        bench.postgres.settle()
        began = time.monotonic()
        servers, load = peer.start(bench)
        load.said("ready")
        # From the start on an empty store to the end of the first run.
        figures = {"start_ms": (time.monotonic() - began) * 1e3}
        engine = [it.pid for it in servers] or [load.pid]
        for _ in range(2):
            load.said("begin")
            used = _used(bench, peer, engine)
            told = load.said("end")
            steps = told["runs"] * 10
            engine_s, database_s = (now - then for now, then in zip(_used(bench, peer, engine), used))
            figures[str(told["clients"])] = {
                "steps_per_second": steps / told["seconds"],
                "run_p50_ms": told["p50_ms"],
                "run_p99_ms": told["p99_ms"],
                "engine_cpu_ms": engine_s * 1e3 / steps,
                "database_cpu_ms": database_s * 1e3 / steps,
            }
        waits = sorted(load.said("approvals")["ms"])
        if waits:
            at = lambda share: waits[min(int(len(waits) * share), len(waits) - 1)]
            figures["approval_ms"] = {"n": len(waits), "p50": at(0.5), "p99": at(0.99)}
        figures["peak_mb"] = peak_mb(engine)
        load.let_go()
        return figures
    finally:
        for it in [load.process] if load else []:
            end(it)
        for it in servers:
            end(it)


def raw(bench):
    """What one step costs each store with nothing around it."""
    limits = {}
    for store in ("sqlite", "postgres"):
        where = ["--data", bench.folder("raw")]
        if store == "postgres":
            where += ["--database", bench.postgres.fresh("raw")]
        probe = Lines([bench.chancery, "bench", "peer", "--raw", "--seconds", bench.args.raw_seconds, *where])
        told = [probe.said("raw") for _ in range(2)]
        probe.let_go()
        limits[store] = {str(it["clients"]): it["per_second"] for it in told}
    return limits


def _used(bench, peer, engine):
    database = family_seconds(bench.postgres.pid) if peer.store == "postgres" else 0.0
    return processor_seconds(engine), database


def _chancery(store):
    def start(bench):
        where = ["--data", bench.folder("chancery")]
        if store == "postgres":
            where += ["--database", bench.postgres.fresh("chancery")]
        return [], Lines([bench.chancery, "bench", "peer", *bench.told(), *where])
    return start


def _chancery_http(store):
    def start(bench):
        database = bench.postgres.fresh("chancery") if store == "postgres" else None
        server = ours.serve(bench, bench.folder("served"), database)
        return [server.process], _over_http(bench, "chancery", server.url, "--token", ours.TOKEN)
    return start


def _python(name, store):
    def start(bench):
        return [], Lines(python_command(bench, name, store, python_url(bench, name, store)) + bench.told())
    return start


def python_url(bench, name, store):
    return bench.postgres.fresh(name) if store == "postgres" else os.path.join(bench.folder(name), "db")


def python_command(bench, name, store, url):
    program = os.path.join(install.PEERS, f"{name}_peer.py")
    return [install.python(name), program, "--store", store, "--url", url]


def _dbos_rust(bench):
    url = bench.postgres.fresh("dbos_rust")
    return [], Lines([install.rust("dbos"), "--url", url, *bench.told()])


def _restate(bench):
    server, service = restate_server(bench.folder("restate")), restate_service()
    try:
        restate_ready()
    except Failed:
        end(server), end(service)
        raise
    return [server, service], _over_http(bench, "restate", f"http://127.0.0.1:{INGRESS}")


def _over_http(bench, peer, url, *more):
    program = os.path.join(install.PEERS, "http_load.mjs")
    return Lines(["node", program, "--peer", peer, "--url", url, *bench.told(), *more])


INGRESS, ADMIN, NODE, SERVICE = 19080, 19070, 19122, 19480


def restate_server(folder):
    """As it comes: 24 partitions, one replica, fsync on. Only the addresses are ours."""
    environment = {
        "RESTATE_BASE_DIR": folder, "RESTATE_NODE_NAME": "n1", "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_IP": "127.0.0.1", "RESTATE_ADVERTISED_HOST": "127.0.0.1",
        "RESTATE_BIND_PORT": str(NODE), "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{INGRESS}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{ADMIN}", "RESTATE_LOG_FILTER": "warn",
        "RESTATE_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1",
    }
    return subprocess.Popen([install.restate_server(), "--no-logo"], env={**os.environ, **environment},
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def restate_service(*more):
    command = [install.rust("restate_service"), "--port", str(SERVICE), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def restate_ready():
    def healthy():
        try:
            for url in (f"http://127.0.0.1:{ADMIN}/health", f"http://127.0.0.1:{INGRESS}/restate/health"):
                urllib.request.urlopen(url, timeout=1).read()
            request = urllib.request.Request(
                f"http://127.0.0.1:{ADMIN}/deployments",
                json.dumps({"uri": f"http://127.0.0.1:{SERVICE}"}).encode(),
                {"content-type": "application/json"})
            return urllib.request.urlopen(request, timeout=10).read()
        except OSError:
            return None
    if not until(healthy, 60, 0.02):
        raise Failed("Restate does not get ready")


def _of(packages, name):
    return next(it.split("==")[1] for it in install.VERSIONS[packages] if it.startswith(name + "=="))


LANGGRAPH, DBOS = _of("langgraph", "langgraph"), _of("dbos", "dbos")
PEERS = {
    "chancery-sqlite": Peer("Chancery", "", "sqlite", "in process", _chancery("sqlite"), ours=True),
    "chancery-http-sqlite": Peer("Chancery", "", "sqlite", "HTTP", _chancery_http("sqlite"), ours=True),
    "chancery-postgres": Peer("Chancery", "", "postgres", "in process", _chancery("postgres"), ours=True),
    "chancery-http-postgres": Peer("Chancery", "", "postgres", "HTTP", _chancery_http("postgres"), ours=True),
    "restate": Peer("Restate, Rust service", f"{install.RESTATE}, SDK 0.13.0", "its own log", "HTTP", _restate),
    "dbos-rust-postgres": Peer("DBOS for Rust", "0.5.0", "postgres", "in process", _dbos_rust),
    "dbos-python-postgres": Peer("DBOS for Python", DBOS, "postgres", "in process", _python("dbos", "postgres")),
    "dbos-python-sqlite": Peer("DBOS for Python", DBOS, "sqlite", "in process", _python("dbos", "sqlite")),
    "langgraph-postgres": Peer("LangGraph", LANGGRAPH, "postgres", "in process", _python("langgraph", "postgres")),
    "langgraph-sqlite": Peer("LangGraph", LANGGRAPH, "sqlite", "in process", _python("langgraph", "sqlite")),
}
