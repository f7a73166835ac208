/**
 * The files inside a compiled program, which `packaging/compile.ts` puts here. A program run from its sources has none
 * and uses the source tree.
 */

export interface ShippedFile {
  /** The path that the program can read. */
  readonly inside: string;
  /** True if compressed with Zstandard. */
  readonly isCompressed: boolean;
}

export interface Shipped {
  /** Changes with any file. */
  readonly id: string;
  /** By path in the source tree. */
  readonly files: Readonly<Record<string, ShippedFile>>;
}

export const shipped: Shipped | undefined = undefined as Shipped | undefined;
