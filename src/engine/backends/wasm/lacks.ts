/** Whether a JavaScript engine has the WebAssembly that the kernels are built for. */

/** A module with a function that returns `i8x16.relaxed_swizzle(splat(1), splat(2))`: not every engine has that. */
const RELAXED_SIMD = Uint8Array.fromHex("0061736d010000000105016000017b030201000a0f010d004101fd0f4102fd0ffd80020b");

/** What it lacks; undefined: nothing. */
export function wasmLacks(): string | undefined {
  if (typeof WebAssembly === "undefined") return "no WebAssembly here";
  return WebAssembly.validate(RELAXED_SIMD) ? undefined : "this WebAssembly engine has no relaxed SIMD";
}
