/** Gives kernels subgroups of another width than the device's, by sums in workgroup memory. */

/** The widths that devices have. (WebGPU, subgroupMinSize and subgroupMaxSize) */
export const WIDTHS = [4, 8, 16, 32, 64, 128] as const;

/** Calls of functions of subgroups, and built-in values, with their replacements for subgroups of WIDTH threads. */
const CHANGES: readonly (readonly [string, string])[] = [
  ["subgroupAdd((*sums)[i])", "forced_add((*sums)[i], thread.t)"],
  ["subgroupElect()", "(thread.t % WIDTH == 0u)"],
  ["thread.subgroups", "((WG + WIDTH - 1u) / WIDTH)"],
  ["thread.subgroup", "(thread.t / WIDTH)"],
];

const FORCED_ADD = `
var<workgroup> forced: array<f32, WG>;
fn forced_add(x: f32, t: u32) -> f32 {
  workgroupBarrier();
  forced[t] = x;
  workgroupBarrier();
  var total = 0.0;
  let first = (t / WIDTH) * WIDTH;
  for (var i = first; i < min(WG, first + WIDTH); i++) { total += forced[i]; }
  return total;
}
`;

/** Throws if a source uses subgroups in a way that is not known here. */
export function forcedWidth(code: string, width: number): string {
  if (!/\bsubgroup(Add|Elect)\(/.test(code)) return code;
  const changed = CHANGES.reduce((text, [from, to]) => text.replaceAll(from, to), code);
  const left = /\b(subgroup[A-Z]\w*)\(|thread\.subgroups?\b/.exec(changed);
  if (left) throw new Error(`a kernel uses '${left[0]}', whose width no test forces`);
  return `${changed}${FORCED_ADD.replaceAll("WIDTH", `${width}u`)}`.replaceAll("WIDTH", `${width}u`);
}
