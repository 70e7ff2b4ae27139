"""What the peers need, installed once in the user's cache. Nothing is written to the checkout."""

import json
import os
import shutil
import subprocess
import sys

VERSIONS = {
    "langgraph": ["langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2",
                  "langgraph-checkpoint-postgres==3.2.0", "psycopg[binary,pool]==3.3.8"],
    "dbos": ["dbos==3.3.0"],
}
RESTATE = "1.7.12"
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(HERE, "peers")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "chancery", "bench")


def python(name):
    """An interpreter with the packages of that name."""
    return os.path.join(cache(), name, "bin", "python")


def rust(name):
    return os.path.join(cache(), "rust", "target", "release", name)


def restate_server():
    machine = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    folder = f"@restatedev/restate-server-linux-{machine}"
    return os.path.join(cache(), "restate", "node_modules", folder, "bin", "restate-server")


def peers():
    """Whatever they need that is missing."""
    for program in ("cargo", "node", "npm"):
        if not shutil.which(program):
            raise SystemExit(f"`{program}` is missing")
    os.makedirs(cache(), exist_ok=True)
    for name, packages in VERSIONS.items():
        if _is_new(name, packages):
            folder = os.path.join(cache(), name)
            _run([sys.executable, "-m", "venv", "--clear", folder])
            _run([python(name), "-m", "pip", "install", "--quiet", *packages])
            _done(name, packages)
    if _is_new("restate", RESTATE):
        folder = os.path.join(cache(), "restate")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "package.json"), "w") as file:
            json.dump({"private": True, "dependencies": {"@restatedev/restate-server": RESTATE}}, file)
        _run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder)
        _done("restate", RESTATE)
    # Copied, so that neither a lock file nor a target folder comes about in the checkout.
    shutil.copytree(os.path.join(PEERS, "rust"), os.path.join(cache(), "rust"), dirs_exist_ok=True)
    _run(["cargo", "build", "--release", "--quiet"], cwd=os.path.join(cache(), "rust"), env={
        **os.environ, "CARGO_TARGET_DIR": os.path.join(cache(), "rust", "target")})


def own(chancery):
    """The path of our own binary, which is built unless it is named."""
    if chancery:
        return os.path.abspath(chancery)
    _run(["cargo", "build", "--release", "--quiet", "--bin", "chancery"], cwd=os.path.dirname(HERE))
    metadata = subprocess.run(["cargo", "metadata", "--format-version=1", "--no-deps"],
                              cwd=os.path.dirname(HERE), check=True, capture_output=True, text=True)
    return os.path.join(json.loads(metadata.stdout)["target_directory"], "release", "chancery")


def _is_new(name, wanted):
    try:
        with open(os.path.join(cache(), f"{name}.installed")) as file:
            return json.load(file) != wanted
    except (OSError, ValueError):
        return True


def _done(name, wanted):
    with open(os.path.join(cache(), f"{name}.installed"), "w") as file:
        json.dump(wanted, file)


def _run(command, **more):
    print("·", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True, **more)
