/**
 * Removes constants of 64 bytes from clang's assembly for x86-64: unused ones, and all but the first of equal ones. The
 * linker does so itself up to 32 bytes.
 *
 *   bun constants.ts < IN.s > OUT.s
 */
import { text } from "node:stream/consumers";

const NAME = /\.LCPI\d+_\d+/;

/** The lines of an assembly file without removable constants. */
function withoutCopies(lines: readonly string[]): string[] {
  const read = new Set(lines.filter((line) => /^\t[a-z]/.test(line)).flatMap((line) => NAME.exec(line) ?? []));
  const kept = new Map<string, string>();
  const out: string[] = [];
  let isWide = false;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    if (/^\t\.(section|text|data)/.test(line)) isWide = /\t\.(rodata,"a"|rdata,"dr"$)/.test(line);
    const name = isWide ? /^(\.LCPI\d+_\d+):/.exec(line)?.[1] : undefined;
    if (name === undefined) {
      out.push(line);
      continue;
    }
    const end = lines.findIndex((other, at) => at > i && !/^\t\.(byte|short|long|quad|zero)\t/.test(other));
    const value = lines.slice(i + 1, end).map((each) => each.replace(/\s*#.*/, ""));
    const first = kept.get(value.join());
    if (read.has(name)) {
      if (first !== undefined) out.push(`\t.set\t${name}, ${first}`);
      else {
        out.push(line, ...value);
        kept.set(value.join(), name);
      }
    }
    i = end - 1;
  }
  return out;
}

const assembly = await text(process.stdin);
await Bun.write(Bun.stdout, withoutCopies(assembly.split("\n")).join("\n"));
