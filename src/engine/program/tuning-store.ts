/** Stores a device's fastest kernels, as found by a search. */
export interface TuningStore {
  /** The value stored under that key, of any shape: other programs may write there. Undefined if missing. */
  read(key: string): Promise<unknown>;
  write(key: string, value: Readonly<Record<string, unknown>>): Promise<void>;
}
