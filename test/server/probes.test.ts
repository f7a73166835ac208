import { rm } from "node:fs/promises";
import { afterEach, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { Ingress } from "../../src/gateway/hooks/ingress/ingress.ts";
import type { Lifecycle } from "../../src/server/routes/lifecycle.ts";
import { bareGateway, makeHarness, type Harness } from "./harness.ts";

const noHooks: Ingress = {
  owns: () => false,
  receive: () => Promise.reject(new Error("no hooks here")),
  describe: () => undefined,
  drain() {},
};

let harness: Harness | undefined;
afterEach(() => harness?.close());

/** Statuses of alive, ready and started, and the reported problems. */
async function probe(): Promise<{ statuses: number[]; problems: unknown }> {
  const paths = ["/livez", "/readyz", "/startupz"];
  const responses = await Promise.all(paths.map((path) => harness!.call("GET", path)));
  const { problems } = (await responses[1]!.json()) as { problems: unknown };
  return { statuses: responses.map(({ status }) => status), problems };
}

test("a server is alive at once, started and ready after its start, and not ready while it drains", async () => {
  const lifecycle: Lifecycle = { phase: "starting" };
  harness = await makeHarness({}, { lifecycle });
  expect(await probe()).toEqual({ statuses: [200, 503, 503], problems: ["the server is starting"] });
  lifecycle.phase = "serving";
  expect(await probe()).toEqual({ statuses: [200, 200, 200], problems: [] });
  lifecycle.phase = "draining";
  expect(await probe()).toEqual({ statuses: [200, 503, 200], problems: ["the server is shutting down"] });
});

test("a server without its store is alive and not ready", async () => {
  harness = await makeHarness();
  await rm(harness.root, { recursive: true });
  expect(await probe()).toEqual({ statuses: [200, 503, 200], problems: ["the model store cannot be read (ENOENT)"] });
});

test("a server without its database is alive and not ready, and ready again when the database is back", async () => {
  let isAway = true;
  const check = async (): Promise<void> => {
    if (isAway) throw new AppError("storage", "away");
  };
  harness = await makeHarness({}, { gateway: { ...bareGateway(noHooks), check } });
  const problems = ["the gateway's database cannot be written"];
  expect(await probe()).toEqual({ statuses: [200, 503, 200], problems });
  isAway = false;
  expect(await probe()).toEqual({ statuses: [200, 200, 200], problems: [] });
});

test("probes require no key", async () => {
  harness = await makeHarness({ apiKeys: ["k"] });
  expect((await probe()).statuses).toEqual([200, 200, 200]);
});
