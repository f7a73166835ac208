/**
 * The samplers between the model's logits and the draw, in their order. They work on all logits until one of them
 * selects candidates, and then on these; samplers that are off have no stage.
 */
import {
  argmax,
  heat,
  resort,
  selectAbove,
  selectAll,
  selectNucleus,
  selectTop,
  truncate,
  type Candidates,
  type Scratch,
} from "./candidates.ts";
import type { Dry } from "./dry.ts";
import type { SamplingOptions } from "./options.ts";
import type { Penalties } from "./penalties.ts";
import { DEFAULT_ORDER, type SamplerName } from "./sampler-order.ts";
import { dynamicTemperature, minP, sigmaCutoff, tailFree, topP, typical, xtc } from "./truncation.ts";

export interface Draw {
  /** All logits; empty if a device selected the candidates. */
  logits: Float32Array;
  readonly candidates: Candidates;
  /** True once the candidates are selected; `logits` is unused from then on. */
  isSelected: boolean;
  /** Number of remaining tokens, masked ones included. */
  count: number;
}

type Stage = (draw: Draw) => void;

interface ChainParts {
  readonly options: SamplingOptions;
  readonly penalties: Penalties | undefined;
  readonly dry: Dry | undefined;
  readonly scratch: Scratch;
  /** A random number in [0, 1). */
  readonly random: () => number;
}

export interface Chain {
  /** Runs all stages; afterwards the draw has its candidates. */
  run(draw: Draw): void;
  /** Runs the stages after top-k of the default order. */
  runAfterTop(draw: Draw): void;
}

export function makeStages(parts: ChainParts): Chain {
  const { options, scratch } = parts;
  const order = options.samplers ?? DEFAULT_ORDER;
  const active = order.filter((name) => isOn(name, parts));
  const stages = active.map((name, i) => stageOf(name, parts, i === active.length - 1));
  const after = stages.slice(active.indexOf("top_k") + 1);
  return {
    run(draw) {
      for (const stage of stages) stage(draw);
      if (!draw.isSelected) selectAll(draw.candidates, draw.logits);
    },
    runAfterTop(draw) {
      for (const stage of after) stage(draw);
    },
  };

  /** @param isLast true if the draw follows: then candidates need no order, and their logits are unused */
  function stageOf(name: SamplerName, { penalties, dry }: ChainParts, isLast: boolean): Stage {
    switch (name) {
      case "penalties":
        return lowering(penalties!, scratch); // `isOn`
      case "dry":
        return lowering(dry!, scratch); // `isOn`
      case "temperature":
        return heating(options, { scratch, isLast });
      case "top_n_sigma":
        return topNSigma(options.top_n_sigma);
      default:
        return truncation(name, parts);
    }
  }
}

/** Returns whether XTC may drop the likeliest tokens. */
const dropsTop = ({ xtc_probability: probability, xtc_threshold: threshold }: SamplingOptions): boolean =>
  probability > 0 && threshold <= 0.5;

/** Returns whether an answer always has the likeliest token, after penalties. */
export const isGreedy = (options: SamplingOptions): boolean =>
  options.temperature <= 0 &&
  options.samplers === undefined &&
  options.typical_p >= 1 &&
  options.dynatemp_range <= 0 &&
  !dropsTop(options);

function isOn(name: SamplerName, { options, penalties, dry }: ChainParts): boolean {
  switch (name) {
    case "penalties":
      return penalties !== undefined;
    case "dry":
      return dry !== undefined;
    case "top_n_sigma":
      return options.top_n_sigma > 0;
    case "top_k":
      return options.top_k > 0;
    case "tfs_z":
      return options.tfs_z < 1;
    case "typ_p":
      return options.typical_p < 1;
    case "top_p":
      return options.top_p < 1;
    case "min_p":
      return options.min_p > 0;
    case "xtc":
      return dropsTop(options);
    case "temperature":
      return options.temperature !== 1 || options.dynatemp_range > 0;
    default:
      return name satisfies never;
  }
}

function lowering(penalty: Pick<Penalties | Dry, "apply" | "applyTo">, scratch: Scratch): Stage {
  return (draw) => {
    const { candidates: c, logits, isSelected } = draw;
    if (!isSelected) return penalty.apply(logits);
    penalty.applyTo(c.ids, c.logits, c.length);
    resort(c, scratch);
  };
}

function topNSigma(n: number): Stage {
  return ({ logits, candidates: c, isSelected }) => {
    if (!isSelected) {
      const least = sigmaCutoff(logits, n);
      for (let i = 0; i < logits.length; i++) if (logits[i]! < least) logits[i] = -Infinity;
      return;
    }
    const least = sigmaCutoff(c.logits, n, c.length);
    let kept = c.length;
    while (c.logits[kept - 1]! < least) kept--;
    truncate(c, kept);
  };
}

/** A sampler that keeps some of the candidates. Without top-k before it, only tokens that it may keep are sorted. */
function truncation(
  name: Exclude<SamplerName, "penalties" | "dry" | "temperature" | "top_n_sigma">,
  { options, scratch, random }: ChainParts,
): Stage {
  const { top_k, tfs_z, typical_p, top_p, min_p, xtc_probability, xtc_threshold } = options;
  const keep = Math.max(0, options.min_keep);
  const all = (c: Candidates, logits: Float32Array): void => selectAbove(c, logits, { cutoff: -Infinity, scratch });
  const staged =
    (select: typeof all, cut: (c: Candidates) => void): Stage =>
    (draw) => {
      const { candidates: c } = draw;
      if (!draw.isSelected) select(c, draw.logits);
      draw.isSelected = true;
      cut(c);
      draw.count = c.length;
    };
  switch (name) {
    case "top_k":
      return (draw) => {
        const { candidates: c, logits } = draw;
        if (draw.isSelected) truncate(c, top_k);
        else selectTop(c, logits, { k: top_k, scratch });
        draw.isSelected = true;
        draw.count = Math.min(draw.count, top_k);
      };
    case "tfs_z":
      return staged(all, (c) => tailFree(c, tfs_z));
    case "typ_p":
      return staged(all, (c) => typical(c, typical_p, keep));
    case "top_p":
      return staged(keep > 0 ? all : (c, logits) => selectNucleus(c, logits, { topP: top_p, scratch }), (c) =>
        topP(c, top_p, keep),
      );
    case "min_p":
      return staged(
        keep > 0 ? all : (c, logits) => selectAbove(c, logits, { cutoff: minCutoff(logits, min_p), scratch }),
        (c) => minP(c, min_p, keep),
      );
    case "xtc":
      return (draw) => {
        if (draw.isSelected ? draw.candidates.length < 2 : draw.logits.length < 2) return;
        if (!draw.isSelected) all(draw.candidates, draw.logits);
        draw.isSelected = true;
        const before = draw.candidates.length;
        if (random() <= xtc_probability) xtc(draw.candidates, xtc_threshold, keep);
        draw.count -= before - draw.candidates.length;
      };
    default:
      return name satisfies never;
  }
}

function heating(
  { temperature, dynatemp_range: range, dynatemp_exponent: exponent }: SamplingOptions,
  { scratch, isLast }: { readonly scratch: Scratch; readonly isLast: boolean },
): Stage {
  return (draw) => {
    const { candidates: c, logits, count } = draw;
    if (range <= 0 && temperature <= 0 && !draw.isSelected) {
      const best = argmax(logits);
      logits.fill(-Infinity, 0, best).fill(-Infinity, best + 1);
      return;
    }
    if (!draw.isSelected && isLast) selectAll(c, logits);
    else if (!draw.isSelected) selectAbove(c, logits, { cutoff: -Infinity, scratch });
    draw.isSelected = true;
    const heated = dynamicTemperature(c, { temperature, range, exponent, count });
    if (heated <= 0) return truncate(c, 1);
    heat(c, heated);
    if (isLast || heated === 1) return;
    for (let i = 0; i < c.length; i++) c.logits[i]! /= heated;
  };
}

/** The smallest logit that min-p keeps, minus a margin for rounding; `minP` decides. */
function minCutoff(logits: Float32Array, p: number): number {
  const max = logits[argmax(logits)]!;
  return max + Math.min(0, Math.log(p)) - 1e-6 * Math.max(1, Math.abs(max));
}
