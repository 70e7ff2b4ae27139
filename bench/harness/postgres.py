"""A PostgreSQL of one's own: in the scratch folder, on loopback, with everything durable."""

import glob
import os
import pwd
import shutil
import socket
import subprocess

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "jit": "off",
}


class Postgres:
    def __init__(self, scratch):
        self.programs = programs()
        self.dir = os.path.join(scratch, "postgres")
        os.mkdir(self.dir)
        # It refuses to run as root.
        self.owner = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        if self.owner:
            os.chown(self.dir, self.owner.pw_uid, self.owner.pw_gid)
        self.data = os.path.join(self.dir, "data")
        self._run("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "-E", "UTF8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = {**SETTINGS, "port": str(self.port), "unix_socket_directories": self.dir}
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in options.items())
        self._run("pg_ctl", "-D", self.data, "-l", os.path.join(self.dir, "log"), "-w", "start")

    def fresh(self, name):
        """The address of an empty database of that name."""
        for statement in (f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', f'CREATE DATABASE "{name}"'):
            self._run("psql", "-q", "-h", self.dir, "-p", str(self.port), "-U", "postgres", "-c", statement)
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    @property
    def pid(self):
        with open(os.path.join(self.data, "postmaster.pid")) as file:
            return int(file.readline())

    def version(self):
        return self._run("postgres", "--version").split()[2]

    def settle(self):
        """What one peer left to be written is not written while the next one works."""
        self._run("psql", "-q", "-h", self.dir, "-p", str(self.port), "-U", "postgres", "-c", "CHECKPOINT")

    def stop(self):
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def _run(self, program, *arguments):
        command = [os.path.join(self.programs, program), *arguments]
        if self.owner:
            command = ["setpriv", f"--reuid={self.owner.pw_uid}", f"--regid={self.owner.pw_gid}",
                       "--clear-groups", "--", *command]
        if program == "pg_ctl":
            # The server keeps its output open: to read it would never end.
            nowhere = subprocess.DEVNULL
            subprocess.run(command, check=True, stdout=nowhere, stderr=nowhere, cwd=self.dir)
            return ""
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.dir)
        if done.returncode:
            raise SystemExit(f"`{program}` failed: {done.stderr.strip()}")
        return done.stdout


def programs():
    """Where its programs are: Debian keeps the server's off the path."""
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda it: int(it.split("/")[-2]))
    if places:
        return places[-1]
    if found := shutil.which("initdb"):
        return os.path.dirname(os.path.realpath(found))
    raise SystemExit("PostgreSQL is missing: install the package `postgresql`")
