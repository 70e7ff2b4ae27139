"""DBOS for Python, in this process as it is in its users'. A step is a checkpointed `@DBOS.step`."""

import asyncio
import time

from dbos import DBOS, SetWorkflowID

from lines import MODEL, TOOL, arguments, effect, measure, say, until_let_go

args = arguments()
NEXT = {}


@DBOS.step()
async def model():
    return MODEL


@DBOS.step()
async def tool():
    return TOOL


@DBOS.workflow()
async def agent(calls: int):
    for _ in range(calls):
        await model()
        await tool()


@DBOS.step()
async def following(name: str):
    NEXT[name] = time.perf_counter()
    return TOOL


@DBOS.workflow()
async def approval(name: str):
    await model()
    await DBOS.recv_async("approve", timeout_seconds=60)
    await following(name)


@DBOS.step()
async def has_effect(run: str, step: int):
    effect(args.effects, run, step)
    await asyncio.sleep(0.003)
    return TOOL


@DBOS.workflow()
async def effects(run: str):
    for step in range(10):
        await has_effect(run, step)


def launch():
    url = args.url if args.store == "postgres" else f"sqlite:///{args.url}"
    config = {
        "name": "peer",
        "system_database_url": url,
        "log_level": "ERROR",
        "run_admin_server": False,
        "application_version": "1",
        "executor_id": "local",
    }
    if args.store == "postgres":
        config["sys_db_pool_size"] = 32
    DBOS(config=config)
    DBOS.launch()


async def work():
    await agent(5)
    say("ready")
    await measure(args, lambda _: agent(5))
    took = []
    # On SQLite it looks once a second.
    for n in range(args.approvals if args.store == "postgres" else min(args.approvals, 10)):
        name = f"approval-{n}"
        with SetWorkflowID(name):
            handle = await DBOS.start_workflow_async(approval, name)
        await asyncio.sleep(0.05)
        sent = time.perf_counter()
        await DBOS.send_async(name, "yes", "approve")
        await handle.get_result()
        took.append((NEXT[name] - sent) * 1e3)
    say("approvals", ms=took)


async def killed():
    names = [f"run-{n}" for n in range(args.runs)]
    if not args.recover:
        handles = []
        for name in names:
            with SetWorkflowID(name):
                handles.append(await DBOS.start_workflow_async(effects, name))
        say("made")
        await asyncio.gather(*[handle.get_result() for handle in handles])
    # What was left is taken up by the launch.
    say("made")


async def main():
    launch()
    await (killed() if args.effects else work())
    # Workflows go on in this loop until it is let go.
    await asyncio.to_thread(until_let_go)


asyncio.run(main())
