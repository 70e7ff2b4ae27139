"""OpenAI's own client against our door: what it parses, and what it raises."""

import json
import os
import sys

import openai
from openai import OpenAI

base_url, token = os.environ["DOOR_URL"], os.environ["DOOR_TOKEN"]
client = OpenAI(base_url=base_url, api_key=token)


def messages(text):
    return [{"role": "user", "content": text}]


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise SystemExit(f"{kind.__name__} was not raised")


# Models, and errors by their class.
ids = [it.id for it in client.models.list()]
assert "agent/pa" in ids, ids
assert client.models.retrieve("agent/pa").id == "agent/pa"
error = raises(openai.AuthenticationError, lambda: OpenAI(base_url=base_url, api_key="no").models.list())
assert error.code == "invalid_api_key", error
error = raises(
    openai.NotFoundError,
    lambda: client.chat.completions.create(model="agent/nobody", messages=messages("x")),
)
assert (error.code, error.param) == ("model_not_found", "model"), error
picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
error = raises(
    openai.BadRequestError,
    lambda: client.chat.completions.create(model="agent/pa", messages=picture),
)
assert error.type == "invalid_request_error", error
error = raises(
    openai.InternalServerError,
    lambda: client.chat.completions.create(model="agent/pa", messages=messages("fail")),
)
assert error.code == "run_failed", error

# Whole and in pieces.
thread = {"thread_id": "python"}
whole = client.chat.completions.create(model="agent/pa", messages=messages("hello"), metadata=thread)
assert whole.choices[0].message.content == "done", whole
assert whole.choices[0].finish_reason == "stop" and whole.usage.total_tokens > 0
stream = client.chat.completions.create(
    model="agent/pa",
    messages=messages("again"),
    metadata={"thread_id": "python-stream"},
    stream=True,
    stream_options={"include_usage": True},
)
chunks = list(stream)
text = "".join(it.choices[0].delta.content or "" for it in chunks if it.choices)
assert text == "done", text
assert chunks[-1].usage.total_tokens > 0 and not chunks[-1].choices
failing = client.chat.completions.create(model="agent/pa", messages=messages("fail"), stream=True)
assert raises(openai.APIError, lambda: list(failing)).code == "run_failed"

# A pause, and its approval by a command.
script = json.dumps([[["note", {"to": "python"}]]])
thread = {"thread_id": "python-pause"}
paused = client.chat.completions.create(model="agent/pa", messages=messages(script), metadata=thread)
assert "Waiting for approval (batch msg_" in paused.choices[0].message.content, paused
beside = paused.model_extra["chancery"]
assert beside["status"] == "waiting_approval", beside
command = "/approve " + beside["approvals"][0]["id"]
went_on = client.chat.completions.create(model="agent/pa", messages=messages(command), metadata=thread)
assert went_on.choices[0].message.content.endswith("done"), went_on
assert went_on.model_extra["chancery"]["status"] == "completed", went_on

# Responses: one thread, typed questions, typed answers, and their stream.
first = client.responses.create(model="agent/pa", input="hello")
assert first.output_text == "done" and first.status == "completed", first
second = client.responses.create(model="agent/pa", input="and more", previous_response_id=first.id)
assert second.output_text == "done and more", "the scripted model repeats what came after the first"
script = json.dumps([[["note", {"to": "responses"}], ["pay", {"to": "nobody"}]]])
asked = client.responses.create(model="agent/pa", input=script)
questions = [it for it in asked.output if it.type == "mcp_approval_request"]
assert [it.name for it in questions] == ["note", "pay"], asked
assert json.loads(questions[0].arguments) == {"to": "responses"}


def answered(question, approve):
    return {"type": "mcp_approval_response", "approval_request_id": question.id, "approve": approve}


decided = client.responses.create(
    model="agent/pa",
    input=[answered(it, True) for it in questions],
    previous_response_id=asked.id,
)
assert "Approved: note" in decided.output_text and "its risk is high" in decided.output_text
left = [it for it in decided.output if it.type == "mcp_approval_request"]
assert [it.name for it in left] == ["pay"], decided
error = raises(
    openai.ConflictError,
    lambda: client.responses.create(model="agent/pa", input=[answered(questions[0], False)]),
)
assert error.code == "already_decided", error
script = json.dumps([[["note", {"to": "stream"}]]])
with client.responses.stream(model="agent/pa", input=script) as stream:
    kinds = [it.type for it in stream]
    final = stream.get_final_response()
assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
assert "response.output_text.delta" in kinds, kinds
question = [it for it in final.output if it.type == "mcp_approval_request"][0]
events = client.responses.create(
    model="agent/pa", input=[answered(question, True)], previous_response_id=final.id, stream=True
)
last = list(events)[-1]
assert last.type == "response.completed" and last.response.output_text.endswith("done"), last
print("all of it holds", openai.__version__)
sys.exit(0)
