/**
 * A connection of one's own to the server. A server that says nothing for too long is given up: a line that leads
 * nowhere does not say so by itself, and the limits that a server keeps are no help where its answers do not come.
 */
import type { ReservedSQL, SQL } from "bun";
import { isReadOnly, SilentServer } from "./problems.ts";

/** What the server gives a statement. */
export const STATEMENT_SECONDS = 10;
/** Longer than the server gives a statement: who is slow says so himself. */
const SILENT_MS = (STATEMENT_SECONDS + 2) * 1000;

type Row = Record<string, unknown>;
export type Found = readonly Row[] & { readonly count: number; readonly command: string };

export class Line {
  readonly #connection: ReservedSQL;
  readonly #silentMs: number;
  /** Of commands. */
  readonly #templates = new Map<string, TemplateStringsArray>();
  #asked = 0;
  #deadline: Timer | undefined;
  #isSilent = false;
  #isClosed = false;
  /** Whether its session may stay as it is when the database no longer is: it is for nobody else. */
  #isSpent = false;

  private constructor(connection: ReservedSQL, silentMs: number) {
    this.#connection = connection;
    this.#silentMs = silentMs;
  }

  static async open(pool: SQL, silentMs = SILENT_MS): Promise<Line> {
    return new Line(await pool.reserve(), silentMs);
  }

  /**
   * Sends before it returns. The server answers in the order in which statements are sent. Without values it is sent by
   * itself: what comes after it waits for its answer.
   */
  query(text: string, values: readonly unknown[] = []): Promise<Found> {
    return this.#heard(this.#connection.unsafe(text, values as unknown[]).execute());
  }

  /**
   * As `query`, for a statement without values that needs no plan, or always the same: it is prepared, and goes with
   * those before and behind it. The driver does that only with a template.
   */
  command(text: string): Promise<Found> {
    let template = this.#templates.get(text);
    if (!template) {
      template = Object.defineProperty([text], "raw", { value: [text] }) as unknown as TemplateStringsArray;
      this.#templates.set(text, template);
    }
    return this.#heard(this.#connection<unknown>(template).execute());
  }

  /**
   * Where its database or role said so at its beginning, a session may not write, or does not wait for the disk, for as
   * long as it lives: a new one finds out what they say now.
   */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** To the pool, for the next one. */
  release(): void {
    if (this.#isSpent) this.close();
    else if (!this.#isClosed) this.#connection.release();
  }

  /** What was found without an error: see `isSpent`. */
  spend(): void {
    this.#isSpent = true;
  }

  /** For good: what is on its way fails. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    void this.#connection.close({ timeout: 0 });
  }

  async #heard<T>(answer: Promise<unknown>): Promise<T> {
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
