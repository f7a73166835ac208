/**
 * A dedicated connection to the server. A silent server is given up: a dead connection does not report itself, and the
 * server's own time limits are useless if its answers do not arrive.
 */
import type { ReservedSQL, SQL } from "bun";
import { isReadOnly, SilentServer } from "./problems.ts";

/** The server's time limit for a statement. */
export const STATEMENT_SECONDS = 10;
/** Longer than the server's time limit: a slow server reports itself. */
const SILENT_MS = (STATEMENT_SECONDS + 2) * 1000;

type Row = Record<string, unknown>;
export type Found = readonly Row[] & { readonly count: number; readonly command: string };

export class Connection {
  readonly #connection: ReservedSQL;
  readonly #silentMs: number;
  /** Templates by command text. */
  readonly #templates = new Map<string, TemplateStringsArray>();
  #asked = 0;
  #deadline: Timer | undefined;
  #isSilent = false;
  #isClosed = false;
  /** True if the session keeps settings that the database no longer has; it must not be reused. */
  #isSpent = false;

  private constructor(connection: ReservedSQL, silentMs: number) {
    this.#connection = connection;
    this.#silentMs = silentMs;
  }

  static async open(pool: SQL, silentMs = SILENT_MS): Promise<Connection> {
    return new Connection(await pool.reserve(), silentMs);
  }

  /**
   * Sends before it returns. The server answers statements in order. A statement without values is not pipelined: later
   * ones wait for its answer.
   */
  query(text: string, values: readonly unknown[] = []): Promise<Found> {
    return this.#answered(this.#connection.unsafe(text, values as unknown[]).execute());
  }

  /**
   * Like `query`, for a statement without values and with a constant plan: it is prepared and pipelined. The driver
   * does that only for templates.
   */
  command(text: string): Promise<Found> {
    let template = this.#templates.get(text);
    if (!template) {
      template = Object.defineProperty([text], "raw", { value: [text] }) as unknown as TemplateStringsArray;
      this.#templates.set(text, template);
    }
    return this.#answered(this.#connection<unknown>(template).execute());
  }

  /**
   * True if the session is read-only, or does not wait for the disk, because settings of the database or the role
   * required it when it began. This lasts as long as the session; a new session gets the current settings.
   */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Returns it to the pool. */
  release(): void {
    if (this.#isSpent) this.close();
    else if (!this.#isClosed) this.#connection.release();
  }

  /** Marks it as spent although no error said so: see `isSpent`. */
  spend(): void {
    this.#isSpent = true;
  }

  /** Closes it for good: pending statements fail. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    void this.#connection.close({ timeout: 0 });
  }

  async #answered<T>(answer: Promise<unknown>): Promise<T> {
    this.#asked++;
    this.#deadline ??= this.#waits();
    try {
      return (await answer) as T;
    } catch (error) {
      this.#isSpent ||= isReadOnly(error);
      if (!this.#isSilent) throw error;
      throw new SilentServer(error);
    } finally {
      clearTimeout(this.#deadline);
      this.#deadline = --this.#asked > 0 ? this.#waits() : undefined;
    }
  }

  #waits(): Timer {
    return setTimeout(() => {
      this.#isSilent = true;
      this.close();
    }, this.#silentMs);
  }
}
