/**
 * The files inside of a compiled program: `packaging/compile.ts` puts them here. Run from its sources the program has
 * none, and finds its files in the source tree.
 */

export interface ShippedFile {
  /** Where the program can read it. */
  readonly inside: string;
  /** Whether it is compressed with Zstandard. */
  readonly isCompressed: boolean;
}

export interface Shipped {
  /** Changes with any of the files. */
  readonly id: string;
  /** By their paths in the source tree. */
  readonly files: Readonly<Record<string, ShippedFile>>;
}

export const shipped: Shipped | undefined = undefined as Shipped | undefined;
