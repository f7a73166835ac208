/** Messages edited in an editor, which the system's shell starts. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { editText } from "../../../src/cli/run/editor.ts";
import { afterTest } from "../../cleanups.ts";

test("an editor, its flags and the folder of temporary files may have blanks", () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth editor & ö "));
  afterTest(() => rmSync(folder, { recursive: true }));
  const script = join(folder, "edit me.ts");
  writeFileSync(
    script,
    `import { appendFileSync } from "node:fs";
const [flag, path, ...more] = process.argv.slice(2);
appendFileSync(path!, ["", flag, more.length, "Grüße", ""].join("\\r\\n"));`,
  );
  const editor = `"${process.execPath}" "${script}" "a flag"`;
  expect(editText("before", editor)).toBe("before\n\na flag\n0\nGrüße");
  expect(() => editText("before", `"${process.execPath}" missing.ts`)).toThrow("the message is unchanged");
});
