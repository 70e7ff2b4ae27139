"""What the peers in Python share: their arguments, the lines that `bench/run` reads, an effect."""

import argparse
import asyncio
import json
import os
import sys
import time

MODEL, TOOL = "x" * 80, "y" * 200


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=["sqlite", "postgres"], required=True)
    parser.add_argument("--url", required=True, help="of the database, or the file's path")
    parser.add_argument("--clients", default="1,64")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--approvals", type=int, default=50)
    parser.add_argument("--effects", help="do the work that is killed, with this far side")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--recover", action="store_true")
    return parser.parse_args()


def say(said, **more):
    print(json.dumps({"said": said, **more}), flush=True)


async def measure(args, run):
    """Each client makes the next run when its last one has ended; `run(client)` makes one."""
    for clients in map(int, args.clients.split(",")):
        say("begin", clients=clients)
        latencies, began = [], time.perf_counter()

        async def client(number):
            while time.perf_counter() - began < args.seconds:
                asked = time.perf_counter()
                await run(number)
                latencies.append((time.perf_counter() - asked) * 1e3)

        await asyncio.gather(*[client(number) for number in range(clients)])
        took = time.perf_counter() - began
        latencies.sort()
        at = lambda share: latencies[min(int(len(latencies) * share), len(latencies) - 1)]
        say("end", clients=clients, runs=len(latencies), seconds=took, p50_ms=at(0.5), p99_ms=at(0.99))


def effect(far_side, run, step):
    """One line, in one write, to the file that stands for the far side."""
    file = os.open(far_side, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{run},{step}\n".encode())
    os.close(file)


def until_let_go():
    """Looked at from outside, and then let go."""
    sys.stdin.read()
    os._exit(0)
