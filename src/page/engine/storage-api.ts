/** As much of a page's own storage (OPFS) as is used; the library of types lacks it here. */

/** The folder of models. */
export const MODELS_FOLDER = "hearth-models";
/** What the name of a file ends with until it is whole. */
export const PARTIAL = ".part";

/** Of a file, in a Worker. */
export interface AccessHandle {
  getSize(): number;
  read(into: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

export interface FileHandle {
  /** Alone where the browser knows no modes; throws `NoModificationAllowedError` where others have it. */
  createSyncAccessHandle(options?: { readonly mode: "read-only" | "readwrite" }): Promise<AccessHandle>;
  getFile(): Promise<Blob>;
  /** Within the same folder; over a file of that name. */
  move(name: string): Promise<void>;
}

export interface FolderHandle {
  getDirectoryHandle(name: string, options?: { readonly create: boolean }): Promise<FolderHandle>;
  getFileHandle(name: string, options?: { readonly create: boolean }): Promise<FileHandle>;
  removeEntry(name: string): Promise<void>;
  keys(): AsyncIterable<string>;
}

export interface PageStorage {
  getDirectory(): Promise<FolderHandle>;
  estimate(): Promise<{ readonly usage?: number; readonly quota?: number }>;
}

/** Throws where this page has none, as on an address that is not secure. */
export const pageStorage = (): PageStorage => (navigator as unknown as { storage: PageStorage }).storage;
