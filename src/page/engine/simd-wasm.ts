/** The SIMD kernels as WebAssembly; the build of pages (`build.ts`) puts them here, in a separate script. */
export const simdWasm: Uint8Array<ArrayBuffer> = new Uint8Array();
/** Identifies a build of the kernels. */
export const simdBuild: string = "";
