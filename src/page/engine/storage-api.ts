/** The used part of a page's storage API (OPFS), which the library of types lacks here. */

/** The folder of models. */
export const MODELS_FOLDER = "hearth-models";
/** Suffix of an incomplete file's name. */
export const PARTIAL = ".part";

/** A file's handle, in a Worker. */
export interface AccessHandle {
  getSize(): number;
  read(into: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

export interface FileHandle {
  /** Exclusive in browsers without modes; throws `NoModificationAllowedError` if another has it open. */
  createSyncAccessHandle(options?: { readonly mode: "read-only" | "readwrite" }): Promise<AccessHandle>;
  getFile(): Promise<Blob>;
  /** Renames within the folder, replacing a file of that name. */
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

/** Throws if this page has no storage, as on an insecure origin. */
export const pageStorage = (): PageStorage => (navigator as unknown as { storage: PageStorage }).storage;
