// OpenAI's own client against our door: what it parses, and what it throws.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.env.DOOR_MODULES}/package.json`);
const { default: OpenAI } = await import(pathToFileURL(require.resolve('openai')));

const baseURL = process.env.DOOR_URL;
const client = new OpenAI({ baseURL, apiKey: process.env.DOOR_TOKEN });
const messages = (content) => [{ role: 'user', content }];

// Models, and errors by their class.
const ids = [];
for await (const model of client.models.list()) ids.push(model.id);
assert.ok(ids.includes('agent/pa'), ids.join());
const stranger = new OpenAI({ baseURL, apiKey: 'no' });
await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
const unknown = client.chat.completions.create({ model: 'agent/nobody', messages: messages('x') });
await assert.rejects(unknown, (it) => it instanceof OpenAI.NotFoundError && it.code === 'model_not_found');
const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }];
const offered = await client.chat.completions.create({ model: 'agent/pa', messages: messages('x'), tools });
assert.equal(offered.choices[0].message.tool_calls, undefined);
const made = client.chat.completions.create({ model: 'agent/pa', messages: messages('x'), tools, tool_choice: 'required' });
await assert.rejects(made, (it) => it instanceof OpenAI.BadRequestError && it.param === 'tool_choice');
const failing = client.chat.completions.create({ model: 'agent/pa', messages: messages('fail') });
await assert.rejects(failing, (it) => it instanceof OpenAI.InternalServerError && it.code === 'run_failed');

// Whole and in pieces.
const whole = await client.chat.completions.create({
  model: 'agent/pa', messages: messages('hello'), metadata: { thread_id: 'node' },
});
assert.equal(whole.choices[0].message.content, 'done');
const stream = await client.chat.completions.create({
  model: 'agent/pa', messages: messages('again'), stream: true,
  metadata: { thread_id: 'node-stream' }, stream_options: { include_usage: true },
});
let text = '';
let usage;
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? '';
  usage = chunk.usage ?? usage;
}
assert.equal(text, 'done');
assert.ok(usage.total_tokens > 0);

// A pause, and its approval by a command.
const metadata = { thread_id: 'node-pause' };
const script = JSON.stringify([[['note', { to: 'node' }]]]);
const paused = await client.chat.completions.create({ model: 'agent/pa', messages: messages(script), metadata });
assert.match(paused.choices[0].message.content, /Waiting for approval \(batch msg_/);
const command = `/approve ${paused.chancery.approvals[0].id}`;
const wentOn = await client.chat.completions.create({ model: 'agent/pa', messages: messages(command), metadata });
assert.match(wentOn.choices[0].message.content, /^Approved: note .*done$/s);

// Responses: typed questions, typed answers, and their stream.
const asked = await client.responses.create({ model: 'agent/pa', input: script });
const question = asked.output.find((it) => it.type === 'mcp_approval_request');
assert.equal(question.name, 'note');
const input = [{ type: 'mcp_approval_response', approval_request_id: question.id, approve: true }];
const events = await client.responses.create({
  model: 'agent/pa', input, previous_response_id: asked.id, stream: true,
});
let last;
for await (const event of events) last = event;
assert.equal(last.type, 'response.completed');
assert.match(last.response.output[0].content[0].text, /done$/);
const helper = client.responses.stream({ model: 'agent/pa', input: 'hello' });
const kinds = [];
helper.on('event', (it) => kinds.push(it.type));
const final = await helper.finalResponse();
assert.equal(final.output_text, 'done');
assert.equal(kinds[0], 'response.created');
console.log('all of it holds');
