/**
 * The files of the page, where this program was compiled into one file: what compiles it puts them here, since there
 * are no sources to build them from later (`bake.ts`).
 */

export interface Asset {
  readonly contentType: string;
  readonly text: string;
}

/** By the last part of their paths below `/ui/`; `` is the page itself. */
export type PageFiles = Readonly<Record<string, Asset>>;

export const prebuilt: (() => PageFiles) | undefined = undefined as (() => PageFiles) | undefined;
