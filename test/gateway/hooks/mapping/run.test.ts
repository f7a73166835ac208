import { describe, expect, test } from "bun:test";
import { AppError } from "../../../../src/base/errors.ts";
import { type TaintedText, plain } from "../../../../src/gateway/agent/boundary/tainted-text.ts";
import type { AgentAction, HookAction } from "../../../../src/gateway/hooks/action.ts";
import { hooksSchema } from "../../../../src/gateway/hooks/config.ts";
import {
  deliveryIdOf,
  makeMappings,
  type MappingOutcome,
  type MappingRequest,
  runMapping,
  type RunParts,
} from "../../../../src/gateway/hooks/mapping/index.ts";
import { ITEMS_MAX } from "../../../../src/gateway/hooks/mapping/run.ts";
import { makeRequest } from "./view.ts";

type HooksInput = Record<string, any>;
const mappingsOf = (hooks: HooksInput) => makeMappings({ hooks: hooksSchema.parse(hooks), folder: "/etc/hearth" });

const CHANNELS = ["slack", "telegram", "mattermost"];
/** Replaces a transform: the pool's tests use real ones. */
const partsWith = (output: (input: any) => unknown): RunParts => ({
  transforms: { run: async (_, input) => output(input) },
  transformsDir: "/nowhere",
  transformTimeoutMs: 5000,
  isChannel: (name) => CHANNELS.includes(name),
});
const NO_TRANSFORM = partsWith(() => expect.unreachable("no transform is configured"));

async function runOne(mapping: object, request: Partial<MappingRequest>, parts = NO_TRANSFORM) {
  const [only] = mappingsOf({ mappings: [mapping] }).all;
  return await runMapping(only!, makeRequest(request), parts);
}

function actionsOf(outcome: MappingOutcome): readonly HookAction[] {
  if (outcome.kind !== "actions") return expect.unreachable(`expected actions, got ${JSON.stringify(outcome)}`);
  return outcome.actions;
}

async function agentOf(mapping: object, request: Partial<MappingRequest>, parts = NO_TRANSFORM): Promise<AgentAction> {
  const [action] = actionsOf(await runOne(mapping, request, parts));
  return action?.kind === "agent" ? action : expect.unreachable("expected an agent action");
}

const part = (from: "operator" | "external", text: string): TaintedText => [{ from, text }];

describe("the mapping of a request", () => {
  const found = (hooks: HooksInput, request: Partial<MappingRequest>) =>
    mappingsOf(hooks).find(makeRequest(request))?.id;
  const own = (...matches: object[]): HooksInput => ({ mappings: matches.map((match) => ({ match })) }) as HooksInput;

  test.each<[string, HooksInput, Partial<MappingRequest>, string | undefined]>([
    ["a path selects the mapping", own({ path: "a" }, { path: "b" }), { path: "b" }, "mapping-2"],
    ["slashes at both ends of a path are ignored", own({ path: "/a/b/" }), { path: "a/b" }, "mapping-1"],
    ["inner slashes of a path count", own({ path: "a/b" }), { path: "a" }, undefined],
    ["the case of a path counts", own({ path: "A" }), { path: "a" }, undefined],
    ["a source counts on any path", own({ source: "ci" }), { path: "x", payload: { source: "ci" } }, "mapping-1"],
    ["a source that is not text matches nothing", own({ source: "1" }), { payload: { source: 1 } }, undefined],
    ["a body without a source matches no source", own({ source: "ci" }), { payload: null }, undefined],
    ["path and source must fit", own({ path: "a", source: "s" }), { path: "a", payload: { source: "t" } }, undefined],
    ["an empty match takes every request", own({}), { path: "any/thing" }, "mapping-1"],
    ["the first of several matches is used", own({}, { path: "a" }), { path: "a" }, "mapping-1"],
    ["a condition must hold", own({ when: { at: "x", equals: 1 } }, {}), { payload: { x: 2 } }, "mapping-2"],
    ["wake is never a mapping's path", own({}, { path: "wake" }), { path: "wake" }, undefined],
    ["agent is never a mapping's path", own({ path: "/agent/" }), { path: "agent/" }, undefined],
    ["the empty path matches no mapping", own({}), { path: "" }, undefined],
    ["presets come last", { ...own({}), presets: ["github"] }, { path: "github" }, "mapping-1"],
    ["a preset is matched by its path", { presets: ["mail", "github"] }, { path: "github" }, "github"],
    ["a path named like a prototype's property matches nothing", own({ path: "a" }), { path: "__proto__" }, undefined],
  ])("%s", (_, hooks, request, wanted) => expect(found(hooks, request)).toBe(wanted));

  test("candidates are known from the path before the body is read", () => {
    const mappings = mappingsOf(own({ path: "a" }, { source: "s" }, { path: "b" }));
    expect(mappings.forPath("/a").map(({ id }) => id)).toEqual(["mapping-1", "mapping-2"]);
    expect(mappings.forPath("wake")).toEqual([]);
  });

  test("an unusable mapping keeps its requests and fails them", async () => {
    const mappings = mappingsOf({
      mappings: [{ match: { path: "a" }, messageTemplate: "{{x | shout}}" }, { messageTemplate: "all" }],
    });
    const request = makeRequest({ path: "a" });
    const mapping = mappings.find(request)!;
    expect(mapping.id).toBe("mapping-1");
    expect({ ...mapping.plan }).toMatchObject({
      ok: false,
      problem: expect.stringContaining("messageTemplate: '{{x | shout}}'"),
    });
    expect(await runMapping(mapping, request, NO_TRANSFORM)).toMatchObject({ kind: "failed", code: "mapping_failed" });
    expect(mappings.find(makeRequest({ path: "b" }))?.id).toBe("mapping-2");
  });

  test("an invalid condition counts as fulfilled", () => {
    const mappings = mappingsOf(own({ path: "a", when: { at: "x", matches: "(" } }, {}));
    expect(mappings.find(makeRequest({ path: "a" }))?.plan.ok).toBe(false);
    expect(mappings.find(makeRequest({ path: "b" }))?.id).toBe("mapping-2");
  });
});

describe("an action", () => {
  test("has all settings of an agent mapping", async () => {
    const mapping = {
      messageTemplate: "New: {{title}}",
      name: "Shop {{n}}",
      sessionKey: "hook:shop:{{n}}",
      wakeMode: "next-heartbeat",
      deliver: false,
      channel: "telegram",
      to: "{{chat}}",
      model: "{{model}}",
      thinking: "low",
      timeoutSeconds: 30,
      agentId: "clerk",
      tools: ["current_time"],
      callbackUrl: "https://example.com/done",
    };
    expect(await agentOf(mapping, { payload: { title: "order", n: 5, chat: 42, model: "tiny" } })).toEqual({
      kind: "agent",
      message: [...part("operator", "New: "), ...part("external", "order")],
      name: "Shop 5",
      sessionKey: "hook:shop:5",
      wakeMode: "next-heartbeat",
      deliver: false,
      channel: "telegram",
      to: "42",
      model: "tiny",
      thinking: "low",
      timeoutSeconds: 30,
      agentId: "clerk",
      tools: ["current_time"],
      callbackUrl: "https://example.com/done",
      isWrapped: true,
    });
  });

  test("has defaults in an agent mapping without settings", async () => {
    expect(await agentOf({ messageTemplate: "Hi" }, {})).toEqual({
      kind: "agent",
      message: part("operator", "Hi"),
      name: "Hook",
      wakeMode: "now",
      deliver: true,
      channel: "last",
      tools: [],
      isWrapped: true,
    });
  });

  test("has text, mode and boundary in a wake mapping", async () => {
    const mapping = {
      action: "wake",
      textTemplate: "{{x}}",
      wakeMode: "next-heartbeat",
      allowUnsafeExternalContent: true,
    };
    expect(actionsOf(await runOne(mapping, { payload: { x: "y" } }))).toEqual([
      { kind: "wake", text: part("external", "y"), mode: "next-heartbeat", isWrapped: false },
    ]);
  });

  test("has no session key if a value in it is missing, so that strangers share no conversation", async () => {
    const mapping = { messageTemplate: "x", sessionKey: "hook:shop:{{id}}", to: "chat-{{id}}" };
    const action = await agentOf(mapping, { payload: {} });
    expect(action.sessionKey).toBeUndefined();
    expect(action.to).toBeUndefined();
    expect((await agentOf({ ...mapping, sessionKey: "fixed" }, {})).sessionKey).toBe("fixed");
  });

  test.each<[string, object, unknown, string]>([
    ["an empty message", { messageTemplate: "{{x}}" }, { x: " \n" }, "text for the agent action"],
    ["no template", {}, { x: 1 }, "text for the agent action"],
    ["an empty event", { action: "wake", messageTemplate: "only the other kind" }, {}, "text for the wake action"],
    ["a missing required value", { messageTemplate: "{{x}}", missing: "error" }, {}, "'x' has no value"],
    [
      "a long session key",
      { messageTemplate: "a", sessionKey: "{{x}}" },
      { x: "k".repeat(257) },
      "most 256 characters, got 257",
    ],
    ["a session key of two lines", { messageTemplate: "a", sessionKey: "{{x}}" }, { x: "a\nb" }, "control characters"],
    ["an unknown channel", { messageTemplate: "a", channel: "pigeon" }, {}, "got 'pigeon'"],
  ])("is refused as a bad request for %s", async (_, mapping, payload, reason) => {
    expect(await runOne(mapping, { payload })).toMatchObject({
      kind: "failed",
      code: "bad_request",
      reason: expect.stringContaining(reason),
    });
  });
});

describe("a list of the body", () => {
  const mapping = { forEach: "orders", messageTemplate: "{{index}}: {{item.id}} of {{shop}}", itemId: "{{item.id}}" };

  test("each item becomes an action, in order, with its own id", async () => {
    const payload = { shop: "s", orders: [{ id: 7 }, { id: 8 }, {}] };
    const actions = actionsOf(await runOne(mapping, { payload })) as AgentAction[];
    expect(actions.map(({ message }) => plain(message))).toEqual(["0: 7 of s", "1: 8 of s", "2:  of s"]);
    expect(actions.map(({ itemId }) => itemId)).toEqual(["7", "8", undefined]);
  });

  test("equal items without an id become two actions", async () => {
    const outcome = await runOne({ ...mapping, itemId: undefined }, { payload: { orders: [{ id: 1 }, { id: 1 }] } });
    expect(actionsOf(outcome)).toHaveLength(2);
  });

  test("an empty list becomes no action", async () =>
    expect(await runOne(mapping, { payload: { orders: [] } })).toEqual({ kind: "nothing" }));

  test("the body itself may be the list", async () => {
    const whole = { forEach: "payload", messageTemplate: "{{item}}" };
    expect(actionsOf(await runOne(whole, { payload: ["a", "b"] }))).toHaveLength(2);
  });

  test.each([[{}], [{ orders: "x" }], [{ orders: { length: 3 } }], [{ orders: null }]])(
    "%j has no list and is refused",
    async (payload) =>
      expect(await runOne(mapping, { payload })).toMatchObject({
        code: "bad_request",
        reason: expect.stringContaining("'orders': expected a list"),
      }),
  );

  test("one item that fails makes all fail", async () => {
    const strict = { ...mapping, missing: "error" };
    expect(await runOne(strict, { payload: { shop: "s", orders: [{ id: 1 }, {}] } })).toMatchObject({ kind: "failed" });
  });

  test("items beyond the limit are reported to the sender and the main session", async () => {
    const orders = Array.from({ length: ITEMS_MAX + 3 }, (_, id) => ({ id }));
    const outcome = await runOne(mapping, { payload: { orders } });
    expect(outcome).toMatchObject({ leftOut: 3, warnings: ["3 of 203 items were left out: at most 200 at once"] });
    const actions = actionsOf(outcome);
    expect(actions).toHaveLength(ITEMS_MAX + 1);
    expect(actions.at(-1)).toMatchObject({
      kind: "wake",
      text: [{ from: "operator", text: expect.stringContaining("3 were left out") }],
    });
  });

  test("without forEach, item is a field of the body", async () =>
    expect(plain((await agentOf({ messageTemplate: "{{item.x}}" }, { payload: { item: { x: "own" } } })).message)).toBe(
      "own",
    ));
});

describe("the result of a transform:", () => {
  const mapping = {
    transform: { module: "t.ts" },
    messageTemplate: "Base {{values.n}}",
    name: "Base",
    tools: ["current_time", "session_history"],
  };
  const given = (output: unknown, more: object = {}) =>
    runOne(
      { ...mapping, ...more },
      {},
      partsWith(() => output),
    );
  const agentGiven = (output: unknown, more: object = {}) =>
    agentOf(
      { ...mapping, ...more },
      {},
      partsWith(() => output),
    );

  test("undefined keeps the mapping's action", async () => expect((await agentGiven(undefined)).name).toBe("Base"));
  test("null runs nothing", async () => expect(await given(null)).toEqual({ kind: "nothing" }));

  test("settings override the mapping's", async () => {
    const output = {
      name: "New",
      sessionKey: "k",
      channel: "slack",
      to: 5,
      model: "m",
      timeoutSeconds: 1.5,
      agentId: "x",
    };
    expect(await agentGiven(output)).toMatchObject({ ...output, to: "5", timeoutSeconds: 2 });
  });

  test("text is marked as external", async () =>
    expect((await agentGiven({ message: "Do this" })).message).toEqual(part("external", "Do this")));

  test("values fill the template, whose words stay the operator's", async () =>
    expect((await agentGiven({ values: { n: 5 } })).message).toEqual([
      ...part("operator", "Base "),
      ...part("external", "5"),
    ]));

  test("another kind of action drops the fields of the mapping's kind", async () => {
    const outcome = await given({ kind: "wake", text: "t", mode: "next-heartbeat", model: "m" });
    expect(actionsOf(outcome)).toEqual([
      { kind: "wake", text: part("external", "t"), mode: "next-heartbeat", isWrapped: true },
    ]);
  });

  test("action is an alias of kind", async () => {
    const wake = { text: part("external", "t"), kind: "wake", mode: "now", isWrapped: true } as const;
    expect(actionsOf(await given({ action: "wake", text: "t" }))).toEqual([wake]);
    expect(actionsOf(await given({ action: "wake", kind: "wake", text: "t" }))).toEqual([wake]);
    expect(actionsOf(await given({ action: null, text: "t" }, { action: "wake" }))).toEqual([wake]);
    expect((await agentGiven({ action: "agent", message: "m" }, { action: "wake" })).message).toEqual(
      part("external", "m"),
    );
  });

  test.each([
    [{ kind: "wake", text: "t", wakeMode: "next-heartbeat" }, "next-heartbeat"],
    [{ kind: "wake", text: "t", mode: "now", wakeMode: "next-heartbeat" }, "now"],
    [{ mode: "next-heartbeat" }, "next-heartbeat"],
    [{ wakeMode: "now", mode: "next-heartbeat" }, "now"],
  ])("%j: mode and wakeMode are aliases, and the kind's own name comes first", async (output, wanted) => {
    const [action] = actionsOf(await given(output));
    expect(action?.kind === "wake" ? action.mode : action?.wakeMode).toBe(wanted as "now");
  });

  test("wakeMode now does not override the mapping's next-heartbeat", async () => {
    const late = await given({ wakeMode: "now" }, { wakeMode: "next-heartbeat" });
    expect(actionsOf(late)[0]).toMatchObject({ wakeMode: "next-heartbeat" });
    expect(late).toMatchObject({ warnings: [expect.stringContaining("cannot start now")] });
    expect((await agentGiven({ wakeMode: "next-heartbeat" })).wakeMode).toBe("next-heartbeat");
  });

  test("the boundary can be turned on, and not off", async () => {
    const outcome = await given({ allowUnsafeExternalContent: true });
    expect(actionsOf(outcome)[0]?.isWrapped).toBe(true);
    expect(outcome).toMatchObject({ warnings: ["the transform cannot turn the safety boundary off"] });
    const unsafe = { allowUnsafeExternalContent: true };
    expect((await agentGiven({}, unsafe)).isWrapped).toBe(false);
    expect((await agentGiven({ allowUnsafeExternalContent: false }, unsafe)).isWrapped).toBe(true);
  });

  test("delivery can be turned off, and not on", async () => {
    expect((await agentGiven({ deliver: false })).deliver).toBe(false);
    const outcome = await given({ deliver: true }, { deliver: false });
    expect(actionsOf(outcome)[0]).toMatchObject({ deliver: false });
    expect(outcome).toMatchObject({ warnings: [expect.stringContaining("cannot turn delivery on")] });
  });

  test("tools can be left out, and not added", async () => {
    const outcome = await given({ tools: ["session_history", "shell"] });
    expect(actionsOf(outcome)[0]).toMatchObject({ tools: ["session_history"] });
    expect(outcome).toMatchObject({ warnings: ["the transform cannot add tools: shell"] });
    expect((await agentGiven({ tools: [] })).tools).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ["a number", 5, "it: expected an object"],
    ["a list", [], "it: expected an object"],
    ["an unknown key", { mesage: "x" }, "mesage: unknown key; did you mean 'message'?"],
    ["a key of a wrong type", { message: 5 }, "message: expected a text"],
    ["an unknown kind", { kind: "reboot" }, 'kind: expected "wake", "agent"'],
    ["an unknown action", { action: "reboot" }, 'action: expected "wake", "agent"'],
    ["a kind that contradicts the action", { kind: "wake", action: "agent" }, "kind is 'wake', action is 'agent'"],
    ["an invalid time limit", { timeoutSeconds: -1 }, "timeoutSeconds"],
    ["a key of __proto__", JSON.parse('{"__proto__": {"tools": ["shell"]}}'), "__proto__"],
  ])("%s fails the mapping", async (_, output, reason) =>
    expect(await given(output)).toMatchObject({
      kind: "failed",
      code: "mapping_failed",
      reason: expect.stringContaining(reason),
    }),
  );

  test("the transform's input has no credentials", async () => {
    let seen: unknown;
    const parts = partsWith((input) => void (seen = input));
    const secrets = { authorization: "s3cr3t", "x-hub-signature-256": "s3cr3t", "x-event": "e" };
    await runOne(mapping, { headers: secrets, query: { token: "s3cr3t", a: "b" }, payload: { p: 1 } }, parts);
    expect(seen).toEqual({ path: "ingest", headers: { "x-event": "e" }, query: { a: "b" }, payload: { p: 1 } });
  });

  test("each item of a list is transformed, and null leaves it out", async () => {
    const parts = partsWith(({ item, index }) => (item === "skip" ? null : { message: `${index} ${item}` }));
    const outcome = await runOne({ ...mapping, forEach: "payload" }, { payload: ["a", "skip", "c"] }, parts);
    expect(actionsOf(outcome).map((action) => plain((action as AgentAction).message))).toEqual(["0 a", "2 c"]);
  });

  test.each([
    ["busy", "busy"],
    ["cancelled", "cancelled"],
    ["timeout", "mapping_failed"],
    ["runner", "mapping_failed"],
    ["bad_file", "mapping_failed"],
  ] as const)("an error %s of the transform becomes %s", async (code, wanted) => {
    const parts = partsWith(() => {
      throw new AppError(code, "why");
    });
    expect(await runOne(mapping, {}, parts)).toEqual({ kind: "failed", code: wanted, reason: "why" });
  });
});

describe("presets", () => {
  test("an operator's settings override a preset's, and the others stay", () => {
    const [mapping] = mappingsOf({
      presets: ["github"],
      presetSettings: { github: { match: { when: { at: "action" } }, deliver: false, secrets: "s" } },
    }).all;
    expect(mapping?.config).toMatchObject({
      match: { path: "github", when: { at: "action" } },
      name: "GitHub",
      deliver: false,
      channel: "last",
      auth: { scheme: "github", secrets: [{ value: "s" }] },
    });
  });

  test("settings of hooks.mail override the preset's, and presetSettings override both", () => {
    const hooks = {
      presets: ["mail" as const],
      mail: { model: "small", thinking: "low", allowUnsafeExternalContent: true },
      presetSettings: { mail: { thinking: "high" } },
    };
    expect(mappingsOf(hooks).all[0]?.config).toMatchObject({
      model: "small",
      thinking: "high",
      allowUnsafeExternalContent: true,
    });
  });

  test("a preset named twice exists once, and an own mapping keeps its id", () => {
    const hooks: HooksInput = { presets: ["github", "github"], mappings: [{ id: "github", match: { path: "x" } }] };
    expect(mappingsOf(hooks).all.map(({ id }) => id)).toEqual(["github", "preset-github"]);
  });

  test("an operator's template replaces the preset's summary", async () => {
    const hooks: HooksInput = {
      presets: ["github"],
      presetSettings: { github: { messageTemplate: "Own {{action}}" } },
    };
    const outcome = await runMapping(
      mappingsOf(hooks).all[0]!,
      makeRequest({ payload: { action: "x" } }),
      NO_TRANSFORM,
    );
    expect(plain((actionsOf(outcome)[0] as AgentAction).message)).toBe("Own x");
  });

  test("only a preset's mapping takes the delivery id from the sender's header", () => {
    const [mapping] = mappingsOf({ presets: ["github"] }).all;
    expect(deliveryIdOf(mapping!, makeRequest({ headers: { "x-github-delivery": "d-1" } }))).toBe("d-1");
    expect(deliveryIdOf(mapping!, makeRequest({}))).toBeUndefined();
    const [own] = mappingsOf({ mappings: [{}] }).all;
    expect(deliveryIdOf(own!, makeRequest({ headers: { "x-github-delivery": "d-1" } }))).toBeUndefined();
  });
});
