/**
 * The architectures that answer by filling in masks: block by block, or in the whole answer at once, as they were
 * trained.
 */
export const DIFFUSION_ARCHS: ReadonlyMap<string, "blocks" | "whole"> = new Map([
  ["dream", "whole"],
  ["llada", "blocks"],
  ["llada-moe", "blocks"],
  ["rnd1", "whole"],
]);
