/**
 * The tree of a Go text/template, with two analyses for prompts: the identifiers it uses, and a copy cut off after the
 * `.Response` action. Node kinds follow text/template/parse/node.go.
 */

/** `at` and `end` are offsets into the source: what an error message quotes. */
interface Spot {
  readonly at: number;
  readonly end: number;
}

export type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "action"; readonly pipe: Pipe }
  | Branch
  | (Spot & { readonly kind: "template"; readonly name: string; readonly pipe: Pipe | undefined })
  | { readonly kind: "break" }
  | { readonly kind: "continue" };

export interface Branch {
  readonly kind: "if" | "with" | "range";
  readonly pipe: Pipe;
  readonly body: readonly Node[];
  readonly otherwise: readonly Node[] | undefined;
}

/** `$a, $b := command | command`. */
export interface Pipe extends Spot {
  readonly kind: "pipe";
  /** Variables that are set, with their `$`. */
  readonly targets: readonly string[];
  /** `=` instead of `:=`. */
  readonly assigns: boolean;
  readonly commands: readonly Command[];
}

/** The first operand is the function, or the value itself. Never empty. */
export interface Command extends Spot {
  readonly operands: readonly [Operand, ...Operand[]];
}

export type Operand =
  | (Spot & { readonly kind: "dot" })
  | (Spot & { readonly kind: "nil" })
  | (Spot & { readonly kind: "constant"; readonly value: boolean | bigint | number | string })
  | (Spot & { readonly kind: "function"; readonly name: string })
  | (Spot & { readonly kind: "field"; readonly path: readonly string[] })
  | (Spot & { readonly kind: "variable"; readonly name: string; readonly path: readonly string[] })
  | (Spot & { readonly kind: "chain"; readonly base: Operand; readonly path: readonly string[] })
  | Pipe;

/** Lower-cased names of every field and variable in a list of nodes. */
export function identifiersOf(nodes: readonly Node[], found: Set<string> = new Set()): Set<string> {
  for (const node of nodes) {
    if (node.kind === "action" || node.kind === "template") pipeIdentifiers(node.pipe, found);
    else if (node.kind === "if" || node.kind === "with" || node.kind === "range") {
      pipeIdentifiers(node.pipe, found);
      identifiersOf(node.body, found);
      if (node.otherwise) identifiersOf(node.otherwise, found);
    }
  }
  return found;
}

/** Lower-cased names of every field and variable in a pipeline. */
export function pipeIdentifiers(pipe: Pipe | undefined, found: Set<string> = new Set()): Set<string> {
  for (const command of pipe?.commands ?? []) {
    for (const operand of command.operands) operandIdentifiers(operand, found);
  }
  return found;
}

function operandIdentifiers(operand: Operand, found: Set<string>): void {
  if (operand.kind === "pipe") pipeIdentifiers(operand, found);
  else if (operand.kind === "chain") operandIdentifiers(operand.base, found);
  if (operand.kind === "variable") found.add(operand.name.toLowerCase());
  if (operand.kind === "field" || operand.kind === "variable" || operand.kind === "chain") {
    for (const name of operand.path) found.add(name.toLowerCase());
  }
}

/**
 * A copy that ends right after the first action that prints `.Response`: the open end of a prompt. In a branch, each
 * side ends at its own action. Conditions are not searched, so `{{ if .Response }}` alone does not cut. Without such an
 * action the copy is complete.
 */
export function cutAfterResponse(nodes: readonly Node[]): { readonly nodes: readonly Node[]; readonly cut: boolean } {
  const kept: Node[] = [];
  for (const node of nodes) {
    if (node.kind === "if" || node.kind === "with" || node.kind === "range") {
      const body = cutAfterResponse(node.body);
      const otherwise = node.otherwise && cutAfterResponse(node.otherwise);
      kept.push({ ...node, body: body.nodes, otherwise: otherwise?.nodes });
      if (body.cut || otherwise?.cut) return { nodes: kept, cut: true };
    } else {
      kept.push(node);
      if (node.kind === "action" && printsResponse(node.pipe)) return { nodes: kept, cut: true };
    }
  }
  return { nodes: kept, cut: false };
}

const printsResponse = (pipe: Pipe): boolean =>
  pipe.commands.some((command) =>
    command.operands.some((operand) => operand.kind === "field" && operand.path.includes("Response")),
  );
