/**
 * Reads the fields of a body one by one. What a sender may get wrong without harm is read as if it were absent and
 * becomes a finding: a warning in the answer, or a refusal where the ingress is strict.
 */
import type { WakeMode } from "../action.ts";
import { Refusal, type FieldProblem } from "./problems.ts";

/** Findings that an answer names. */
const FINDINGS_MAX = 20;

export class Fields {
  readonly findings: FieldProblem[] = [];
  readonly unknown: FieldProblem[] = [];
  readonly #object: Readonly<Record<string, unknown>>;

  /** Throws where the body is no object. @param names the fields there are */
  constructor(payload: unknown, names: readonly string[]) {
    if (typeof payload !== "object" || payload === null || Array.isArray(payload)) throw new Refusal("invalid_body");
    this.#object = payload as Readonly<Record<string, unknown>>; // an object of JSON
    const strange = Object.keys(payload).filter((name) => !names.includes(name));
    for (const name of strange.slice(0, FINDINGS_MAX))
      this.unknown.push({ field: shown(name), reason: "unknown field" });
  }

  /** Undefined where the field is absent, or null. */
  get(name: string): unknown {
    return Object.hasOwn(this.#object, name) ? (this.#object[name] ?? undefined) : undefined;
  }

  /** Text that is not blank, without blanks around it; else undefined and a finding. */
  text(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value === "string" && value.trim() !== "") return value.trim();
    return this.found(name, "expected text; ignored");
  }

  mode(name: string): WakeMode {
    const value = this.get(name) ?? "now";
    if (value === "now" || value === "next-heartbeat") return value;
    this.found(name, "expected 'now' or 'next-heartbeat'; taken as 'now'");
    return "now";
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
