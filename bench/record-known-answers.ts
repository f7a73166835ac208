/**
 * Writes the results of the kernel libraries' self-test (`kernels/simd/lib/KNOWN_ANSWERS`), after the sources in
 * `kernels/simd` or the sheets in `src/engine/backends/selftest` have changed. Lines of libraries that this machine
 * cannot run stay as they are; a test refuses them where the library is another. AVX-512 VNNI needs such a processor,
 * arm64 `qemu-aarch64`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { libraryFolder } from "../src/engine/backends/host/simd-library.ts";
import { answerOfShipped, canAnswer, passLibraries } from "../test/engine/backends/simd/answers.ts";

const file = join(libraryFolder(), "KNOWN_ANSWERS");
const before = new Map(
  readFileSync(file, { encoding: "utf8", flag: "a+" })
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [[line.split(/ +/)[1]!, line] as const])),
);
const lines: string[] = [];
for (const name of passLibraries().toSorted()) {
  const library = new Bun.CryptoHasher("sha256").update(readFileSync(join(libraryFolder(), name))).digest("hex");
  if (canAnswer(name)) lines.push(`${await answerOfShipped(name)}  ${name}  ${library}`);
  else if (before.has(name)) lines.push(before.get(name)!);
  console.log(lines.at(-1));
}
writeFileSync(file, `${lines.join("\n")}\n`);
