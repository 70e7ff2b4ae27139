// Starts a run, answers what it asks, prints what came of it.
import createClient from "openapi-fetch";
import type { paths } from "./chancery.js";

const headers = { Authorization: `Bearer ${process.env.CHANCERY_TOKEN}` };
const client = createClient<paths>({ baseUrl: process.env.CHANCERY_URL!, headers });

let { data: run } = await client.POST("/api/runs", { body: { agent: "pa", input: process.env.GOAL! } });
while (run && ["pending", "running", "waiting"].includes(run.status)) {
  const { data: asked } = await client.GET("/api/permissions", { params: { query: { status: "pending", run: run.id } } });
  for (const { id } of asked?.items ?? [])
    await client.POST("/api/permissions/{id}/decision", { params: { path: { id } }, body: { decision: "grant" } });
  await new Promise((later) => setTimeout(later, 50));
  ({ data: run } = await client.GET("/api/runs/{id}", { params: { path: { id: run.id } } }));
}
console.log(run?.status, run?.output);
