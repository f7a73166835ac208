/** A file beside the program: where it is. */
declare module "*.wasm" {
  const path: string;
  export default path;
}
