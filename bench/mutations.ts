/**
 * Tests that the recorded logits reveal mistakes: runs every reference model with each mistake of
 * test/engine/architectures/mutations.ts, and counts the mutation as missed if the logits stay within the bound. `bun
 * bench/mutations.ts`: the outlines, and with `HEARTH_GOLDEN` the models there too. Exits with 1 if an outline
 * misses a wrong rotation or a lost window.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { archs, loadProgram } from "../src/engine/architectures/index.ts";
import type { Program } from "../src/engine/program/backend.ts";
import { makeSimdBackend } from "../src/engine/backends/host/simd.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { nmse } from "../test/engine/backends/compare.ts";
import { likeLlamaCpp } from "../test/engine/architectures/like-llama-cpp.ts";
import { MUTATIONS } from "../test/engine/architectures/mutations.ts";
import { makeOutline, OUTLINE_TOKENS, readOutlines } from "../test/engine/architectures/outlines.ts";
import { openReference, REFUSED, referencesWith } from "../test/engine/architectures/references.ts";

const BOUND = 1e-5;
const backend = makeSimdBackend();

interface Known {
  readonly program: Program;
  readonly tokens: Int32Array;
  readonly expected: Float32Array;
}

async function errorOf(program: Program, { tokens, expected }: Known): Promise<number> {
  const options = { ctxLen: 64, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await backend.load(program, options);
  const logits = await session.run([{ slot: 0, start: 0, tokens, logits: "all" }]);
  const error = nmse(logits.slice(-expected.length), expected);
  session.close();
  return error;
}

/** Models by mutation: all that have such a part, and models that miss the mutation. */
function makeTally(title: string) {
  const rows = new Map(MUTATIONS.map(({ name }) => [name as string, { having: 0, missed: [] as string[] }]));
  return {
    rows,
    async note(name: string, known: Known): Promise<void> {
      for (const mutation of MUTATIONS) {
        const wrong = mutation.apply(known.program);
        if (!wrong || (backend.missing?.(wrong) ?? []).length > 0) continue;
        const row = rows.get(mutation.name)!;
        row.having++;
        if ((await errorOf(wrong, known)) < BOUND) row.missed.push(name);
      }
    },
    print(): void {
      console.log(`\n${title}`);
      for (const [name, { having, missed }] of rows) {
        const which = missed.length > 0 ? `: ${missed.join(", ")}` : "";
        console.log(`  ${name}: ${missed.length} of ${having} models miss it${which}`);
      }
    },
  };
}

const logitsAt = async (path: string): Promise<Float32Array> => new Float32Array(await Bun.file(path).arrayBuffer());

const outlines = makeTally("outlines");
const folder = await mkdtemp(join(tmpdir(), "hearth-mutations-"));
for (const [name, outline] of readOutlines()) {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, makeOutline(name, outline));
  const gguf = openGguf(path);
  const expected = await logitsAt(join(import.meta.dir, "../test/engine/architectures/logits", `${name}.f32`));
  await outlines.note(name, { program: likeLlamaCpp(loadProgram(gguf)), tokens: OUTLINE_TOKENS, expected });
  gguf.close();
  await rm(path);
}
await rm(folder, { recursive: true });
outlines.print();

const golden = makeTally("models of HEARTH_GOLDEN");
for (const reference of referencesWith(undefined)) {
  const { model, arch } = openReference(reference);
  const isKnown = Object.hasOwn(archs, arch) && REFUSED[reference.name] === undefined;
  const known = isKnown ? likeLlamaCpp(loadProgram(model)) : undefined;
  if (known?.logits) {
    const { tokens, logits } = reference;
    await golden.note(basename(reference.name), { program: known, tokens, expected: await logitsAt(logits) });
  }
  model.close();
}
golden.print();
const [wrongTurn, lostWindow] = MUTATIONS;
const missed = [wrongTurn, lostWindow].flatMap(({ name }) => outlines.rows.get(name)!.missed);
process.exit(missed.length > 0 ? 1 : 0);
