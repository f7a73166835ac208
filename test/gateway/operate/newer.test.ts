/** An old version on tables that a newer one has migrated: it works, and reports it. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execute } from "../../../src/gateway/database/store.ts";
import { afterTest } from "../../cleanups.ts";
import { eventually } from "../../e2e/hearth.ts";
import { postgresUrl } from "../../stores.ts";
import { quiet, startGateway, TOKEN, type GatewayBench } from "./fixtures.ts";

const settings = { hooks: { enabled: true, token: TOKEN }, agents: quiet };
const warnings = ({ logs }: GatewayBench) => logs.filter(({ msg }) => String(msg).includes("newer version"));

test.skipIf(postgresUrl !== undefined)(
  "a start on newer tables logs one warning, reports a finding, and works",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-newer-"));
    afterTest(() => rmSync(folder, { recursive: true, force: true }));
    const newer = await startGateway(settings, { folder });
    expect(warnings(newer)).toEqual([]);
    expect(await newer.gateway.admin.findings()).toEqual([]);
    await newer.gateway.store.write(function* () {
      for (const name of ["outbox: wings", "agent: third eye"])
        yield* execute("INSERT INTO migrations (name) VALUES ($1)", name);
    });
    const message = expect.stringContaining("does not know 'agent: third eye', 'outbox: wings';");
    const finding = { id: "newer-tables", severity: "warn" as const, key: "", where: "", message };
    expect(await newer.gateway.admin.findings()).toEqual([finding]); // one that ran before the others were upgraded
    await newer.stop();
    const older = await startGateway(settings, { folder });
    expect(warnings(older)).toEqual([expect.objectContaining({ level: "warn", msg: message })]);
    const response = await older.post("agent", { message: "hello", wakeMode: "next-heartbeat" });
    const { runId } = (await response.json()) as { runId: string };
    expect(
      await eventually(async () => (await older.gateway.deliveries.run(runId))?.state === "succeeded", 30_000),
    ).toBe(true);
  },
  60_000,
);
