/** Runs a preset's mapping like the ingress, for tests of presets' summaries. */
import { expect } from "bun:test";
import { plain } from "../../../../../src/gateway/agent/boundary/tainted-text.ts";
import type { AgentAction } from "../../../../../src/gateway/hooks/action.ts";
import { hooksSchema, type PresetName } from "../../../../../src/gateway/hooks/config.ts";
import { makeMappings, runMapping, type RunParts } from "../../../../../src/gateway/hooks/mapping/index.ts";
import { makeRequest } from "../view.ts";

const PARTS: RunParts = {
  transforms: { run: () => expect.unreachable("presets have no transforms") },
  transformsDir: "/nowhere",
  transformTimeoutMs: 1000,
  isChannel: () => false,
};

export const mappingOf = (name: PresetName) =>
  makeMappings({ hooks: hooksSchema.parse({ presets: [name] }), folder: "/" }).all[0]!;

export async function run(name: PresetName, payload: unknown, headers: Record<string, string> = {}) {
  const outcome = await runMapping(mappingOf(name), makeRequest({ path: name, payload, headers }), PARTS);
  return outcome.kind === "actions" ? { ...outcome, actions: outcome.actions as readonly AgentAction[] } : outcome;
}

/** The text that the one action of a request gives to a model. */
export async function promptOf(
  name: PresetName,
  payload: unknown,
  headers: Record<string, string> = {},
): Promise<string> {
  const outcome = await run(name, payload, headers);
  if (outcome.kind !== "actions") return expect.unreachable(JSON.stringify(outcome));
  expect(outcome.actions).toHaveLength(1);
  return plain(outcome.actions[0]!.message);
}
