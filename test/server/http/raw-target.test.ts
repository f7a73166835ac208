import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodedPath, isResolved, isSeen, SEEN_ROUTES } from "../../../src/server/http/raw-target.ts";

test.each([
  [["hooks", "..\\api", "tags"], "/api/tags"],
  [["hooks", "..", "api"], "/api"],
  [["a\\b"], "/a/b"],
  [["a", "."], "/a/"],
  [undefined, "/api/tags"],
  [undefined, "/api/tags/"],
  [undefined, "/"],
])("%j with the path %s was resolved", (segments, path) => {
  expect(isResolved(segments, path)).toBe(true);
});

test.each([
  [[], "/"],
  [["api", "tags"], "/api/tags"],
  [["api", "tags"], "/api/tags/"],
  [["v1", "models", "a/b"], "/v1/models/a%2Fb"],
  [["...", "..."], "/.../..."],
  [undefined, "/a//b"],
  [undefined, `/${"a/".repeat(20)}`],
])("%j with the path %s was not resolved", (segments, path) => {
  expect(isResolved(segments, path)).toBe(false);
});

test.each([
  ["/v1/models/..%2f..%2fhooks%2Fx", "/hooks/x"],
  ["/hooks%5cx", "/hooks/x"],
  ["/x/%252e%252e%252fhooks", "/hooks"],
  ["//hooks//x/", "/hooks/x"],
  ["/api/tags", "/api/tags"],
])("%s decodes to %s", (path, decoded) => {
  expect(decodedPath(path)).toBe(decoded);
});

test("for any target, the server knows if its path was resolved", async () => {
  const answer = (segments: readonly string[] | undefined, url: string): Response =>
    Response.json({ isResolved: isResolved(segments, new URL(url).pathname), path: new URL(url).pathname });
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    routes: Object.fromEntries(
      SEEN_ROUTES.map((route) => [
        route,
        (request: Bun.BunRequest) => answer(Object.values(request.params), request.url),
      ]),
    ),
    fetch: (request) => answer(undefined, request.url),
  });
  const piece = fc.constantFrom("/", "/", "\\", ".", "..", "%2e", "%2E%2e", "hooks", "api", "%5c", "%2f", "x");
  const { rawRequest } = await import("../../e2e/raw-request.ts");
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
      const target = `/${pieces.join("")}`;
      const { body } = await rawRequest(server.port!, { target });
      const resolved = JSON.parse(body) as { isResolved: boolean; path: string };
      if (resolved.path !== target && isSeen(resolved.path))
        expect([target, resolved.isResolved]).toEqual([target, true]);
    }),
    { numRuns: 300 },
  );
});
