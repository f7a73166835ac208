/** Errors do not reveal the paths of the store and the home to clients. */
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { manifestPath } from "../../../src/library/store/store.ts";
import { putModel } from "../../library/fixture.ts";
import { makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const MESSAGES = [{ role: "user", content: "x" }];
const REQUESTS = [
  ["/api/generate", { prompt: "x" }],
  ["/api/chat", { messages: MESSAGES }],
  ["/api/chat", { messages: MESSAGES, stream: false }],
  ["/api/embed", { input: "x" }],
  ["/api/show", {}],
  ["/v1/chat/completions", { messages: MESSAGES }],
  ["/v1/messages", { messages: MESSAGES, max_tokens: 1 }],
  ["/v1/responses", { input: "x" }],
] as const;

test.each(REQUESTS)(
  "%s %j of a damaged manifest: the error has its path inside the store, and the log has the whole path",
  async (path, body) => {
    await putModel(harness.root, "bad", { texts: [] });
    await writeFile(manifestPath(harness.root, parseName("bad")), "{");
    const response = await harness.post(path, { model: "bad", ...body });
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).toContain('"models/manifests/registry.ollama.ai/library/bad/latest: not JSON"');
    expect(text).not.toContain(dirname(harness.root));
    expect(harness.logs.at(-1)?.["error"]).toBe(`${manifestPath(harness.root, parseName("bad"))}: not JSON`);
  },
);

describe("an error in a stream", () => {
  test.each([
    ["/api/chat", { messages: MESSAGES }],
    ["/v1/chat/completions", { messages: MESSAGES, stream: true }],
    ["/v1/messages", { messages: MESSAGES, max_tokens: 1, stream: true }],
    ["/v1/responses", { input: "x", stream: true }],
  ] as const)("%s: names no folder outside of the store and the home", async (path, body) => {
    const [blob, cache] = [`${harness.root}/blobs/sha256-1`, `${dirname(harness.root)}/cache/a`];
    harness.runtime.script = async function* () {
      yield { kind: "text", text: "He" };
      throw new AppError("bad_file", `${blob}: damaged, see '${cache}'`);
    };
    const text = await (await harness.post(path, { model: "m", ...body })).text();
    expect(text).toContain("models/blobs/sha256-1: damaged, see 'home/cache/a'");
    expect(text).not.toContain(dirname(harness.root));
  });
});
