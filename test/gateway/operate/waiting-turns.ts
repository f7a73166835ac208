/** A gateway with two turns whose calls wait for an approval. It prints its address. Argument: the file of effects. */
import { join } from "node:path";
import { cleanUp } from "../../cleanups.ts";
import { startGateway } from "./world.ts";

const server = join(import.meta.dir, "../agent/effect-server.ts");
const once = { id: "call_1", function: { name: "fx__once", arguments: { n: "<i>1</i>" } } };
const mapping = { match: { path: "m" }, messageTemplate: "Go.", tools: ["fx/*"], deliver: false };
const { url, hook } = await startGateway({
  servers: { fx: { command: process.execPath, args: [server, process.argv[2]!], connectTimeout: "20s" } },
  settings: { hooks: { mappings: [mapping] } },
  script: ({ messages }) => (messages.some(({ role }) => role === "tool") ? { text: "Done." } : { calls: [once] }),
});
await hook("m", { n: 1 });
await hook("m", { n: 2 });
process.stdout.write(`${url}\n`);
process.on("SIGTERM", () => void cleanUp().then(() => process.exit()));
