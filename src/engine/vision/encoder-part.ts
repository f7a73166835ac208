/** A part of an encoder of images or recordings, on a backend. */
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import type { EncoderModel } from "./clip.ts";
import type { Part } from "./projector.ts";

export interface EncoderOptions extends Pick<LoadOptions, "threads" | "simdLevel" | "signal"> {
  readonly backend: Backend;
  /** Awaited regularly during encoding: other work may run meanwhile. */
  readonly pause?: () => Promise<void>;
  /** The program of the model that reads the rows; undefined: not checked, for diagnostics. */
  readonly text: Program | undefined;
}

/** Loads a part for up to `rowsMax` rows at once. Activations stay float32, as in other encoders. */
export function loadPart(
  model: Pick<EncoderModel, "kind" | "dim" | "nLayers" | "weights">,
  { steps, result }: Part,
  { rowsMax, backend, threads, simdLevel, signal }: EncoderOptions & { readonly rowsMax: number },
): Promise<Session> {
  const program: Program = {
    shape: { arch: model.kind, dim: model.dim, nLayers: model.nLayers, vocabSize: 0 },
    steps,
    logits: undefined,
    states: result,
    weights: model.weights,
  };
  const options = { ctxLen: rowsMax, slots: 1, precise: true, threads, simdLevel, cacheDir: undefined, signal };
  return backend.load(program, options);
}
