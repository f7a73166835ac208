/**
 * A registry in memory that can misbehave: it redirects blobs to a storage host of its own, demands signed tokens,
 * ignores ranges, and gives any request an answer that a test chooses. It keeps a record of every request.
 */
import { createPublicKey, verify } from "node:crypto";
import { digestOf } from "../../../src/library/store/digest.ts";
import { MANIFEST_TYPE } from "../../../src/library/store/manifest.ts";

export interface Seen {
  readonly method: string;
  readonly at: "registry" | "storage";
  readonly path: string;
  readonly range: string | null;
  readonly authorization: string | null;
  readonly url: URL;
  readonly headers: Headers;
}

/** Replaces or changes the front's answer, or passes it on. */
type Interfere = (seen: Seen, answer: () => Promise<Response>) => Response | Promise<Response> | undefined;

export interface Front {
  /** `127.0.0.1:port` */
  readonly host: string;
  readonly storageHost: string;
  readonly blobs: Map<string, Uint8Array<ArrayBuffer>>;
  /** By `namespace/model:tag`. */
  readonly manifests: Map<string, Uint8Array<ArrayBuffer>>;
  readonly seen: Seen[];
  /** May be changed at any time. */
  readonly behaviour: {
    interfere: Interfere;
    redirectBlobs: boolean;
    redirectUploads: boolean;
    ignoreRanges: boolean;
    /** Public key, SSH wire format in base64, that gets tokens; undefined: no token is needed. */
    tokensFor: string | undefined;
    realm: string | undefined;
  };
  put(bytes: Uint8Array<ArrayBuffer>): { digest: string; size: number };
  /** Requests for blobs that were answered with content, with their ranges. */
  blobRequests(): string[];
  stop(): Promise<void>;
}

interface State extends Pick<Front, "blobs" | "manifests" | "behaviour"> {
  readonly uploads: Map<string, { chunks: (() => Uint8Array<ArrayBuffer>)[]; taken: number; turn: number }>;
  /** Data received by the storage host, by path. */
  readonly stored: Map<string, Uint8Array<ArrayBuffer>>;
  readonly tokens: Set<string>;
  storage: string;
}

export function startFront(): Front {
  const seen: Seen[] = [];
  const state: State = {
    blobs: new Map(),
    manifests: new Map(),
    uploads: new Map(),
    stored: new Map(),
    tokens: new Set(),
    storage: "",
    behaviour: {
      interfere: () => undefined,
      redirectBlobs: false,
      redirectUploads: false,
      ignoreRanges: false,
      tokensFor: undefined,
      realm: undefined,
    },
  };
  const serve = (at: Seen["at"], handle: (state: State, request: Request, url: URL) => Promise<Response>) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch(request) {
        const url = new URL(request.url);
        const { method, headers } = request;
        const [range, authorization] = [headers.get("range"), headers.get("authorization")];
        const record: Seen = { method, at, path: url.pathname, url, headers, range, authorization };
        seen.push(record);
        const answer = (): Promise<Response> => handle(state, request, url);
        return state.behaviour.interfere(record, answer) ?? answer();
      },
    });
  const storage = serve("storage", answerStorage);
  const registry = serve("registry", answerRegistry);
  state.storage = `127.0.0.1:${storage.port}`;
  return {
    ...state,
    seen,
    host: `127.0.0.1:${registry.port}`,
    storageHost: state.storage,
    put(bytes) {
      const digest = digestOf(bytes);
      state.blobs.set(digest, bytes);
      return { digest, size: bytes.length };
    },
    blobRequests: () => seen.filter(isContent).map(({ path, range }) => `${path.slice(-8)} ${range}`),
    stop: async () => void (await Promise.all([registry.stop(true), storage.stop(true)])),
  };
}

async function answerStorage(state: State, request: Request, url: URL): Promise<Response> {
  if (request.method !== "PUT") return content(state, request, url.pathname.slice(1));
  state.stored.set(url.pathname, new Uint8Array(await request.arrayBuffer()));
  return new Response(null);
}

async function answerRegistry(state: State, request: Request, url: URL): Promise<Response> {
  const { behaviour, tokens, blobs } = state;
  if (url.pathname === "/token") return giveToken(state, request, url);
  if (behaviour.tokensFor && !tokens.has(request.headers.get("authorization") ?? "")) {
    const realm = behaviour.realm ?? `http://${url.host}/token`;
    const challenge = `Bearer realm="${realm}",service="front",scope="repository:a/b:pull repository:a/b:push"`;
    return new Response(null, { status: 401, headers: { "www-authenticate": challenge } });
  }
  const [, repository = "", kind = "", rest = ""] = /^\/v2\/(.+?)\/(manifests|blobs)\/(.*)$/.exec(url.pathname) ?? [];
  if (kind === "manifests") return answerManifest(state, request, `${repository}:${rest}`);
  if (rest === "uploads/") return beginUpload(state, url);
  if (rest.startsWith("uploads/")) return takeUpload(state, request, url);
  if (behaviour.redirectBlobs && request.method === "GET" && blobs.has(rest)) {
    return new Response(null, { status: 307, headers: { location: `http://${state.storage}/${rest}` } });
  }
  return content(state, request, rest);
}

async function answerManifest({ manifests }: State, request: Request, key: string): Promise<Response> {
  if (request.method === "PUT") {
    manifests.set(key, new Uint8Array(await request.arrayBuffer()));
    return new Response(null, { status: 201 });
  }
  const found = manifests.get(key);
  if (!found) return refusal(404, "manifest unknown");
  if (request.headers.get("accept") !== MANIFEST_TYPE) return refusal(400, "not without Accept");
  return new Response(found, { headers: { "content-type": MANIFEST_TYPE } });
}

function content({ blobs, behaviour }: State, request: Request, digest: string): Response {
  const bytes = blobs.get(digest);
  if (!bytes) return new Response(null, { status: 404 });
  if (request.method === "HEAD") return new Response(null, { headers: { "content-length": String(bytes.length) } });
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
  if (!range || behaviour.ignoreRanges) return new Response(bytes);
  const [from, to] = [Number(range[1]), Math.min(Number(range[2]), bytes.length - 1)];
  if (from >= bytes.length) return new Response(null, { status: 416 });
  const headers = { "content-range": `bytes ${from}-${to}/${bytes.length}` };
  return new Response(bytes.subarray(from, to + 1), { status: 206, headers });
}

function beginUpload({ blobs, uploads }: State, url: URL): Response {
  const mount = url.searchParams.get("mount");
  if (mount && url.searchParams.get("from") === "library/base" && blobs.has(mount)) {
    return new Response(null, { status: 201 });
  }
  const id = crypto.randomUUID();
  uploads.set(id, { chunks: [], taken: 0, turn: 0 });
  return new Response(null, { status: 202, headers: { location: `${url.pathname}${id}?turn=0` } });
}

/** Like the distribution project's registry: every answer has a new location, and the old ones expire. */
async function takeUpload(state: State, request: Request, url: URL): Promise<Response> {
  const { uploads, stored, behaviour, blobs } = state;
  const id = url.pathname.slice(url.pathname.lastIndexOf("/") + 1);
  const upload = uploads.get(id);
  if (!upload || (request.method !== "GET" && url.searchParams.get("turn") !== String(upload.turn))) {
    return refusal(404, "upload unknown");
  }
  const location = (): string => `${url.pathname}?turn=${upload.turn}`;
  if (request.method === "GET") {
    const headers = { location: location(), range: `0-${Math.max(0, upload.taken - 1)}` };
    return new Response(null, { status: 204, headers });
  }
  if (request.method === "PATCH" && behaviour.redirectUploads) {
    const path = `/part/${id}/${request.headers.get("content-range")}`;
    upload.chunks.push(() => stored.get(path)!);
    upload.turn++;
    const headers = { location: `http://${state.storage}${path}`, "docker-upload-location": location() };
    return new Response(null, { status: 307, headers });
  }
  if (request.method === "PATCH") {
    if (!request.headers.get("content-range")?.startsWith(`${upload.taken}-`)) return refusal(416, "wrong offset");
    const bytes = new Uint8Array(await request.arrayBuffer());
    upload.chunks.push(() => bytes);
    upload.taken += bytes.length;
    upload.turn++;
    return new Response(null, { status: 202, headers: { location: location() } });
  }
  const whole = new Uint8Array(Buffer.concat(upload.chunks.map((chunk) => chunk())));
  const digest = digestOf(whole);
  if (digest !== url.searchParams.get("digest")) return refusal(400, "digest invalid");
  blobs.set(digest, whole);
  uploads.delete(id);
  return new Response(null, { status: 201 });
}

const isContent = ({ method, path }: Seen): boolean => method === "GET" && /sha256:/.test(path);

const refusal = (status: number, message: string): Response =>
  Response.json({ errors: [{ code: "REFUSED", message }] }, { status });

/** A token for the holder of the permitted key: checked like in a registry. */
function giveToken({ behaviour, tokens }: State, request: Request, url: URL): Response {
  const [key = "", signature = ""] = (request.headers.get("authorization") ?? "").split(":");
  const wire = Buffer.from(key, "base64");
  const publicKey = createPublicKey({
    key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), wire.subarray(-32)]),
    format: "der",
    type: "spki",
  });
  const emptyBody = Buffer.from(new Bun.CryptoHasher("sha256").update("").digest("hex")).toString("base64");
  const text = Buffer.from(`GET,${url.href},${emptyBody}`);
  const isSigned = verify(null, text, publicKey, Buffer.from(signature, "base64"));
  const isFresh = Math.abs(Number(url.searchParams.get("ts")) - Date.now() / 1000) < 60;
  const asksRight =
    url.searchParams.get("service") === "front" &&
    url.searchParams.getAll("scope").join() === "repository:a/b:pull,repository:a/b:push" &&
    (url.searchParams.get("nonce") ?? "").length === 22;
  if (key !== behaviour.tokensFor || !isSigned || !isFresh || !asksRight) return refusal(403, "denied");
  const token = crypto.randomUUID();
  tokens.add(`Bearer ${token}`);
  return Response.json({ token });
}
