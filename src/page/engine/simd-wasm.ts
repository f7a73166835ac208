/** The SIMD kernels as WebAssembly, which the build of pages puts here (`build.ts`), in a script of its own. */
export const simdWasm: Uint8Array<ArrayBuffer> = new Uint8Array();
/** Tells one build of the kernels from another. */
export const simdBuild: string = "";
