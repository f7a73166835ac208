/**
 * Messages on a channel between processes. As JSON they take half the time of structured clones, on either side; what
 * JSON does not hold, bytes above all, goes as a clone inside of it.
 */
import { deserialize, serialize } from "bun:jsc";

interface Cloned {
  /** Base64. */
  readonly clone: string;
}

/** What to send for a message over a channel whose serialization is `json`. */
export const toWire = <T extends object>(message: T): T | Cloned =>
  isJson(message) ? message : { clone: serialize(message, { binaryType: "nodebuffer" }).toString("base64") };

/** The message that was sent. An undefined property may be absent instead. */
export const fromWire = <T extends object>(received: T | Cloned): T =>
  "clone" in received ? (deserialize(Buffer.from(received.clone, "base64")) as T) : received; // as toWire made it

/** Whether a value read back from its JSON is the same. */
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
