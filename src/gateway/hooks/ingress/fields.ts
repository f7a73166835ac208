/**
 * Reads the fields of a body one by one. What a sender may get wrong without harm is read as if it were absent and
 * becomes a finding: a warning in the answer, or a refusal where the ingress is strict.
 */
import { OptionalKind, type TSchema } from "@sinclair/typebox";
import { type Output, reader, type Reader } from "../../../base/schema.ts";
import { Refusal, type FieldProblem } from "./problems.ts";

/** Findings that an answer names. */
const FINDINGS_MAX = 20;

type Shape = Readonly<Record<string, TSchema>>;

/** What a field gives: nothing where it may be absent. */
type FieldOutput<S extends TSchema> =
  Output<S> | (S extends { readonly [OptionalKind]: "Optional" } ? undefined : never);

/** The fields there are, each with its reader. */
export interface FieldSet<S extends Shape> {
  readonly shape: S;
  readonly readers: { readonly [Name in keyof S]: Reader<unknown> };
}

export const fieldSet = <S extends Shape>(shape: S): FieldSet<S> => ({
  shape,
  readers: Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => [name, reader(schema)]),
  ) as FieldSet<S>["readers"], // the same names
});

export class Fields<S extends Shape> {
  readonly findings: FieldProblem[] = [];
  readonly unknown: FieldProblem[] = [];
  readonly #object: Readonly<Record<string, unknown>>;
  readonly #set: FieldSet<S>;

  /** Throws where the body is no object. */
  constructor(payload: unknown, set: FieldSet<S>) {
    if (typeof payload !== "object" || payload === null || Array.isArray(payload)) throw new Refusal("invalid_body");
    this.#object = payload as Readonly<Record<string, unknown>>; // an object of JSON
    this.#set = set;
    const strange = Object.keys(payload).filter((name) => !Object.hasOwn(set.shape, name));
    for (const name of strange.slice(0, FINDINGS_MAX))
      this.unknown.push({ field: shown(name), reason: "unknown field" });
  }

  /**
   * What the field's schema makes of it; its default, if any, where it is absent or null.
   * @param otherwise for what the schema refuses
   */
  read<Name extends keyof S & string, T>(name: Name, otherwise: () => T): FieldOutput<S[Name]> | T {
    const value = Object.hasOwn(this.#object, name) ? (this.#object[name] ?? undefined) : undefined;
    const schema = this.#set.shape[name]!; // a name of the shape
    type Given = FieldOutput<S[Name]>; // what that schema gives
    if (value === undefined && (OptionalKind in schema || schema["default"] !== undefined)) {
      return schema["default"] as Given;
    }
    const read = this.#set.readers[name].safeParse(value);
    return read.success ? (read.data as Given) : otherwise();
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
