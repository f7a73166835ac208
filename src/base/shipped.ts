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
  /** Files by path in the source tree. */
  readonly files: Readonly<Record<string, ShippedFile>>;
  /** System and processor, such as `linux-x64-musl`. */
  readonly target: string;
  /** Packages that are not in the program, with the version that it needs: it can fetch them. */
  readonly apart?: Readonly<Record<string, string>>;
  /** The address of releases, and the public key that signs them. */
  readonly release?: { readonly url?: string; readonly key?: string };
}

export const shipped: Shipped | undefined = undefined as Shipped | undefined;
