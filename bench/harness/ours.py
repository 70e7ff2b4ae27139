"""A server of ours, as anybody would start one: the scripted model, an agent, and two tools."""

import json
import os
import subprocess
import urllib.request

from .processes import Failed, until

TOKEN = "chy_the-operator-of-this-bench"
SETTINGS = """listen = "127.0.0.1:0"
org = "org"
workspace = "workspace"
workers = 64
limits.requests_per_minute = 1000000
# The far side of the effects is a file out there.
isolation.mode = "off"
[models.default]
provider = "scripted"
scenario = "scenario.yaml"
"""
TOOLS = """extends: builtin
commands:
  effect:
    description: Has an effect
    command: [/bin/sh, -c, 'printf "%s,%s\\n" "$1" "$2" >> "$3"; sleep 0.003', sh, "{run}", "{step}", "FAR_SIDE"]
    parameters: {type: object, properties: {run: {type: string}, step: {type: string}}, required: [run, step]}
    risk: low
"""
# A page of 200 bytes is read five times; or there are ten effects.
PAGE = "a-page-whose-name-is-as-long-as-the-arguments-of-the-other-peers.txt"


class Server:
    def __init__(self, process, url):
        self.process, self.url = process, url

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers)
        return json.loads(urllib.request.urlopen(request, timeout=30).read())


def prepare(folder, far_side="/dev/null"):
    for name in ("org", "workspace"):
        os.mkdir(os.path.join(folder, name))
    effects = [
        {"when": {"user_matches": "^run-"},
         "call": {"tool": "effect", "args": {"run": "{{input}}", "step": str(step)}}}
        for step in range(10)
    ]
    reads = {"when": {"user_matches": "^work"}, "call": {"tool": "read_file", "args": {"path": PAGE}}, "repeat": 5}
    scenario = {"agents": {"pa": [*effects, reads, {"say": "done"}]}, "fallback": "no lines for this"}
    files = {
        "chancery.toml": SETTINGS,
        "org/tools.yaml": TOOLS.replace("FAR_SIDE", far_side),
        # YAML is a superset of JSON.
        "scenario.yaml": json.dumps(scenario),
        f"workspace/{PAGE}": "y" * 200,
    }
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def serve(bench, folder, database=None):
    """Started in a folder that is prepared, if it is not yet; answers when it takes requests."""
    if not os.path.exists(os.path.join(folder, "chancery.toml")):
        prepare(folder)
    address = os.path.join(folder, "data", "server")
    if os.path.exists(address):
        os.remove(address)
    command = [bench.chancery, "serve", "--data", "data"]
    command += ["--database", database] if database else []
    log = open(os.path.join(folder, "log"), "a")
    environment = {"PATH": os.environ["PATH"], "CHANCERY_BOOTSTRAP_TOKEN": TOKEN}
    process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)

    def ready():
        try:
            with open(address) as file:
                url = file.read().strip()
            return url if url and urllib.request.urlopen(f"{url}/readyz", timeout=5).read() else None
        except OSError:
            return None

    url = until(ready, 30, 0.001)
    if not url:
        process.kill()
        raise Failed("our server does not get ready")
    return Server(process, url)
