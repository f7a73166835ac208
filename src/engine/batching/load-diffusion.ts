/**
 * The session of a diffusion model, in two parts: one computes the states of all rows, the other the logits of some of
 * them. Logits of all rows would take more memory than the rest of a pass.
 */
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import { headOf } from "../program/head.ts";
import { statesEnd } from "../program/states.ts";

/** Rows whose logits are computed at once. */
export const HEAD_ROWS = 32;

/** Default context: a pass computes all of its rows, however short the answer is. */
export const DIFFUSION_CTX_LEN = 4096;

/** The part of a diffusion model that computes states; other programs unchanged. */
export const bodyOf = (program: Program): Program =>
  program.diffusion ? { ...program, steps: program.steps.slice(0, statesEnd(program)), logits: undefined } : program;

/** Loads the part that computes logits; undefined for other models. */
export async function loadHead(
  program: Program,
  { backend, body, ...options }: Omit<LoadOptions, "ctxLen"> & { readonly backend: Backend; readonly body: Session },
): Promise<Session | undefined> {
  if (!program.diffusion) return undefined;
  const sizes = { ctxLen: HEAD_ROWS, slots: 1, onProgress: () => {} };
  try {
    return await backend.load(headOf(program), { ...options, ...sizes, beside: body.held });
  } catch (error) {
    body.close();
    throw error;
  }
}
