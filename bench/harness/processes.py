"""Processes that are started, looked at from outside, and ended by their id."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
# Longer than any measurement takes.
TIME_MAX = 900


class Lines:
    """A process that tells in lines of JSON how far it is."""

    def __init__(self, command):
        # A file and not a pipe: nobody reads along, and a full pipe would hold it up.
        self.complaints = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([str(it) for it in command], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.complaints)
        # Whoever says nothing any more is ended, and then found out.
        self.watchdog = threading.Timer(TIME_MAX, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()

    @property
    def pid(self):
        return self.process.pid

    def said(self, *words):
        """The next line that begins with one of these words; others are passed over."""
        for line in self.process.stdout:
            if line.startswith("{"):
                told = json.loads(line)
                if told.get("said") in words:
                    return told
        self.watchdog.cancel()
        ended = self.process.wait()
        self.complaints.seek(0)
        raise Failed(f"ended with {ended}: {self.complaints.read().strip()[-2000:]}")

    def let_go(self):
        self.watchdog.cancel()
        self.process.stdin.close()
        end(self.process)

    def kill(self):
        self.watchdog.cancel()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Failed(Exception):
    pass


def end(process):
    """Asked to, and after a while made to."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def until(question, seconds, pause=0.005):
    """What the question answers as soon as that is something; `None` when it never is."""
    by = time.monotonic() + seconds
    while time.monotonic() < by:
        if answer := question():
            return answer
        time.sleep(pause)
    return None


def _stat(pid):
    """Parent, its own seconds, and those of its children that are gone."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    own, gone = (sum(map(int, fields[at : at + 2])) / TICKS for at in (11, 13))
    return int(fields[1]), own, gone


def processor_seconds(pids):
    return sum(_stat(pid)[1] for pid in pids)


def family_seconds(parent):
    """Of a PostgreSQL: the server and all of its children, gone or not."""
    total = 0.0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            of, own, gone = _stat(name)
        except OSError:
            continue
        if int(name) == parent:
            total += own + gone
        elif of == parent:
            total += own
    return total


def peak_mb(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    return total / 1024
