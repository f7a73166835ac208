/** A pause holds until a user ends it, even if processes end or files change. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type { ConfigSources } from "../../../src/base/config/config.ts";
import { exportGateway, importGateway } from "../../../src/gateway/operate/transfer/index.ts";
import { afterTest } from "../../cleanups.ts";
import { eventually } from "../../e2e/hearth.ts";
import { databaseOf, postgresUrl } from "../../stores.ts";
import { quiet, startGateway, TOKEN, type GatewayBench } from "./fixtures.ts";

const WAIT_MS = 30_000;
const settings = { hooks: { enabled: true, token: TOKEN }, agents: quiet };

function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "hearth-pause-"));
  afterTest(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Sources as the command line reads them; the database belongs to gateways in this folder. */
async function sourcesOf(folder: string): Promise<ConfigSources> {
  const config = join(folder, "transfer.json5");
  writeFileSync(config, JSON.stringify({ ...settings, ...(await databaseOf(folder)) }));
  return { env: { HEARTH_HOME: folder }, flags: { config }, home: folder };
}

const saysSo = ({ logs }: GatewayBench): boolean => logs.some(({ msg }) => String(msg).includes("paused"));

/** A gateway that was paused, got a webhook and was stopped. */
async function pausedGateway(): Promise<{ folder: string; runId: string }> {
  const folder = tempFolder();
  const bench = await startGateway(settings, { folder });
  expect(saysSo(bench)).toBe(false);
  await bench.gateway.worker.setPaused(true);
  await bench.gateway.worker.setPaused(true); // paused twice, resumed once
  const response = await bench.post("agent", { message: "later", wakeMode: "next-heartbeat" });
  const { runId } = (await response.json()) as { runId: string };
  await bench.stop();
  return { folder, runId };
}

/** Starts a paused gateway on the folder, checks that the run waits, resumes, and checks that it runs. */
async function expectPaused(folder: string, runId: string): Promise<GatewayBench> {
  const bench = await startGateway(settings, { folder });
  const state = async () => (await bench.gateway.deliveries.run(runId))?.state;
  expect(bench.gateway.worker.isPaused).toBe(true);
  expect(saysSo(bench)).toBe(true);
  await Bun.sleep(100); // a turn takes a few milliseconds
  expect([await state(), bench.prompts()]).toEqual(["queued", []]);
  expect(await bench.gateway.status()).toMatchObject({ queued: 1, paused: true });
  await bench.gateway.worker.setPaused(false);
  expect(await eventually(async () => (await state()) === "succeeded", WAIT_MS)).toBe(true);
  return bench;
}

test("a pause survives a restart until it is resumed", async () => {
  const { folder, runId } = await pausedGateway();
  await (await expectPaused(folder, runId)).stop();
  const third = await startGateway(settings, { folder });
  expect(third.gateway.worker.isPaused).toBe(false);
  expect(await third.gateway.status()).not.toHaveProperty("paused");
}, 60_000);

test("a pause is exported and imported", async () => {
  const { folder, runId } = await pausedGateway();
  const file = join(folder, "all.ndjson");
  const counts = await exportGateway(await sourcesOf(folder), file);
  expect(counts).toMatchObject({ runs: 1, pauses: 1 });
  const other = tempFolder();
  expect(await importGateway(await sourcesOf(other), file)).toEqual(counts);
  await expectPaused(other, runId);
}, 60_000);

test.skipIf(postgresUrl !== undefined)("a pause that cannot be stored is an error and does not begin", async () => {
  const bench = await startGateway(settings);
  await bench.gateway.store.write(function* () {
    yield { text: "DROP TABLE pauses", values: [], wants: "changes" };
  });
  await expect(bench.gateway.worker.setPaused(true)).rejects.toThrow("pauses");
  expect(bench.gateway.worker.isPaused).toBe(false);
});
