/**
 * Evaluates Go templates: walks the nodes with a dot, a stack of variables and a budget, and collects the output. A
 * template and its values are untrusted, so work, depth and output are bounded. Semantics follow text/template/exec.go
 * (missingkey=zero).
 */
import { AppError } from "../../../../base/index.ts";
import type { Branch, Command, Node, Operand, Pipe } from "./ast.ts";
import { copyCost, type CostOf, type KnownCosts, outerCost, printCost } from "./cost.ts";
import { templateError } from "./error.ts";
import { actionText } from "./format.ts";
import { FUNCTIONS, type FunctionContext } from "./funcs.ts";
import { type GoValue, isTrue, typeName } from "./value.ts";

export interface RenderLimits {
  /** Characters of the result, and of any intermediate text. */
  readonly outputLength: number;
  /** Actions, commands and iterations; steps on long texts and large values count more. */
  readonly steps: number;
}

/** The output exceeds any context window; the steps take about a second. */
export const RENDER_LIMITS: RenderLimits = { outputLength: 32 * 1024 * 1024, steps: 10_000_000 };

/** Pipelines, branches and invoked templates inside each other; a few frames of the stack each. */
const MAX_DEPTH = 1000;
/** Operands, path names or variables that are searched per step. */
const PARTS_PER_STEP = 8;

/** An executable template. */
export interface Program {
  readonly source: string;
  readonly main: readonly Node[];
  readonly defined: ReadonlyMap<string, readonly Node[]>;
}

interface Variable {
  readonly name: string;
  value: GoValue;
}

interface State {
  readonly program: Program;
  readonly context: FunctionContext;
  readonly limits: RenderLimits;
  readonly costs: KnownCosts;
  readonly output: string[];
  outputLength: number;
  steps: number;
  depth: number;
  /** Innermost last; the first is `$`. */
  variables: Variable[];
}

/** The end of a list of nodes: completed, or by a control action. */
type Flow = "next" | "break" | "continue";

/** No value is piped into this command. */
const NONE = Symbol("none");
type Piped = GoValue | typeof NONE;

/** @throws AppError `bad_request` with the place and the failing text, `too_large` beyond a limit */
export function run(program: Program, dot: GoValue, options: { now: Date; limits: RenderLimits }): string {
  const state: State = {
    program,
    context: { now: options.now, charge: (cost, value) => spend(state, cost(value, state.costs)) },
    costs: new WeakMap(),
    limits: options.limits,
    output: [],
    outputLength: 0,
    steps: 0,
    depth: 0,
    variables: [{ name: "$", value: dot }],
  };
  walk(state, dot, program.main);
  return state.output.join("");
}

function walk(state: State, dot: GoValue, nodes: readonly Node[]): Flow {
  for (const node of nodes) {
    spend(state, 1);
    switch (node.kind) {
      case "text":
        write(state, node.text);
        break;
      case "action": {
        const value = evalPipe(state, dot, node.pipe);
        if (node.pipe.targets.length > 0) break;
        state.context.charge(printCost, value);
        write(
          state,
          atPlace(state, node.pipe, () => actionText(value)),
        );
        break;
      }
      case "template":
        walkTemplate(state, dot, node);
        break;
      case "break":
      case "continue":
        return node.kind;
      default: {
        const flow = deeper(state, node.pipe, () => walkBranch(state, dot, node));
        if (flow !== "next") return flow;
      }
    }
  }
  return "next";
}

function walkBranch(state: State, dot: GoValue, branch: Branch): Flow {
  const mark = state.variables.length;
  const value = evalPipe(state, dot, branch.pipe);
  let flow: Flow = "next";
  if (branch.kind === "range") {
    if (walkRange(state, branch, value) === 0 && branch.otherwise) flow = walk(state, dot, branch.otherwise);
  } else if (isTrue(value)) {
    flow = walk(state, branch.kind === "with" ? value : dot, branch.body);
  } else if (branch.otherwise) {
    flow = walk(state, dot, branch.otherwise);
  }
  state.variables.length = mark;
  return flow;
}

/** Returns the number of elements. */
function walkRange(state: State, branch: Branch, value: GoValue): number {
  const names = branch.pipe.targets;
  const mark = state.variables.length;
  const visit = (index: GoValue, element: GoValue): boolean => {
    spend(state, 1);
    const innermost = branch.pipe.assigns ? undefined : state.variables[mark - 1];
    if (names.length === 1) setTarget(state, innermost, names[0]!, element);
    if (names.length === 2) {
      setTarget(state, innermost, names[1]!, element);
      setTarget(state, branch.pipe.assigns ? undefined : state.variables[mark - 2], names[0]!, index);
    }
    const flow = walk(state, element, branch.body);
    state.variables.length = mark;
    return flow !== "break";
  };
  if (value === null || value === undefined) return 0;
  if (typeof value === "bigint") {
    let i = 0n;
    while (i < value && visit(i, i)) i++;
    return value > 0n ? 1 : 0;
  }
  if (typeof value === "object" && value.kind === "list") {
    value.items.every((item, i) => visit(BigInt(i), item));
    return value.items.length;
  }
  if (typeof value === "object" && value.kind === "map") {
    value.entries.entries().every(([key, element]) => visit(key, element));
    return value.entries.size;
  }
  throw errorAt(state, branch.pipe, `range can't iterate over ${actionText(value)}`);
}

/** The variable that a range declared, or with `=` the nearest one of that name. */
function setTarget(state: State, declared: Variable | undefined, name: string, value: GoValue): void {
  if (declared) declared.value = value;
  else assign(state, name, value);
}

function walkTemplate(state: State, dot: GoValue, node: Node & { kind: "template" }): void {
  const body = state.program.defined.get(node.name);
  if (!body) throw errorAt(state, node, `template ${JSON.stringify(node.name)} not defined`);
  const value = node.pipe ? evalPipe(state, dot, node.pipe) : undefined;
  const outer = state.variables;
  state.variables = [{ name: "$", value }];
  deeper(state, node, () => walk(state, value, body));
  state.variables = outer;
}

/** The value of the last command; declares or assigns the pipeline's variables. */
function evalPipe(state: State, dot: GoValue, pipe: Pipe): GoValue {
  let value: Piped = NONE;
  for (const command of pipe.commands) {
    value = evalCommand(state, dot, command, value);
    if (value === null) value = undefined; // a nil interface
  }
  const result = value === NONE ? undefined : value;
  for (const name of pipe.targets) {
    if (pipe.assigns) assign(state, name, result);
    else state.variables.push({ name, value: result });
  }
  return result;
}

function assign(state: State, name: string, value: GoValue): void {
  const variable = findVariable(state, name);
  if (variable) variable.value = value;
}

function findVariable(state: State, name: string): Variable | undefined {
  spend(state, state.variables.length / PARTS_PER_STEP);
  return state.variables.findLast((candidate) => candidate.name === name);
}

function evalCommand(state: State, dot: GoValue, command: Command, piped: Piped): GoValue {
  spend(state, 1);
  const [first, ...args] = command.operands;
  if (first.kind === "function") return evalCall(state, dot, { name: first.name, spot: command, args, piped });
  if (args.length > 0 || piped !== NONE) {
    const shown = state.program.source.slice(first.at, first.end);
    const field = "path" in first ? first.path.at(-1) : undefined;
    const message = field
      ? `${field} is not a method but has arguments`
      : `can't give argument to non-function ${shown}`;
    throw errorAt(state, command, message);
  }
  if (first.kind === "nil") throw errorAt(state, first, "nil is not a command");
  return evalOperand(state, dot, first);
}

function evalOperand(state: State, dot: GoValue, operand: Operand): GoValue {
  switch (operand.kind) {
    case "dot":
      return dot;
    case "nil":
      return undefined;
    case "constant":
      return operand.value;
    case "function":
      return evalCall(state, dot, { name: operand.name, spot: operand, args: [], piped: NONE });
    case "field":
      return evalPath(state, dot, operand);
    case "variable":
      return evalPath(state, findVariable(state, operand.name)?.value, operand);
    case "chain":
      return evalPath(state, evalOperand(state, dot, operand.base), operand);
    case "pipe":
      return deeper(state, operand, () => evalPipe(state, dot, operand));
    default:
      return operand satisfies never;
  }
}

function evalPath(state: State, start: GoValue, operand: Operand & { path: readonly string[] }): GoValue {
  let value = start;
  spend(state, operand.path.length / PARTS_PER_STEP);
  for (const name of operand.path) {
    if (value === undefined) return undefined;
    if (value === null) throw errorAt(state, operand, `nil pointer evaluating interface {}.${name}`);
    if (typeof value === "object" && value.kind === "map") {
      const found: GoValue = value.entries.get(name);
      value = found === undefined ? (value.missing ?? null) : found;
    } else if (typeof value === "object" && value.kind === "struct" && value.fields.has(name)) {
      value = value.fields.get(name);
    } else {
      throw errorAt(state, operand, `can't evaluate field ${name} in type ${typeName(value)}`);
    }
  }
  return value;
}

interface Call {
  readonly name: string;
  /** The source range for errors. */
  readonly spot: { readonly at: number; readonly end: number };
  readonly args: readonly Operand[];
  readonly piped: Piped;
}

function evalCall(state: State, dot: GoValue, call: Call): GoValue {
  const { name, args, piped } = call;
  spend(state, args.length / PARTS_PER_STEP);
  if (name === "and" || name === "or") return evalLogic(state, dot, call);
  const target = FUNCTIONS[name];
  if (!target) throw errorAt(state, call.spot, `"${name}" is not a defined function`);
  const values = args.map((arg) => evalOperand(state, dot, arg));
  if (piped !== NONE) values.push(piped);
  if (values.length < target.min || values.length > (target.max ?? Infinity)) {
    const want = target.max === target.min ? `${target.min}` : `at least ${target.min}`;
    throw errorAt(state, call.spot, `wrong number of args for ${name}: want ${want} got ${values.length}`);
  }
  charge(state, values, target.cost);
  const result = atPlace(state, call.spot, () => target.call(values, state.context), `error calling ${name}: `);
  charge(state, [result]);
  return result;
}

/** Stops at the first argument that decides; the piped value comes last. */
function evalLogic(state: State, dot: GoValue, call: Call): GoValue {
  const settles = call.name === "or";
  if (call.args.length === 0 && call.piped === NONE) {
    throw errorAt(state, call.spot, `wrong number of args for ${call.name}: want at least 1 got 0`);
  }
  let value: GoValue;
  for (const arg of call.args) {
    value = evalOperand(state, dot, arg);
    if (isTrue(value) === settles) return value;
  }
  return call.piped === NONE ? value : call.piped;
}

function write(state: State, text: string): void {
  state.outputLength += text.length;
  if (state.outputLength > state.limits.outputLength) {
    throw new AppError("too_large", `template: expected at most ${state.limits.outputLength} characters of output`);
  }
  spend(state, copyCost(text.length));
  state.output.push(text);
}

function spend(state: State, steps: number): void {
  state.steps += steps;
  if (state.steps > state.limits.steps) {
    throw new AppError("bad_file", `the model's template did not finish within ${state.limits.steps} steps`);
  }
}

/** Charges for values by the work on them. */
function charge(state: State, values: readonly GoValue[], cost: CostOf = outerCost): void {
  let textLength = 0;
  for (const value of values) {
    if (typeof value === "string") textLength += value.length;
    state.context.charge(cost, value);
  }
  if (textLength > state.limits.outputLength) {
    throw new AppError("too_large", `template: expected texts of at most ${state.limits.outputLength} characters`);
  }
}

function deeper<T>(state: State, spot: { at: number; end: number }, inner: () => T): T {
  if (++state.depth > MAX_DEPTH) {
    throw templateError(state.program.source, spot.at, `exceeded maximum template depth (${MAX_DEPTH})`, "too_large");
  }
  const result = inner();
  state.depth--;
  return result;
}

function errorAt(state: State, spot: { at: number; end: number }, message: string): AppError {
  const { source } = state.program;
  return templateError(source, spot.at, `executing <${source.slice(spot.at, spot.end)}>: ${message}`);
}

/** Adds the place to errors of `inner`. */
function atPlace<T>(state: State, spot: { at: number; end: number }, inner: () => T, prefix = ""): T {
  try {
    return inner();
  } catch (error) {
    if (error instanceof AppError && error.code === "bad_request") throw errorAt(state, spot, prefix + error.message);
    throw error;
  }
}
