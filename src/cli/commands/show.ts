/** `hearth show`: details of a model, as tables, or one part as text. */
import type { Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTable } from "../terminal/format.ts";
import { withModel } from "../client/missing-model.ts";

const PARTS = ["license", "modelfile", "parameters", "system", "template"] as const;
type Part = (typeof PARTS)[number];

type ShowOptions = { readonly [key in Part]?: boolean } & { readonly verbose?: boolean; readonly json?: boolean };

export async function show({ client, terminal }: CliContext, model: string, options: ShowOptions): Promise<void> {
  const asked = PARTS.filter((part) => options[part]);
  if (asked.length > 1) {
    const names = PARTS.map((part) => `'--${part}'`);
    throw new Error(`only one of ${names.slice(0, -1).join(", ")}, or ${names.at(-1)} can be specified`);
  }
  const reply = await withModel(client, model, () =>
    client.post("/api/show", { model, verbose: options.verbose ?? false }),
  );
  if (options.json) return terminal.write(`${JSON.stringify(reply, null, 2)}\n`);
  const [part] = asked;
  terminal.write(part ? `${String(reply[part] ?? "").trimEnd()}\n` : describe(reply, options.verbose ?? false));
}

/** Tables: the model, its capabilities, its parameters, its texts. */
export function describe(reply: Json, verbose: boolean): string {
  const sections: [string, readonly (readonly string[])[]][] = [
    ["Model", modelRows(reply)],
    ["Projector", projectorRows(reply)],
    ["Template", reply["template_error"] ? [["does not parse", String(reply["template_error"])]] : []],
    ["Capabilities", (reply["capabilities"] ?? []).map((name: string) => [name])],
    ["Parameters", parameterRows(reply["parameters"] ?? "")],
    ...(verbose ? verboseSections(reply) : []),
    ["System", firstLines(reply["system"])],
    ["License", firstLines(reply["license"])],
  ];
  return sections
    .filter(([, rows]) => rows.length > 0)
    .map(([title, rows]) => `  ${title}\n${indent(formatTable([], rows))}\n`)
    .join("");
}

const indent = (text: string): string => text.replace(/^(?=.)/gm, "    ");

/** A value of `model_info` by the suffix of its key, for any architecture. */
function infoOf(info: Json, ending: string): string[][] {
  const arch = info["general.architecture"];
  const value = info[`${arch}.${ending}`];
  return value === undefined ? [] : [[ending.replaceAll("_", " "), String(value)]];
}

function modelRows({ details = {}, model_info: info = {}, requires }: Json): string[][] {
  const architecture = info["general.architecture"] ?? details.family;
  return [
    ...(architecture ? [["architecture", String(architecture)]] : []),
    ...(details.parameter_size ? [["parameters", details.parameter_size]] : []),
    ...infoOf(info, "context_length"),
    ...infoOf(info, "embedding_length"),
    ...(details.quantization_level ? [["quantization", details.quantization_level]] : []),
    ...(requires ? [["requires", requires]] : []),
  ];
}

function projectorRows({ projector_info: info }: Json): string[][] {
  if (!info) return [];
  return [["architecture", String(info["general.architecture"])], ...infoOf(info, "vision.embedding_length")];
}

/** `name value` lines as columns. */
function parameterRows(text: string): string[][] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [name = ""] = line.split(/\s/, 1);
      return [name, line.slice(name.length).trim()];
    });
}

function verboseSections({ model_info: info = {}, tensors = [] }: Json): [string, string[][]][] {
  const metadata = Object.keys(info)
    .toSorted()
    .map((key) => [key, shortened(info[key])]);
  const rows = (tensors as Json[]).map(({ name, type, shape }) => [name, type, `[${(shape ?? []).join(" ")}]`]);
  return [
    ["Metadata", metadata],
    ["Tensors", rows],
  ];
}

function shortened(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const head = value.slice(0, 3).map((item) => JSON.stringify(item));
  return value.length > head.length ? `[${head.join(", ")}, ...+${value.length - head.length} more]` : `[${head}]`;
}

/** The beginning of a long text. */
function firstLines(text: unknown): string[][] {
  if (typeof text !== "string" || text.trim() === "") return [];
  const lines = text.trim().split("\n");
  return [...lines.slice(0, 2).map((line) => [line.trim()]), ...(lines.length > 2 ? [["..."]] : [])];
}
