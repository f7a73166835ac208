/**
 * Speed of a pull from a registry on the loopback interface, compared with `curl` fetching the same blob into a file:
 * alternated, medians. `curl` neither waits for the disk nor hashes, as a pull does; so two more rows add `sync` of the
 * file and `sha256sum`. Needs `docker-registry` (a Debian package) and `curl`.
 *
 *   bun bench/pull.ts [--mb 2000] [--rounds 5]
 */
import { randomFillSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { digestOf, digestOfFile } from "../src/library/store/digest.ts";
import { CONFIG_TYPE, mediaType, MANIFEST_TYPE } from "../src/library/store/manifest.ts";
import { startHearth } from "../test/e2e/hearth.ts";
import { startDockerRegistry } from "../test/library/registry/docker-registry.ts";

const { values: flags } = parseArgs({
  options: { mb: { type: "string", default: "2000" }, rounds: { type: "string", default: "5" } },
});
const megabytes = Number(flags.mb);

const folder = mkdtempSync(join(tmpdir(), "hearth-bench-pull-"));
const registry = await startDockerRegistry(join(folder, "registry"));
const hearth = await startHearth({ home: folder });
try {
  const repository = `http://${registry.host}/v2/library/big`;
  const blob = await publish(repository);
  const model = `${registry.host}/library/big`;
  const copy = join(folder, "copy");
  const contenders: Record<string, () => Promise<void>> = {
    curl: () => run(["curl", "-sf", "-o", copy, `${repository}/blobs/${blob}`]),
    "curl, then sync": async () => {
      await run(["curl", "-sf", "-o", copy, `${repository}/blobs/${blob}`]);
      await run(["sync", copy]);
    },
    "curl, sync, sha256sum": async () => {
      await run(["curl", "-sf", "-o", copy, `${repository}/blobs/${blob}`]);
      await run(["sync", copy]);
      await run(["sha256sum", copy]);
    },
    pull: async () => {
      const response = await hearth.post("/api/pull", { model, insecure: true, stream: false });
      if (!response.ok) throw new Error(await response.text());
    },
  };
  const clean = async (): Promise<void> => {
    await rm(copy, { force: true });
    const response = await fetch(`${hearth.url}/api/delete`, { method: "DELETE", body: JSON.stringify({ model }) });
    await response.text();
    await run(["sync"]); // so that no program writes another one's data to the disk
  };
  const rates = await alternate(contenders, clean);
  const base = median(rates["curl"] ?? []);
  for (const [name, all] of Object.entries(rates)) {
    const spread = `${Math.min(...all).toFixed(0)} to ${Math.max(...all).toFixed(0)}`;
    const rate = median(all);
    console.log(`${name.padEnd(22)} ${rate.toFixed(0)} MB/s (${spread})   ${(rate / base).toFixed(2)} × curl`);
  }
} finally {
  await hearth.stop();
  await registry.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function alternate(contenders: Record<string, () => Promise<void>>, clean: () => Promise<void>) {
  const rates: Record<string, number[]> = {};
  for (let round = 0; round <= Number(flags.rounds); round++) {
    for (const [name, work] of Object.entries(contenders)) {
      await clean();
      const startedMs = performance.now();
      await work();
      const rate = (megabytes * 1e3) / (performance.now() - startedMs);
      if (round > 0) (rates[name] ??= []).push(rate); // the first round is warm-up
    }
  }
  await clean();
  return rates;
}

/**
 * Puts a model of one random blob into the registry.
 * @returns the digest of the blob
 */
async function publish(repository: string): Promise<string> {
  const path = join(folder, "blob");
  await using file = await open(path, "w");
  const chunk = new Uint8Array(1e6);
  for (let i = 0; i < megabytes; i++) await file.write(randomFillSync(chunk));
  const digest = await digestOfFile(path);
  const config = join(folder, "config.json");
  const text = '{"model_format":"gguf"}';
  await Bun.write(config, text);
  const configDigest = digestOf(new TextEncoder().encode(text));
  for (const [from, of] of [
    [path, digest],
    [config, configDigest],
  ] as const) {
    const begun = await fetch(`${repository}/blobs/uploads/`, { method: "POST" });
    const location = new URL(begun.headers.get("location") ?? "", repository);
    location.searchParams.set("digest", of);
    await run(["curl", "-sf", "-T", from, location.href]);
  }
  await rm(path);
  const response = await fetch(`${repository}/manifests/latest`, {
    method: "PUT",
    headers: { "content-type": MANIFEST_TYPE },
    body: JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: { mediaType: CONFIG_TYPE, digest: configDigest, size: text.length },
      layers: [{ mediaType: mediaType("model"), digest, size: megabytes * 1e6 }],
    }),
  });
  if (!response.ok) throw new Error(await response.text());
  return digest;
}

async function run(command: string[]): Promise<void> {
  const code = await Bun.spawn(command, { stdout: "ignore", stderr: "inherit" }).exited;
  if (code !== 0) throw new Error(`${command[0]} ended with code ${code}`);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
