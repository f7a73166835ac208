/** WebLLM's access to the files of a model: by digest, from this server, and verified. */
import { expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { makeModelFetch, type ModelFile } from "../../../src/page/engine/webllm/fetch.ts";
import { digestOf } from "../../../src/library/store/digest.ts";

const BASE = "http://localhost/mlc/abc/resolve/main/";
const SHARD = new Uint8Array(1000).fill(7);
const LIST = new TextEncoder().encode('{"records":[]}');
const fileOf = (name: string, bytes: Uint8Array): ModelFile => ({ name, digest: digestOf(bytes), size: bytes.length });
const FILES = [fileOf("params_shard_0.bin", SHARD), fileOf("ndarray-cache.json", LIST)];

interface Asked {
  readonly url: string;
  readonly key: string | null;
  readonly cache: string;
}

/** A server with the given answer, which records its requests. */
function serving(answer: (url: string) => Response) {
  const asked: Asked[] = [];
  const get = makeModelFetch({
    base: BASE,
    files: FILES,
    headers: { authorization: "Bearer key" },
    fetch: async (url, { headers, cache = "" }) => {
      asked.push({ url, key: new Headers(headers).get("authorization"), cache });
      return answer(url);
    },
  });
  const failure = async (url: string): Promise<string> =>
    get(url).then(
      () => "none",
      (error: unknown) => (error instanceof AppError ? `${error.code}: ${error.message}` : String(error)),
    );
  return { get, asked, failure };
}

const sound = (url: string): Response => new Response(url.endsWith(digestOf(SHARD)) ? SHARD.slice() : LIST.slice());

test("a file is fetched from its digest's address, with the page's credentials", async () => {
  const { get, asked } = serving(sound);
  expect(await (await get(`${BASE}params_shard_0.bin`)).bytes()).toEqual(SHARD);
  expect(await (await get(new Request(`${BASE}tensor-cache.json`))).json()).toEqual({ records: [] }); // its former name
  expect(asked).toEqual([
    { url: `/api/blobs/${digestOf(SHARD)}`, key: "Bearer key", cache: "default" },
    { url: `/api/blobs/${digestOf(LIST)}`, key: "Bearer key", cache: "default" },
  ]);
});

test("bytes with another digest are refused, whatever their number", async () => {
  const changed = SHARD.slice();
  changed[999] = 8;
  const expected = `bad_file: 'params_shard_0.bin': expected 1000 bytes with the digest ${digestOf(SHARD)}`;
  const url = `${BASE}params_shard_0.bin`;
  expect(await serving(() => new Response(changed)).failure(url)).toBe(
    `${expected}, got 1000 with ${digestOf(changed)}`,
  );
  const short = SHARD.slice(1);
  expect(await serving(() => new Response(short)).failure(url)).toBe(`${expected}, got 999 with ${digestOf(short)}`);
  const refused = serving(() => new Response("no", { status: 401 }));
  expect(await refused.failure(url)).toBe("upstream: 'params_shard_0.bin': the server answered 401");
});

test("the browser's cached copy of a changed file is ignored", async () => {
  const answers = [new Uint8Array(1000), SHARD.slice()];
  const { get, asked } = serving(() => new Response(answers.shift()!));
  expect(await (await get(`${BASE}params_shard_0.bin`)).bytes()).toEqual(SHARD);
  expect(asked.map(({ cache }) => cache)).toEqual(["default", "reload"]);
});

test.each(["https://huggingface.co/mlc-ai/x", "http://localhost/api/tags", `${BASE}../../../../api/tags`])(
  "%s is not fetched",
  async (url) => {
    const { asked, failure } = serving(sound);
    expect(await failure(url)).toStartWith("forbidden: WebLLM asked for ");
    expect(asked).toEqual([]);
  },
);

test("a file that the model lacks is not found, without a request", async () => {
  const { get, asked } = serving(sound);
  expect((await get(`${BASE}constructor`)).status).toBe(404);
  expect((await get(`${BASE}params_shard_1.bin`)).status).toBe(404);
  expect(asked).toEqual([]);
});
