"""An agent outside, with the official SDK. Reads what to do from its arguments, prints JSON."""
import asyncio, json, sys
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

how, mode, todo = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def reached():
    at = json.loads(how)
    if "url" in at:
        http = create_mcp_http_client(headers={"Authorization": "Bearer " + at["token"]})
        return streamable_http_client(at["url"] + "/mcp", http_client=http)
    env = {"CHANCERY_URL": at["env_url"], "CHANCERY_TOKEN": at["token"]}
    return StdioServerParameters(command=at["command"], args=["mcp", "serve"], env=env)

def say(it):
    print(json.dumps(it), flush=True)

async def main():
    async def told(progress, total, message):
        say({"progress": progress, "message": message})
    async with Client(reached(), mode=mode) as client:
        for step in todo:
            if step == "tools":
                listed = await client.list_tools()
                say({"tools": [it.name for it in listed.tools]})
            elif step == "resources":
                listed = await client.list_resources()
                say({"resources": [str(it.uri) for it in listed.resources]})
            elif "read" in step:
                read = await client.read_resource(step["read"])
                say({"read": json.loads(read.contents[0].text)})
            else:
                result = await client.call_tool(
                    step["call"], step["with"], progress_callback=told, meta=step.get("meta"))
                say({"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)})

asyncio.run(main())
