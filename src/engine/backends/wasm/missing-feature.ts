/** Tests whether a JavaScript engine supports the kernels' WebAssembly features. */

/** A module with a function that returns `i8x16.relaxed_swizzle(splat(1), splat(2))`, which some engines lack. */
const RELAXED_SIMD = Uint8Array.fromHex("0061736d010000000105016000017b030201000a0f010d004101fd0f4102fd0ffd80020b");

/** The missing feature; undefined: none. */
export function missingWasmFeature(): string | undefined {
  if (typeof WebAssembly === "undefined") return "no WebAssembly here";
  return WebAssembly.validate(RELAXED_SIMD) ? undefined : "this WebAssembly engine has no relaxed SIMD";
}
