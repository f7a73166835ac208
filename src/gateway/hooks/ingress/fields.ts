/**
 * Reads the fields of a body one by one. A harmless mistake is read as an absent field and becomes a finding: a warning
 * in the answer, or a refusal if the ingress is strict.
 */
import { isObject } from "../../../base/index.ts";
import { OptionalKind, type TSchema } from "@sinclair/typebox";
import { type Output, reader, type Reader } from "../../../base/schema.ts";
import { Refusal, type FieldProblem } from "./problems.ts";

const FINDINGS_MAX = 20;

type Shape = Readonly<Record<string, TSchema>>;

/** The type of a field; undefined is possible if it is optional. */
type FieldOutput<S extends TSchema> =
  Output<S> | (S extends { readonly [OptionalKind]: "Optional" } ? undefined : never);

/** The known fields, each with its reader. */
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

  /** Throws if the body is not an object. */
  constructor(payload: unknown, set: FieldSet<S>) {
    if (!isObject(payload)) throw new Refusal("invalid_body");
    this.#object = payload;
    this.#set = set;
    const strange = Object.keys(payload).filter((name) => !Object.hasOwn(set.shape, name));
    for (const name of strange.slice(0, FINDINGS_MAX))
      this.unknown.push({ field: shown(name), reason: "unknown field" });
  }

  /**
   * The field as its schema reads it; the default, if any, for an absent or null one.
   * @param otherwise called for a value that the schema refuses
   */
  read<Name extends keyof S & string, T>(name: Name, otherwise: () => T): FieldOutput<S[Name]> | T {
    const value = Object.hasOwn(this.#object, name) ? (this.#object[name] ?? undefined) : undefined;
    const schema = this.#set.shape[name]!; // the shape has the name
    type Given = FieldOutput<S[Name]>; // the type of the field's schema
    if (value === undefined && (OptionalKind in schema || schema["default"] !== undefined)) {
      return schema["default"] as Given;
    }
    const read = this.#set.readers[name].safeParse(value);
    return read.success ? (read.data as Given) : otherwise();
  }

  found(field: string, reason: string): undefined {
    this.findings.push({ field, reason });
  }

  /** The findings for the sender. Throws if the ingress is strict and there are any. */
  warnings(isStrict: boolean): readonly string[] {
    const all = [...this.unknown, ...this.findings];
    if (isStrict && all.length > 0) {
      throw new Refusal(this.unknown.length > 0 ? "unknown_field" : "invalid_field", { details: all });
    }
    return all.map(({ field, reason }) => `${field}: ${reason}`);
  }
}

/** Shows only names that look like identifiers; other text of a sender is not echoed. */
const shown = (name: string): string => (/^[A-Za-z_][\w.-]{0,63}$/.test(name) ? name : "(not shown)");
