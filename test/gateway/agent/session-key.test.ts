import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { agentOf, hookSession, mainSessionKey } from "../../../src/gateway/agent/session-key.ts";
import { AppError } from "../../../src/base/errors.ts";
import { anyCharacter } from "../../characters.ts";

const session = { mainKey: "main" };
const keyOf = (requested: string | undefined, more: { agentId?: string; mainKey?: string } = {}): string =>
  hookSession({ requested, runId: "RUN-1", session: { mainKey: more.mainKey ?? "main" }, ...more }).key;

describe("a session key", () => {
  test("belongs to the run and ends with it if none was requested", () => {
    expect(hookSession({ requested: undefined, runId: "RUN-1", session })).toEqual({
      key: "agent:main:hook:run-1",
      isEphemeral: true,
    });
  });

  test.each([
    ["hook:order-1", "agent:main:hook:order-1"],
    ["order-1", "agent:main:hook:order-1"],
    [" Hook:Order-1 ", "agent:main:hook:order-1"],
    ["agent:main:hook:order-1", "agent:main:hook:order-1"],
    ["agent:main:order-1", "agent:main:hook:order-1"],
    ["hook:main", "agent:main:hook:main"],
    ["hook:mail:<a@b>", "agent:main:hook:mail:<a@b>"],
  ])("%p becomes %p", (requested, key) => {
    expect(keyOf(requested)).toBe(key);
    expect(hookSession({ requested, runId: "r", session }).isEphemeral).toBe(false);
  });

  test.each([
    ["main", "the main session's"],
    ["MAIN", "the main session's"],
    ["agent:main:main", "the main session's"],
    ["agent:ops:main", "another agent's"],
    ["agent:ops:hook:a", "another agent's"],
    ["agent:", "another agent's"],
    ["", "expected some text"],
    ["  ", "expected some text"],
    ["hook:", "after the prefix"],
    ["agent:main:", "after the prefix"],
    ["a\nb", "control characters"],
    ["a\u202eb", "control characters"],
    ["x".repeat(257), "at most 256 characters, got 257"],
  ])("%p is refused", (requested, why) => {
    expect(() => keyOf(requested)).toThrow(why);
  });

  test("cannot reach the main session under a configured main key either", () => {
    expect(() => keyOf("Home", { mainKey: "home" })).toThrow("reserved");
    expect(() => keyOf("main", { mainKey: "home" })).toThrow("reserved");
    expect(() => keyOf("home", { mainKey: "hook:home" })).toThrow("reserved");
  });

  test("may name another agent if the mapping chose that agent", () => {
    expect(keyOf("agent:ops:a", { agentId: "ops" })).toBe("agent:ops:hook:a");
    expect(agentOf(keyOf("a", { agentId: "ops" }))).toBe("ops");
    expect(mainSessionKey({ mainKey: "Main" }, "ops")).toBe("agent:ops:main");
  });

  test("is below its agent's hooks or refused, whatever the request has", () => {
    const part = fc.constantFrom("agent:", "main", "hook:", ":", "ops", "MAIN", " ", "ﬁ", "İ", "\u212a");
    const key = fc.oneof(
      fc.string(),
      fc.array(part).map((parts) => parts.join("")),
      fc.string({ unit: anyCharacter }),
    );
    fc.assert(
      fc.property(key, (requested) => {
        try {
          const found = keyOf(requested);
          expect(found).toStartWith("agent:main:hook:");
          expect(found).not.toBe(mainSessionKey(session));
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          expect(error.code).toBe("bad_request");
        }
      }),
      { numRuns: 2000 },
    );
  });
});
