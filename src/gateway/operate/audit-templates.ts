/** Audits a mapping's paths: finds paths that probably miss their intended value. */
import { nearest } from "../../base/index.ts";
import type { Path } from "../../base/config/index.ts";
import type { Condition } from "../hooks/config.ts";
import type { Mapping } from "../hooks/mapping/index.ts";
import { ROOTS } from "../hooks/mapping/path.ts";
import { trimSlashes } from "../hooks/mapping/request.ts";
import type { AtMapping } from "./report.ts";

const TEMPLATES = [
  "messageTemplate",
  "textTemplate",
  "name",
  "sessionKey",
  "to",
  "model",
  "thinking",
  "itemId",
] as const;
/** The first key of a longer path: `heders` of `{{ heders.x-event }}`. */
const FIRST_KEY = /\{\{\s*([A-Za-z_]\w*)[.[]/g;
/** A value opened or closed by one brace instead of two. */
const SINGLE_BRACE = /(?<!\{)\{\s*[A-Za-z_][\w.[\]-]*\s*(\|[^{}]*)?\}\}(?!\})/;

export function auditTemplates({ config }: Mapping, { path, parts, report }: AtMapping): void {
  const roots: string[] = [
    ...ROOTS,
    ...(config.forEach === undefined ? [] : ["item"]),
    ...(config.transform ? ["values"] : []),
  ];
  const check = (key: string, at: Path): void => {
    const near = roots.includes(key) ? undefined : nearest(key, roots);
    if (near === undefined) return;
    const message = `'${key}' is looked for in the body: did you mean '${near}'?`;
    report("warn", "template-root", { path: at, message });
  };
  for (const name of TEMPLATES) {
    const found = new Set([...(config[name] ?? "").matchAll(FIRST_KEY)].map(([, key]) => key!));
    for (const key of found) check(key, [...path, name]);
    const [text] = SINGLE_BRACE.exec(config[name] ?? "") ?? [];
    if (text === undefined) continue;
    const message = `'${text.slice(0, 40)}' is text: a value is written in two braces, as in {{ payload.title }}`;
    report("warn", "template-brace", { path: [...path, name], message });
  }
  for (const at of config.match.when ? pathsOf(config.match.when) : []) {
    const [, key] = /^\s*([A-Za-z_]\w*)[.[]/.exec(at) ?? [];
    if (key !== undefined) check(key, [...path, "match", "when"]);
  }
  auditPath(config.match.path, { path, parts, report });
}

/** Reports a path that repeats `hooks.path`. */
function auditPath(own: string | undefined, { path, parts, report }: AtMapping): void {
  const { path: root } = parts.snapshot.hooks;
  const bare = trimSlashes(own ?? "");
  if (!`/${bare}/`.startsWith(`${root}/`)) return;
  const meant = trimSlashes(`/${bare}`.slice(root.length));
  const message = `is below hooks.path: requests come to '${root}/${bare}'; for '${root}/${meant}' write "${meant}"`;
  report("warn", "path-repeated", { path: [...path, "match", "path"], message });
}

function pathsOf(condition: Condition): readonly string[] {
  if ("at" in condition) return [condition.at];
  if ("not" in condition) return pathsOf(condition.not);
  return ("all" in condition ? condition.all : condition.any).flatMap(pathsOf);
}
