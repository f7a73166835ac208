import { describe, expect, test } from "bun:test";
import { type Condition, mappingSchema } from "../../../../src/gateway/hooks/config.ts";
import { makeQuestion } from "../../../../src/gateway/hooks/mapping/conditions.ts";
import { makeView } from "./view.ts";

const view = makeView({
  headers: { "x-event": "push", "x-count": "5" },
  query: { env: "prod" },
  payload: {
    action: "opened",
    number: 5,
    draft: false,
    none: null,
    id: "9007199254740993",
    user: { login: "ada" },
    tags: ["a"],
  },
});

describe("a condition on one value", () => {
  test.each<[Condition, boolean]>([
    [{ at: "action", equals: "opened" }, true],
    [{ at: "action", equals: "closed" }, false],
    [{ at: "number", equals: 5 }, true],
    [{ at: "number", equals: "5" }, false],
    [{ at: "id", equals: "9007199254740993" }, true],
    [{ at: "id", equals: 9_007_199_254_740_992 }, true],
    [{ at: "id", equals: 9_007_199_254_740_996 }, false],
    [{ at: "draft", equals: false }, true],
    [{ at: "none", equals: null }, true],
    [{ at: "nope", equals: null }, false],
    [{ at: "headers.X-Event", equals: "push" }, true],
    [{ at: "headers.x-count", equals: 5 }, true],
    [{ at: "query.env", in: ["test", "prod"] }, true],
    [{ at: "action", in: ["closed", "merged"] }, false],
    [{ at: "action", in: [] }, false],
    [{ at: "user.login", matches: "^a.a$" }, true],
    [{ at: "user.login", matches: "^b" }, false],
    [{ at: "number", matches: "^[0-9]+$" }, true],
    [{ at: "user", matches: "ada" }, false],
    [{ at: "nope", matches: ".*" }, false],
    [{ at: "user.login", exists: true }, true],
    [{ at: "user.nope", exists: false }, true],
    [{ at: "none", exists: true }, false],
    [{ at: "user.login" }, true],
    [{ at: "toString", exists: true }, false],
    [{ at: "tags[0]", equals: "a" }, true],
    [{ at: "action", matches: "^o", equals: "closed" }, false],
  ])("%j is %p", (condition, wanted) => expect(makeQuestion(condition)(view)).toBe(wanted));
});

describe("all, any and not", () => {
  const yes = { at: "action" };
  const no = { at: "nope" };
  test.each<[Condition, boolean]>([
    [{ all: [yes, yes] }, true],
    [{ all: [yes, no] }, false],
    [{ all: [] }, true],
    [{ any: [no, yes] }, true],
    [{ any: [no, no] }, false],
    [{ any: [] }, false],
    [{ not: no }, true],
    [{ not: { any: [no, { all: [yes, { not: no }] }] } }, false],
  ])("%j is %p", (condition, wanted) => expect(makeQuestion(condition)(view)).toBe(wanted));
});

test("a condition cannot read a credential", () => {
  const asked = makeView({ headers: { authorization: "Bearer x" } });
  expect(makeQuestion({ at: "headers.authorization", matches: "." })(asked)).toBe(false);
});

describe("the configuration refuses a condition with", () => {
  let deep: Condition = { at: "a" };
  for (let i = 0; i < 20; i++) deep = { not: deep };
  test.each<[string, Condition, string]>([
    ["an invalid pattern", { at: "a", matches: "(" }, "pattern '(': error parsing regexp: missing closing )"],
    ["a back-reference", { at: "a", matches: "(a)\\1" }, "invalid escape sequence"],
    ["a lookahead", { at: "a", matches: "(?=a)" }, "invalid or unsupported Perl syntax"],
    ["a pattern whose program is too large", { at: "a", matches: "[a-z]{999}".repeat(9) }, "its program is too large"],
    ["an empty path", { at: " " }, "path: expected a key, got an empty text"],
    ["too deep nesting", deep, "nest deeper than 16"],
  ])("%s", (_, condition, problem) => expect(() => makeQuestion(condition)).toThrow(problem));

  test("a pattern of more than 512 characters", () =>
    expect(mappingSchema.safeParse({ match: { when: { at: "a", matches: "a".repeat(513) } } }).success).toBe(false));
});

test("a pattern that would backtrack exponentially is matched in linear time", () => {
  const asks = makeQuestion({ at: "payload", matches: "^(([a-z])+.)+[A-Z]([a-z])+$" });
  expect(asks(makeView({ payload: "a".repeat(65_536) }))).toBe(false);
});

describe("a text that is too long for a pattern", () => {
  const padded = makeView({ payload: { x: `${"a".repeat(65_536)}!`, y: "b" } });
  const matches = { at: "payload.x", matches: "^a" };
  test.each<Condition>([matches, { not: matches }, { any: [matches, { at: "payload.y" }] }, { all: [matches] }])(
    "fails the condition %j",
    (condition) => {
      expect(() => makeQuestion(condition)(padded)).toThrow("expected a text of at most 65536 characters, got 65537");
    },
  );

  test("does not fail a condition that does not match it", () => {
    expect(makeQuestion({ at: "payload.x", exists: true })(padded)).toBe(true);
    expect(makeQuestion({ at: "payload.y", matches: "b" })(padded)).toBe(true);
  });
});
