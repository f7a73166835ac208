/**
 * The part of Helm that the chart uses: text/template, the language of models' prompts, with `toJson` and `default`,
 * over values that are merged into the chart's own and match its schema.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { FUNCTIONS } from "../../src/engine/text/template/go/funcs.ts";
import { parseGoTemplate } from "../../src/engine/text/template/go/go-template.ts";
import { goFrom, isTrue } from "../../src/engine/text/template/go/value.ts";

export const CHART = join(import.meta.dir, "../../packaging/helm/hearth");

type Values = Readonly<Record<string, unknown>>;

const read = (file: string): string => readFileSync(join(CHART, file), "utf8");
export const chart = Bun.YAML.parse(read("Chart.yaml")) as Record<string, any>;
export const ownValues = Bun.YAML.parse(read("values.yaml")) as Record<string, any>;
export const templates: ReadonlyMap<string, string> = new Map(
  readdirSync(join(CHART, "templates")).map((file) => [file, read(join("templates", file))]),
);
const fits = new Ajv({ strict: true, allowUnionTypes: true }).compile(JSON.parse(read("values.schema.json")));

const isMap = (value: unknown): value is Values => typeof value === "object" && value !== null && !Array.isArray(value);

/** Merges maps and replaces everything else; null removes. */
function laidOver(own: unknown, given: unknown): unknown {
  if (!isMap(own) || !isMap(given)) return given;
  const keys = [...new Set([...Object.keys(own), ...Object.keys(given)])];
  return Object.fromEntries(
    keys.flatMap((key) => {
      if (!Object.hasOwn(given, key)) return [[key, own[key]]];
      return given[key] === null ? [] : [[key, Object.hasOwn(own, key) ? laidOver(own[key], given[key]) : given[key]]];
    }),
  );
}

/** Objects by the file that made them. Throws if the values do not match the schema. */
export function renderChart(given: Values = {}, release = "hearth"): { file: string; object: any }[] {
  const values = laidOver(ownValues, given);
  if (!fits(values)) throw new Error(`values: ${new Ajv().errorsText(fits.errors)}`);
  const dot = goFrom({
    Values: values,
    Chart: { Name: chart["name"], Version: chart["version"], AppVersion: chart["appVersion"] },
    Release: { Name: release, Namespace: "default", Service: "Helm" },
  });
  return [...templates.keys()]
    .filter((file) => file.endsWith(".yaml"))
    .flatMap((file) =>
      [Bun.YAML.parse(withHelm(() => render(file, dot)))]
        .flat()
        .flatMap((object) => (object ? [{ file, object }] : [])),
    );
}

function render(file: string, dot: ReturnType<typeof goFrom>): string {
  const source = templates.get("_helpers.tpl")! + templates.get(file)!;
  return parseGoTemplate(source).render(dot, { now: new Date(0) });
}

/** Adds Helm's functions to text/template's during a rendering. */
function withHelm<T>(work: () => T): T {
  const functions = FUNCTIONS as Record<string, (typeof FUNCTIONS)[string]>;
  const added: typeof FUNCTIONS = {
    toJson: FUNCTIONS["json"]!,
    default: { min: 2, max: 2, call: ([initial, value]) => (isTrue(value) ? value : initial) },
  };
  Object.assign(functions, added);
  try {
    return work();
  } finally {
    for (const name of Object.keys(added)) delete functions[name];
  }
}
