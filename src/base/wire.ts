/**
 * Messages between processes. JSON takes half the time of structured clones on either side; values that JSON cannot
 * hold, mostly bytes, travel as an embedded clone.
 */
import { deserialize, serialize } from "bun:jsc";

interface Cloned {
  /** Base64. */
  readonly clone: string;
}

/** The form of a message for a channel with `json` serialization. */
export const toWire = <T extends object>(message: T): T | Cloned =>
  isJson(message) ? message : { clone: serialize(message, { binaryType: "nodebuffer" }).toString("base64") };

/** The received message. Undefined properties may be missing. */
export const fromWire = <T extends object>(received: T | Cloned): T =>
  "clone" in received ? (deserialize(Buffer.from(received.clone, "base64")) as T) : received; // `toWire` made it

/** Returns whether a value survives JSON unchanged. */
function isJson(value: unknown): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      if (value === null) return true;
      if (Array.isArray(value)) return value.every(isJson);
      return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isField);
    default:
      return false;
  }
}

const isField = (value: unknown): boolean => value === undefined || isJson(value);
