/** A file beside the program: its path. */
declare module "*.wasm" {
  const path: string;
  export default path;
}
