/** Templates are bundled as text. */
declare module "*.jinja" {
  const source: string;
  export default source;
}
