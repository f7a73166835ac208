#!/usr/bin/env node
// The command `hearth` of the npm package: runs the program with Bun, either an installed one or the one that npm
// fetched.
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const BUN = "1.4.5";
const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

const found = spawnSync("bun", ["--version"], { encoding: "utf8" });
const [major = 0, minor = 0] = (found.stdout ?? "").trim().split(".").map(Number);
const [wantedMajor, wantedMinor] = BUN.split(".").map(Number);
const isNewEnough = major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
const command = isNewEnough ? "bun" : fetchedBun();

const child = spawn(command, [main, ...process.argv.slice(2)], { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`hearth: cannot run ${command}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));

/** The Bun that npm fetched: run directly, it receives signals, which npx would swallow. */
function fetchedBun() {
  const { stdout, status, error } = spawnSync("npx", ["--yes", `bun@${BUN}`, "-p", "process.execPath"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    shell: process.platform === "win32",
  });
  const path = (stdout ?? "").trim();
  if (status === 0 && path !== "") return path;
  console.error(`hearth: needs Bun ${BUN}, which npm could not fetch: ${error?.message ?? `status ${status}`}`);
  process.exit(1);
}
