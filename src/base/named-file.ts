/** File names of models: a name in at most one folder, without `..` and absolute paths. */
const PLAIN = /^(?!\.)[\w.+@-]{1,128}(\/(?!\.)[\w.+@-]{1,128})?$/;

/** Returns whether a model's file may have this name. */
export const isPlainName = (name: string): boolean => PLAIN.test(name);

/** One of several files that make up a model. */
export interface NamedFile {
  /** Name within the model's folder, with slashes. */
  readonly name: string;
  /** Path of its content. */
  readonly path: string;
}
