/**
 * docs/configuration.md against the schemas: it has every key, with its default, and no other. The examples of all
 * documents are configurations that the server takes.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { readConfig } from "../../../src/base/config/index.ts";
import { readDocument } from "../../../src/base/config/document.ts";
import { agentsSchema, sessionSchema } from "../../../src/gateway/agent/config.ts";
import { databaseSchema } from "../../../src/gateway/operate/database-config.ts";
import { gatewaySchema, hooksSchema, mappingSchema } from "../../../src/gateway/hooks/config.ts";
import { readMcpConfig } from "../../../src/runtime/mcp/config.ts";
import { TransformPool } from "../../../src/gateway/hooks/mapping/transforms/pool.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";

interface Shape {
  readonly type?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
}

const ROOT = join(import.meta.dir, "../../..");
const DOCUMENT = join(ROOT, "docs/configuration.md");
/** A token, and a secret of every scheme. */
const secretOf = (variable: string): string => `whsec_${Buffer.from(variable.padEnd(30)).toString("base64")}`;
/** Documented in rows elsewhere, or in a single row. */
const WHOLE = ["hooks.presetSettings", "hooks.mail", "agents.defaults.models", "match.when", "rateLimit"];
const ELSEWHERE = ["hooks.mappings"];

/** Every key below a schema, with its default in the document's format; "": no default. */
function keysOf(shape: Shape, path: string): [string, string][] {
  if (ELSEWHERE.includes(path)) return [];
  const within = shape.properties ?? (shape.type === "array" ? shape.items?.properties : undefined);
  if (within === undefined || WHOLE.includes(path)) {
    const standard = typeof shape.default === "object" ? undefined : shape.default;
    return [[path, standard === undefined ? "" : String(standard)]];
  }
  const prefix = path === "" ? "" : shape.properties ? `${path}.` : `${path}[].`;
  return Object.entries(within).flatMap(([key, inner]) => keysOf(inner, `${prefix}${key}`));
}

const schemas: [string, { readonly schema: unknown }][] = [
  ["hooks", hooksSchema],
  ["", mappingSchema],
  ["agents", agentsSchema],
  ["session", sessionSchema],
  ["gateway", gatewaySchema],
  ["database", databaseSchema],
];

test("docs/configuration.md names every key of the sections, with its default", async () => {
  const text = await Bun.file(DOCUMENT).text();
  const rows = [...text.matchAll(/^\| `([^`]+)` *\| *(?:`([^`]*)`)? *\|/gm)].map(([, key, standard = ""]) => [
    key,
    standard,
  ]);
  const keys = schemas.flatMap(([name, { schema }]) => keysOf(schema as Shape, name));
  expect(rows.toSorted()).toEqual(keys.toSorted());
});

/** An example is a file, a section, or the settings of one preset. */
function wholeFile(example: string): string {
  if (example.startsWith("{")) return example;
  return example.startsWith("github:") ? `{ hooks: { presetSettings: { ${example} } } }` : `{ ${example} }`;
}

describe.each(["configuration", "webhooks", "channels", "mcp", "operations", "settings"])("docs/%s.md", (name) => {
  const text = readFileSync(join(ROOT, "docs", `${name}.md`), "utf8");
  const blocks = [...text.matchAll(/^ *```(?:json5|js)\n([\s\S]*?)^ *```$/gm)].map(([, code = ""]) => code.trim());

  test.each(blocks.map((code) => [code.replaceAll(/\s+/g, " ").slice(0, 40), code]))("takes %s…", (_, code) => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-example-"));
    try {
      const path = join(folder, "hearth.json5");
      writeFileSync(path, wholeFile(code));
      const names = [...code.matchAll(/\$\{(\w+)\}/g)].map(([, variable = ""]) => variable);
      const secrets = Object.fromEntries(names.map((variable) => [variable, secretOf(variable)]));
      const env = { ...secrets, HEARTH_DATABASE_URL: "postgres://a:b@127.0.0.1/x" };
      const sources = { env, flags: { config: path }, home: folder };
      const document = readDocument(path, env);
      readConfig(sources, document);
      readMcpConfig(sources);
      makeSnapshot(document, { folder, apiKeys: [] });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("the transform of docs/configuration.md makes a message", async () => {
  const [, code = ""] = /^```ts\n([\s\S]*?)^```$/m.exec(await Bun.file(DOCUMENT).text()) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "hearth-example-"));
  await using pool = new TransformPool();
  try {
    writeFileSync(join(folder, "build.ts"), code);
    const settings = { lane: "build", folder, module: "build.ts", timeoutMs: 20_000 };
    const request = { path: "ci", query: {}, headers: { "x-project": "a" } };
    const run = (status: string): Promise<unknown> =>
      pool.run(settings, { ...request, payload: { status, number: 7, log: "x" } });
    expect(await run("failed")).toEqual({ message: "Build 7 of a failed:\nx", channel: "slack" });
    expect(await run("passed")).toBeNull();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
