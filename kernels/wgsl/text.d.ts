/** A kernel imported `with { type: "text" }`: its source. */
declare module "*.wgsl" {
  const source: string;
  export default source;
}
