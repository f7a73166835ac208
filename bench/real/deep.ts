/**
 * A context filled to the model's limit, far beyond the sliding windows: text there must be as likely as for llama.cpp.
 */
import { tidy, type Bench } from "./bench.ts";
import { lossesOf, openSide } from "./side.ts";

const FOLDER = "/usr/share/common-licenses";
/** Texts that Debian ships, in this order. */
const TEXTS = ["GPL-3", "GPL-2", "LGPL-2.1", "GFDL-1.3", "MPL-2.0", "Apache-2.0", "Artistic", "GFDL-1.2"];
/** Tokens that are scored, at the end of each depth. */
const SCORED = 512;

/** @param depths tokens of the context, at most 32,768 */
export async function compareDeep(
  { file, encode, peer, tell, threads }: Bench,
  depths: readonly number[],
): Promise<void> {
  const texts = await Promise.all(TEXTS.map((name) => Bun.file(`${FOLDER}/${name}`).text()));
  const all = encode(texts.join("\n"));
  for (const depth of depths) {
    if (all.length < depth) throw new Error(`${FOLDER} has ${all.length} tokens, expected ${depth}`);
    const ids = all.slice(0, depth);
    const first = depth - SCORED - 1;
    const side = await openSide(file, "simd", { ctxLen: depth, threads });
    const ours = perplexity(await lossesOf(side, ids, first));
    side.close();
    const [losses] = await peer.losses(file, [ids], { ctxLen: depth, kv: "f16" }, first);
    tell({
      what: `licences, the last ${SCORED} of ${depth} tokens`,
      measure: "perplexity",
      unit: "",
      ours: [ours],
      peer: { name: "llama.cpp", rounds: [perplexity(losses!)] },
      goal: { of: "ratio", atMost: 1.01 },
    });
  }
}

function perplexity(losses: Float32Array): number {
  return tidy(Math.exp(losses.reduce((sum, loss) => sum + loss, 0) / losses.length));
}
