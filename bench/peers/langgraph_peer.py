"""LangGraph, in this process as it is in its users'. A step is a node with a checkpoint that is
written before the next node begins (`durability="sync"`)."""

import asyncio
import contextlib
import operator
import time
import uuid
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from lines import MODEL, TOOL, arguments, effect, measure, say, until_let_go

args = arguments()
NEXT = {}


class State(TypedDict):
    messages: Annotated[list, operator.add]
    n: int


async def model(state):
    return {"messages": [{"role": "assistant", "args": MODEL}], "n": state["n"] + 1}


async def tool(state):
    return {"messages": [{"role": "tool", "content": TOOL}], "n": state["n"] + 1}


async def gate(state, config):
    return {"messages": [{"role": "system", "answer": interrupt("pay?")}], "n": state["n"] + 1}


async def following(state, config):
    NEXT[config["configurable"]["thread_id"]] = time.perf_counter()
    return await tool(state)


async def has_effect(state, config):
    effect(args.effects, config["configurable"]["thread_id"], state["n"])
    await asyncio.sleep(0.003)
    return await tool(state)


def ten_steps(saver):
    graph = StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(START, "model")
    graph.add_edge("model", "tool")
    graph.add_conditional_edges("tool", lambda it: END if it["n"] >= 10 else "model", [END, "model"])
    return graph.compile(checkpointer=saver)


def with_approval(saver):
    graph = StateGraph(State)
    for name, node in (("model", model), ("gate", gate), ("next", following)):
        graph.add_node(name, node)
    for edge in ((START, "model"), ("model", "gate"), ("gate", "next"), ("next", END)):
        graph.add_edge(*edge)
    return graph.compile(checkpointer=saver)


def ten_effects(saver):
    graph = StateGraph(State)
    graph.add_node("tool", has_effect)
    graph.add_edge(START, "tool")
    graph.add_conditional_edges("tool", lambda it: END if it["n"] >= 10 else "tool", [END, "tool"])
    return graph.compile(checkpointer=saver)


@contextlib.asynccontextmanager
async def savers():
    """Makes savers. One saver holds a lock around each of its cursors, so that on PostgreSQL every
    client has one of its own, over one pool: the best that LangGraph does here."""
    if args.store == "sqlite":
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(args.url) as saver:
            await saver.setup()
            # It leaves `synchronous` as SQLite has it, which is FULL.
            yield lambda: saver
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import AsyncConnectionPool

        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        async with AsyncConnectionPool(args.url, min_size=4, max_size=32, kwargs=options) as pool:
            await AsyncPostgresSaver(pool).setup()
            yield lambda: AsyncPostgresSaver(pool)


def thread(name):
    return {"configurable": {"thread_id": name}, "recursion_limit": 50}


def fresh():
    return {"messages": [], "n": 0}


async def work(saver):
    graphs = [ten_steps(saver())]

    async def run(client):
        await graphs[client].ainvoke(fresh(), thread(uuid.uuid4().hex), durability="sync")

    await run(0)
    say("ready")
    most = max(map(int, args.clients.split(",")))
    graphs += [ten_steps(saver()) for _ in range(most - 1)]
    await measure(args, run)
    graph, took = with_approval(saver()), []
    for n in range(args.approvals):
        name = f"approval-{n}"
        await graph.ainvoke(fresh(), thread(name), durability="sync")
        sent = time.perf_counter()
        await graph.ainvoke(Command(resume="yes"), thread(name), durability="sync")
        took.append((NEXT[name] - sent) * 1e3)
    say("approvals", ms=took)


async def killed(saver):
    graph = ten_effects(saver())

    async def one(name):
        state = await graph.aget_state(thread(name)) if args.recover else None
        # Who resumes what `state.next` names loses runs that were killed between two writes, so
        # everything that has begun is resumed, and what has not is begun by its caller again.
        begun = state is not None and (state.values or state.next)
        await graph.ainvoke(None if begun else fresh(), thread(name), durability="sync")

    runs = [one(f"run-{n}") for n in range(args.runs)]
    say("made")
    await asyncio.gather(*runs)


async def main():
    async with savers() as saver:
        await (killed(saver) if args.effects else work(saver))
        until_let_go()


asyncio.run(main())
