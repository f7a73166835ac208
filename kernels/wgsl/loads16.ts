/** Unpackers of runs of 16 weights, for products of few rows. */
import fourRuns from "./loads16/four_runs.wgsl" with { type: "text" };
import levels from "./loads16/levels.wgsl" with { type: "text" };
import neighbours from "./loads16/neighbours.wgsl" with { type: "text" };
import loads16_iq4_nl from "./loads16/iq4_nl.wgsl" with { type: "text" };
import loads16_iq4_xs from "./loads16/iq4_xs.wgsl" with { type: "text" };
import loads16_mxfp4 from "./loads16/mxfp4.wgsl" with { type: "text" };
import loads16_q2_K from "./loads16/q2_K.wgsl" with { type: "text" };
import loads16_q3_K from "./loads16/q3_K.wgsl" with { type: "text" };
import loads16_q4_0 from "./loads16/q4_0.wgsl" with { type: "text" };
import loads16_q4_1 from "./loads16/q4_1.wgsl" with { type: "text" };
import loads16_q4_K from "./loads16/q4_K.wgsl" with { type: "text" };
import loads16_q5_0 from "./loads16/q5_0.wgsl" with { type: "text" };
import loads16_q5_1 from "./loads16/q5_1.wgsl" with { type: "text" };
import loads16_q5_K from "./loads16/q5_K.wgsl" with { type: "text" };
import loads16_q6_K from "./loads16/q6_K.wgsl" with { type: "text" };
import loads16_q8_0 from "./loads16/q8_0.wgsl" with { type: "text" };
import loads16_tq2_0 from "./loads16/tq2_0.wgsl" with { type: "text" };

/** A unit of 32 neighbouring weights, by `fn unpack32(block: u32, at: u32) -> Run`. */
const inUnits = (unpack: string): string => `${neighbours}\n${unpack}`;
const inLevels = (unpack: string): string => inUnits(`${levels}\n${unpack}`);
/** A unit of four runs. */
const inFourRuns = (unpack: string): string => `${fourRuns}\n${unpack}`;

/**
 * Unpackers of units of runs, for block types that have one: `fn unit_at(first_block: u32, unit: u32) -> Unit`. Their
 * weights are bytes, for products of floats or of bytes.
 */
export const LOADS16: Readonly<Record<string, string>> = {
  iq4_nl: inLevels(loads16_iq4_nl),
  iq4_xs: inLevels(loads16_iq4_xs),
  mxfp4: inLevels(loads16_mxfp4),
  q2_K: inFourRuns(loads16_q2_K),
  q3_K: inFourRuns(loads16_q3_K),
  q4_0: inUnits(loads16_q4_0),
  q4_1: inUnits(loads16_q4_1),
  q4_K: loads16_q4_K,
  q5_0: inUnits(loads16_q5_0),
  q5_1: inUnits(loads16_q5_1),
  q5_K: loads16_q5_K,
  q6_K: loads16_q6_K,
  q8_0: inUnits(loads16_q8_0),
  tq2_0: inFourRuns(loads16_tq2_0),
};
