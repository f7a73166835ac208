/** Requests to a real server, with models installed on it. */
import { expect } from "bun:test";
import { digestOf } from "../../src/library/store/digest.ts";
import type { Hearth } from "../e2e/hearth.ts";

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** undefined if the body is not JSON */
  readonly body: any;
}

/** @param hearth returns the server, which runs once the tests do */
export function clientOf(hearth: () => Hearth) {
  const call = async (method: string, path: string, body?: object | Uint8Array): Promise<Reply> => {
    const content = body instanceof Uint8Array ? body : JSON.stringify(body);
    const response = await fetch(hearth().url + path, { method, ...(content === undefined ? {} : { body: content }) });
    const text = await response.text();
    const isJson = text !== "" && response.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined };
  };
  const post = (path: string, body: object): Promise<Reply> => call("POST", path, body);
  return {
    call,
    post,
    /** @returns the digest */
    async upload(bytes: Uint8Array): Promise<string> {
      const digest = digestOf(bytes);
      expect((await call("POST", `/api/blobs/${digest}`, bytes)).status).toBeOneOf([200, 201]);
      return digest;
    },
    async create(body: object): Promise<void> {
      const { status, body: reply } = await post("/api/create", { stream: false, ...body });
      expect([status, reply]).toEqual([200, { status: "success" }]);
    },
  };
}
