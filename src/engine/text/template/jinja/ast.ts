/**
 * The tree that the parser of @huggingface/jinja 0.5.11 makes (its dist/ast.d.ts, which it does not export), as a
 * tagged union.
 */

/** Statements and expressions; an expression among statements is printed. */
export type Node =
  | { readonly type: "Program"; readonly body: readonly Node[] }
  | { readonly type: "If"; readonly test: Node; readonly body: readonly Node[]; readonly alternate: readonly Node[] }
  | For
  | { readonly type: "Break" | "Continue" | "Comment" }
  | SetNode
  | {
      readonly type: "Macro";
      readonly name: Identifier;
      readonly args: readonly Parameter[];
      readonly body: readonly Node[];
    }
  | CallBlock
  | { readonly type: "FilterStatement"; readonly filter: Identifier | Call; readonly body: readonly Node[] }
  | Identifier
  | { readonly type: "IntegerLiteral" | "FloatLiteral"; readonly value: number }
  | { readonly type: "StringLiteral"; readonly value: string }
  | Sequence
  | { readonly type: "ObjectLiteral"; readonly value: ReadonlyMap<Node, Node> }
  | Member
  | Call
  | { readonly type: "UnaryExpression"; readonly operator: Operator; readonly argument: Node }
  | { readonly type: "BinaryExpression"; readonly operator: Operator; readonly left: Node; readonly right: Node }
  | { readonly type: "FilterExpression"; readonly operand: Node; readonly filter: Identifier | Call }
  | { readonly type: "TestExpression"; readonly operand: Node; readonly negate: boolean; readonly test: Identifier }
  | Select
  | { readonly type: "Ternary"; readonly condition: Node; readonly trueExpr: Node; readonly falseExpr: Node }
  | Slice
  | KeywordArgument
  | { readonly type: "SpreadExpression" | "KeywordSpreadExpression"; readonly argument: Node };

export interface Operator {
  readonly value: string;
}

export interface Identifier {
  readonly type: "Identifier";
  readonly value: string;
}

export interface Sequence {
  readonly type: "ArrayLiteral" | "TupleLiteral";
  readonly value: readonly Node[];
}

export interface For {
  readonly type: "For";
  readonly loopvar: Node;
  /** A `Select` if the loop has an `if`. */
  readonly iterable: Node;
  readonly body: readonly Node[];
  /** Rendered if there is no iteration. */
  readonly defaultBlock: readonly Node[];
}

export interface SetNode {
  readonly type: "Set";
  readonly assignee: Node;
  /** Null: the value is the text of `body`. */
  readonly value: Node | null;
  readonly body: readonly Node[];
}

export interface CallBlock {
  readonly type: "CallStatement";
  readonly call: Call;
  readonly callerArgs: readonly Parameter[] | null;
  readonly body: readonly Node[];
}

export interface Call {
  readonly type: "CallExpression";
  readonly callee: Node;
  readonly args: readonly Node[];
}

export interface Member {
  readonly type: "MemberExpression";
  readonly object: Node;
  readonly property: Node;
  /** `a[b]`, not `a.b`. */
  readonly computed: boolean;
}

/** `lhs if test` without an else. */
interface Select {
  readonly type: "SelectExpression";
  readonly lhs: Node;
  readonly test: Node;
}

interface Slice {
  readonly type: "SliceExpression";
  readonly start?: Node;
  readonly stop?: Node;
  readonly step?: Node;
}

interface KeywordArgument {
  readonly type: "KeywordArgumentExpression";
  readonly key: Identifier;
  readonly value: Node;
}

export type Parameter = Identifier | KeywordArgument;
