/** A file among several that are one model. */
export interface NamedFile {
  /** In their folder, with slashes. */
  readonly name: string;
  /** Where its bytes are. */
  readonly path: string;
}
