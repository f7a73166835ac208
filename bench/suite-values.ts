/** The values of JSON-Schema-Test-Suite, and whether our grammars allow them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { byteCompiler, mayEnd } from "./byte-grammar.ts";

export interface Group {
  /** File and description. */
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[];
}

interface WrittenGroup extends Omit<Group, "name" | "schema"> {
  readonly description: string;
  readonly schema: boolean | Group["schema"];
}

/** The groups of a draft. `folder` has the suite's `tests`. */
export function suiteGroups(folder: string, draft: string): Group[] {
  const files = readdirSync(join(folder, draft)).filter((name) => name.endsWith(".json"));
  return files.flatMap((file) => {
    const groups = JSON.parse(readFileSync(join(folder, draft, file), "utf8")) as WrittenGroup[];
    return groups.map(({ description, schema, tests }) => ({
      name: `${file} · ${description}`,
      schema: schema === true ? {} : schema === false ? { not: {} } : schema,
      tests,
    }));
  });
}

/** Returns whether our grammar of a schema allows a text as a whole answer. */
export async function allows(schema: Group["schema"], text: string): Promise<boolean> {
  const matcher = await byteCompiler.matcher(schema);
  try {
    for (const byte of new TextEncoder().encode(text)) {
      if ((await matcher.isOver()) || !matcher.accept(byte)) return false;
    }
    if (await matcher.isOver()) return true;
    const mask = await matcher.mask();
    return mask === undefined || mayEnd(mask);
  } finally {
    matcher.dispose();
  }
}
