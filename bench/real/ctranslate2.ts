/** Reads a model file of CTranslate2, revision 6: names, shapes and values in 16 bits. */
import { halfToFloat } from "../../src/engine/formats/half.ts";

const HALF = 4;

/** Weights by name, as float32. Throws for another version. */
export function readCtranslate2(bytes: Uint8Array): ReadonlyMap<string, () => Float32Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const uint = (size: 1 | 2 | 4): number => {
    const value = size === 1 ? view.getUint8(at) : size === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
    at += size;
    return value;
  };
  const text = (): string => {
    const length = uint(2);
    at += length;
    return new TextDecoder().decode(bytes.subarray(at - length, at - 1)); // ends with a zero
  };
  const [version, spec] = [uint(4), text()];
  if (version !== 6) throw new Error(`${spec}: expected version 6, got ${version}`);
  uint(4); // the revision of the model's kind
  const found = new Map<string, () => Float32Array>();
  const count = uint(4);
  for (let i = 0; i < count; i++) {
    const name = text();
    const rank = uint(1);
    for (let axis = 0; axis < rank; axis++) uint(4);
    const [type, length] = [uint(1), uint(4)];
    const from = at;
    at += length;
    if (type === HALF)
      found.set(name, () =>
        Float32Array.from({ length: length / 2 }, (_, k) => halfToFloat(view.getUint16(from + 2 * k, true))),
      );
  }
  return found;
}
