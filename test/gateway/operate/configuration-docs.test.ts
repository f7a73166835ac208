/** docs/configuration.md against the schemas: it has every key, with its default, and no other. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { agentsSchema, sessionSchema } from "../../../src/gateway/agent/config.ts";
import { databaseSchema } from "../../../src/gateway/operate/database-config.ts";
import { gatewaySchema, hooksSchema, mappingSchema } from "../../../src/gateway/hooks/config.ts";

interface Shape {
  readonly type?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
}

const DOCUMENT = join(import.meta.dir, "../../../docs/configuration.md");
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
