/** Writes the table of docs/platforms.md: which backend runs a model on which machine. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeTable, TABLE } from "../test/engine/backends/machines.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-machines-"));
const path = join(import.meta.dir, "../docs/platforms.md");
const page = await Bun.file(path).text();
const table = await makeTable(join(folder, "model.gguf"));
rmSync(folder, { recursive: true });
await Bun.write(
  path,
  page.replace(TABLE, () => table),
);
Bun.spawnSync(["bun", "fmt"], { stdio: ["ignore", "ignore", "inherit"] });
