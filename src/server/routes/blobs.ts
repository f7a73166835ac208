/**
 * `HEAD` and `POST /api/blobs/:digest`: whether a file is there, and putting it there. What is uploaded goes to the
 * disk as it comes in; the answer is the path to name in a Modelfile.
 */
import { resolve } from "node:path";
import { Elysia } from "elysia";
import { AppError } from "../../base/errors.ts";
import { quoteGo } from "../../base/quote.ts";
import { blobPath, findBlob, receiveBlob, touchBlob } from "../../store/blobs.ts";
import { parseDigest } from "../../store/digest.ts";
import { received } from "../body.ts";
import type { RouteDeps } from "../deps.ts";
import type { Exchange, Reply } from "../exchange.ts";
import { describe } from "../schema/describe.ts";

export const blobRoutes = (deps: RouteDeps) =>
  new Elysia()
    .head("/api/blobs/:digest", ({ request, params }) => deps.answer(request, () => findOne(deps, params.digest)), {
      detail: describe({ api: "native", summary: "Whether a file is there", reply: "empty" }),
    })
    .post(
      "/api/blobs/:digest",
      ({ request, params }) => deps.answer(request, (exchange) => upload(deps, { text: params.digest, exchange })),
      {
        parse: "none",
        detail: describe({ api: "native", summary: "Upload a file", body: "bytes", reply: "text", status: 201 }),
      },
    );

/** Whoever asks is about to use it. */
async function findOne({ store }: RouteDeps, text: string): Promise<Reply> {
  const digest = parseDigest(text);
  if ((await findBlob(store.root, digest)) === undefined) {
    throw new AppError("not_found", `blob ${quoteGo(digest)} not found`);
  }
  await touchBlob(store.root, digest);
  return { kind: "text", body: "" };
}

/** 200 for what is there already, without reading the body; 201 for what is new. */
async function upload(
  { store, library }: RouteDeps,
  { text, exchange }: { text: string; exchange: Exchange },
): Promise<Reply> {
  const expected = parseDigest(text);
  const body = resolve(blobPath(store.root, expected));
  if ((await findBlob(store.root, expected)) !== undefined) {
    await touchBlob(store.root, expected);
    return { kind: "text", body };
  }
  library.claim();
  const { size } = await receiveBlob(store.root, { chunks: released(exchange.request), expected });
  exchange.note({ bytes: size });
  return { kind: "text", body, status: 201 };
}

/**
 * The body, each chunk's memory given back as soon as the next is asked for. The collector would come to it late: an
 * upload of 1 GB costs 25 MB this way, 75 MB without.
 */
async function* released(request: Request): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of received(request)) {
    yield chunk;
    if (chunk.buffer instanceof ArrayBuffer) chunk.buffer.transfer(0);
  }
}
