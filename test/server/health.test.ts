import { rm } from "node:fs/promises";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeEach(async () => void (harness = await makeHarness()));
afterEach(() => harness.close());

test("a healthy server reports its version, free disk space and number of models", async () => {
  const response = await harness.call("GET", "/health");
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({
    status: "ok",
    version: "1.2.3",
    problems: [],
    disk: { free: expect.any(Number) },
    models: { loaded: 0, running: 0, waiting: 0 },
  });
});

test("a missing store is a 503 that names the store, without its path", async () => {
  await rm(harness.root, { recursive: true });
  const response = await harness.call("GET", "/health");
  expect(response.status).toBe(503);
  const body = await response.text();
  expect(JSON.parse(body)).toMatchObject({
    status: "failing",
    problems: ["the model store cannot be read (ENOENT)"],
    disk: { free: null },
  });
  expect(body).not.toContain(harness.root);
});
