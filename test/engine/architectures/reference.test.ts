/**
 * Reference models of supported architectures, half of them by the seed, against llama.cpp's logits. A new
 * architecture is covered once it is registered. `$HEARTH_ARCHS` is a folder of more models: the output of llama.cpp's
 * own test of architectures.
 */
import { describe, expect, test } from "bun:test";
import { archs, loadProgram } from "../../../src/engine/architectures/index.ts";
import { nmse } from "../backends/compare.ts";
import { goldenTest } from "../../golden.ts";
import { drawn } from "../../seed.ts";
import { answerOf, isRanker, openReference, REFUSED, referencesWith } from "./references.ts";

const references = referencesWith(process.env["HEARTH_ARCHS"]);
/** Models whose logits a run compares. */
const some = new Set(drawn("reference models", references, Math.ceil(references.length / 2)));

describe.skipIf(references.length === 0)("reference models", () => {
  for (const reference of references) {
    const { name, nmseMax } = reference;
    const { model: file, arch } = openReference(reference);
    file.close();
    if (isRanker(file, arch)) continue;
    if (!Object.hasOwn(archs, arch)) {
      test(`${name}: ${arch} is refused by name`, () => {
        const { model } = openReference(reference);
        expect(() => loadProgram(model)).toThrow(`got '${arch}'`);
        model.close();
      });
      continue;
    }
    const refusal = REFUSED[name];
    if (refusal !== undefined) {
      test(`${name} is refused`, () => {
        const { model } = openReference(reference);
        expect(() => loadProgram(model)).toThrow(refusal);
        model.close();
      });
      continue;
    }
    if (!some.has(reference)) continue;
    test(`${name} has llama.cpp's logits`, async () => {
      const opened = openReference(reference);
      const { got, expected } = await answerOf(reference, opened);
      expect(got.length).toBe(expected.length);
      expect(nmse(got, expected)).toBeLessThan(nmseMax);
      opened.model.close();
    });
  }
});

goldenTest("there are reference models", () => expect(references.length).toBeGreaterThan(50));
