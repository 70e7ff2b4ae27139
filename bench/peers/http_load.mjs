// The client of the peers that are servers: Restate, and ours over HTTP. The same lines as the
// others print; what is measured is on the other side.
import http from "node:http";

const argument = (name, otherwise) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : process.argv[at + 1];
};
const base = new URL(argument("--url"));
const token = argument("--token");
const seconds = Number(argument("--seconds", "3"));
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 });

function post(path, body) {
  const text = body === undefined ? "" : JSON.stringify(body);
  const headers = text ? { "content-type": "application/json", "content-length": Buffer.byteLength(text) } : {};
  if (token) headers.authorization = `Bearer ${token}`;
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: base.hostname, port: base.port, path, method: "POST", agent, headers },
      (response) => {
        let said = "";
        response.on("data", (piece) => (said += piece));
        response.on("end", () =>
          response.statusCode < 300
            ? resolve(said ? JSON.parse(said) : null)
            : reject(new Error(`${path}: ${response.statusCode} ${said}`)),
        );
      },
    );
    request.on("error", reject);
    request.end(text);
  });
}

// One run of ten steps, until it has ended; and how long from a signal to the next step.
const peers = {
  restate: {
    run: () => post("/Agent/run", 5),
    approval: async (n) => {
      const name = `approval-${process.pid}-${n}`;
      const ended = post(`/Approval/${name}/run`);
      // It cannot be asked whether it waits yet.
      await new Promise((resolve) => setTimeout(resolve, 40));
      const sent = process.hrtime.bigint();
      await post(`/Approval/${name}/signal`, "yes");
      return (Number((await ended).next) - Number(sent)) / 1e6;
    },
  },
  chancery: {
    run: async () => {
      const answer = await post("/v1/chat/completions", {
        model: "pa/operator",
        messages: [{ role: "user", content: "work" }],
      });
      const said = answer.choices[0].message.content;
      // Before it stands that a request without a thread is a run of its own.
      if (!said.endsWith("done")) throw new Error(`the run did not end as it should: ${said}`);
    },
  },
};
const peer = peers[argument("--peer")];
const say = (said, more = {}) => console.log(JSON.stringify({ said, ...more }));
const now = () => Number(process.hrtime.bigint()) / 1e6;

await peer.run();
say("ready");
for (const clients of argument("--clients", "1,64").split(",").map(Number)) {
  say("begin", { clients });
  const [latencies, began] = [[], now()];
  const client = async () => {
    while (now() - began < seconds * 1e3) {
      const asked = now();
      await peer.run();
      latencies.push(now() - asked);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const took = (now() - began) / 1e3;
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.min(Math.floor(latencies.length * share), latencies.length - 1)];
  say("end", { clients, runs: latencies.length, seconds: took, p50_ms: at(0.5), p99_ms: at(0.99) });
}
const ms = [];
if (peer.approval) {
  for (let n = 0; n < Number(argument("--approvals", "50")); n++) ms.push(await peer.approval(n));
}
say("approvals", { ms });
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
