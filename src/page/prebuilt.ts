/**
 * The files of the page in a program compiled into one file: the compiler puts them here (`bake.ts`), because there are
 * no sources to build them from later.
 */

export interface Asset {
  readonly contentType: string;
  readonly text: string;
}

/** By the last part of their paths below `/ui/`; `` is the page itself. */
export type PageFiles = Readonly<Record<string, Asset>>;

export const prebuilt: (() => PageFiles) | undefined = undefined as (() => PageFiles) | undefined;
