/**
 * Models that compute the same as the embedded one and share no memory with it: the same weights under another name.
 */
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { digestOf } from "../../src/library/store/digest.ts";
import type { Hearth } from "./hearth.ts";

const EMBEDDED = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");

/** The bytes of the embedded model with one character of its `general.name` replaced. */
export function variantBytes(char: string): Uint8Array {
  const bytes = readFileSync(EMBEDDED);
  const key = "general.name";
  const value = bytes.indexOf(key) + key.length + 4 + 8; // past the type and the length of the text
  bytes.write(char, value, "latin1");
  return bytes;
}

/** Uploads one model for each name; the last letter of the name makes its file differ. */
export async function createVariants(hearth: Hearth, names: readonly string[]): Promise<void> {
  for (const model of names) {
    const body = variantBytes(model.at(-1)!);
    const digest = digestOf(body);
    expect((await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body })).status).toBe(201);
    const made = await hearth.post("/api/create", { model, files: { "model.gguf": digest }, stream: false });
    expect(await made.json()).toEqual({ status: "success" });
  }
}
