import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditConfiguration } from "../../../src/gateway/operate/findings.ts";

test("a model that the server at models.url lacks is to be pulled there", async () => {
  await using server = Bun.serve({ port: 0, fetch: () => Response.json({ models: [{ name: "other:latest" }] }) });
  const url = `http://127.0.0.1:${server.port}`;
  const home = mkdtempSync(join(tmpdir(), "hearth-audit-"));
  try {
    const config = join(home, "hearth.json5");
    const hooks = { enabled: true, token: "x".repeat(32) };
    writeFileSync(config, JSON.stringify({ models: { url }, hooks, agents: { defaults: { model: "m" } } }));
    const found = await auditConfiguration({ env: {}, flags: { config }, home });
    const message = `model 'm' is not there: its runs wait until it is, a day at most (pull it on the server at ${url})`;
    expect(found?.filter(({ id }) => id === "model-missing").map((each) => each.message)).toEqual([message]);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
