import { describe, expect, test } from "bun:test";
import { resolveModel } from "../../../src/gateway/agent/models.ts";
import { settingsOf } from "./parts.ts";

const names = ["hearth:latest", "Big:8b", "user/m:tag", "fast:latest", "example.com/a/b:c"];
const models = {
  "big:8b": { alias: "Smart" },
  "user/m:tag": {},
  "gone:1b": { alias: "gone" },
  hearth: { alias: "team/pick" },
};
const lists = { open: settingsOf().agents, limited: settingsOf({ defaults: { models } }).agents };
const ask = (list: keyof typeof lists, reference?: string, fallback?: string) =>
  resolveModel({ agents: lists[list], names, reference, ...(fallback === undefined ? {} : { fallback }) });

describe("a model reference", () => {
  test.each([
    ["open", undefined, "hearth:latest"],
    ["open", " ", "hearth:latest"],
    ["open", "fast", "fast:latest"],
    ["open", "FAST:latest", "fast:latest"],
    ["open", "example.com/a/b:c", "example.com/a/b:c"],
    ["limited", undefined, "hearth:latest"],
    ["limited", "hearth", "hearth:latest"],
    ["limited", "smart", "Big:8b"],
    ["limited", "big:8b", "Big:8b"],
    ["limited", "user/m:tag", "user/m:tag"],
  ] as const)("in the %s list, %p resolves to a model", (list, reference, model) => {
    expect(ask(list, reference)).toEqual({ model });
  });

  test.each([
    ["open", "none", "model_unknown", "model 'none' not found"],
    ["open", "smart", "model_unknown", "model 'smart' not found"],
    ["open", "../../etc", "model_unknown", "model '../../etc' not found"],
    ["limited", "fast", "model_not_allowed", "model 'fast' is not in agents.defaults.models"],
    ["limited", "x/smart", "model_not_allowed", "model 'x/smart' is not in agents.defaults.models"],
    ["limited", "team/pick", "model_not_allowed", "model 'team/pick' is not in agents.defaults.models"],
    ["limited", "a b", "model_not_allowed", "model 'a b' is not in agents.defaults.models"],
    ["limited", "__proto__", "model_not_allowed", "model '__proto__' is not in agents.defaults.models"],
    ["limited", "gone", "model_unknown", "model 'gone' not found"],
  ] as const)("in the %s list, %p is refused", (list, reference, code, message) => {
    expect(ask(list, reference)).toMatchObject({ error: { code, message } });
  });

  test("in an agent's own settings is allowed like the default", () => {
    expect(ask("limited", undefined, "fast")).toEqual({ model: "fast:latest" });
    expect(ask("limited", "fast", "fast")).toEqual({ model: "fast:latest" });
  });
});
