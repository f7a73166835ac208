/**
 * Reads the fields of a body one by one. What a sender may get wrong without harm is read as if it were absent and
 * becomes a finding: a warning in the answer, or a refusal where the ingress is strict.
 */
import type { z } from "zod";
import { Refusal, type FieldProblem } from "./problems.ts";

/** Findings that an answer names. */
const FINDINGS_MAX = 20;

type Shape = Readonly<Record<string, z.ZodType>>;

export class Fields<S extends Shape> {
  readonly findings: FieldProblem[] = [];
  readonly unknown: FieldProblem[] = [];
  readonly #object: Readonly<Record<string, unknown>>;
  readonly #shape: S;

  /** Throws where the body is no object. @param shape the fields there are */
  constructor(payload: unknown, shape: S) {
    if (typeof payload !== "object" || payload === null || Array.isArray(payload)) throw new Refusal("invalid_body");
    this.#object = payload as Readonly<Record<string, unknown>>; // an object of JSON
    this.#shape = shape;
    const strange = Object.keys(payload).filter((name) => !Object.hasOwn(shape, name));
    for (const name of strange.slice(0, FINDINGS_MAX))
      this.unknown.push({ field: shown(name), reason: "unknown field" });
  }

  /**
   * What the field's schema makes of it; its default, if any, where it is absent or null.
   * @param otherwise for what the schema refuses
   */
  read<Name extends keyof S & string, T>(name: Name, otherwise: () => T): z.output<S[Name]> | T {
    const value = Object.hasOwn(this.#object, name) ? (this.#object[name] ?? undefined) : undefined;
    const read = this.#shape[name]!.safeParse(value); // a name of the shape
    return read.success ? (read.data as z.output<S[Name]>) : otherwise(); // what that schema gives
  }

  found(field: string, reason: string): undefined {
    this.findings.push({ field, reason });
  }

  /** What the sender should know. Throws where the ingress is strict and there is anything. */
  warnings(isStrict: boolean): readonly string[] {
    const all = [...this.unknown, ...this.findings];
    if (isStrict && all.length > 0) {
      throw new Refusal(this.unknown.length > 0 ? "unknown_field" : "invalid_field", { details: all });
    }
    return all.map(({ field, reason }) => `${field}: ${reason}`);
  }
}

/** A name that a program could have; what else a sender wrote is not sent back. */
const shown = (name: string): string => (/^[A-Za-z_][\w.-]{0,63}$/.test(name) ? name : "(not shown)");
