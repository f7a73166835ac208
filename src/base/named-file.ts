/** Two names, at most one of them a folder's, without anything that leads elsewhere. */
const PLAIN = /^(?!\.)[\w.+@-]{1,128}(\/(?!\.)[\w.+@-]{1,128})?$/;

/** Whether a file of a model can be kept under that name. */
export const isPlainName = (name: string): boolean => PLAIN.test(name);

/** A file among several that are one model. */
export interface NamedFile {
  /** In their folder, with slashes. */
  readonly name: string;
  /** Where its bytes are. */
  readonly path: string;
}
