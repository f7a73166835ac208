/**
 * The share of the public library's pulls that loads here as text, on a GPU, and with vision if the model has it:
 * models/pulls.ts against the registries, and models/checked.json for the kernels.
 *
 *   bun bench/library-share.ts [--record]
 */
import { join } from "node:path";
import { archs } from "../src/engine/architectures/index.ts";
import { namedTemplate } from "../src/engine/text/template/named-templates.ts";
import { PULLED, type Pulled } from "./models/pulls.ts";
import { writeRecord, type Figure } from "./report/record.ts";
import { projectorKinds, type CheckedModels } from "./models/table.ts";

const kinds = projectorKinds();
const checked = (await Bun.file(join(import.meta.dir, "models/checked.json")).json()) as CheckedModels;
/** Steps of the architectures without a GPU kernel. An unchecked architecture counts as lacking one. */
const lacksOnGpu = ({ archs: needed }: Pulled): string[] =>
  needed.flatMap((arch) => (checked[arch] ? (checked[arch].missing["webgpu"] ?? []) : [`a check of ${arch}`]));

const lacksForText = ({ archs: needed, renderers = [] }: Pulled): string[] => [
  ...needed.filter((arch) => !Object.hasOwn(archs, arch)).map((arch) => `architecture ${arch}`),
  ...renderers.filter((name) => namedTemplate(name) === undefined).map((name) => `renderer ${name}`),
];
const lacksForImages = ({ sees = [] }: Pulled): string[] =>
  sees.filter((kind) => !kinds.has(kind)).map((kind) => `projector ${kind}`);

const sum = (rows: readonly Pulled[]): number => rows.reduce((total, { share }) => total + share, 0);
const percent = (share: number): string => `${share.toFixed(1)} %`;

for (const row of PULLED) {
  const lacks = [...lacksForText(row), ...lacksForImages(row)];
  if (lacks.length > 0) console.log(`${percent(row.share).padStart(7)}  ${row.models}: ${lacks.join(", ")}`);
}
const listed = sum(PULLED);
const text = PULLED.filter((row) => lacksForText(row).length === 0);
const whole = text.filter((row) => lacksForImages(row).length === 0);
const onGpu = text.filter((row) => lacksOnGpu(row).length === 0);
for (const row of text.filter((each) => !onGpu.includes(each)))
  console.log(`${percent(row.share).padStart(7)}  ${row.models}: a GPU lacks ${lacksOnGpu(row).join(", ")}`);
const sees = onGpu.filter((row) => whole.includes(row)); // every projector's text model reads rows there
const what = `of the models with ${percent(listed)} of all pulls`;
const figureOf = (measure: string, rows: readonly Pulled[], atLeast: number): Figure => {
  return { what, measure, unit: "%", ours: [(100 * sum(rows)) / listed], goal: { of: "value", atLeast } };
};
const figures = [
  figureOf("loads as text", text, 98),
  figureOf("loads as text on webgpu", onGpu, 98),
  figureOf("and sees where the model does", whole, 95),
  figureOf("the same on webgpu", sees, 95),
];
for (const { measure, ours, goal } of figures)
  console.log(`${measure.padEnd(30)} ${percent(ours[0]!)} (wanted: ${goal!.atLeast})`);
if (process.argv.includes("--record")) writeRecord("pulls", { title: "The public library's pulls", figures });
