/** Bytes in a request: base64 of the standard alphabet, with or without padding and line breaks. */
import { AppError } from "../../base/index.ts";

/** Throws `bad_request`. @param path where the text stands in the request */
export function decodeBase64(text: string, path: string): Uint8Array {
  try {
    return Uint8Array.fromBase64(text);
  } catch (error) {
    throw new AppError("bad_request", `${path}: expected base64, got text that is not`, { cause: error });
  }
}
