/**
 * Evaluates Jinja templates on the tree of @huggingface/jinja's parser. The evaluator is our own, because a template is
 * untrusted (here work, depth, text and output are bounded, and only the given values are reachable) and because
 * Python's meaning of None, undefined, `==`, `str` and scopes determines a prompt. Behaviour: jinja2 3.1.6 as
 * transformers configures it (sandboxed and immutable, trim_blocks, lstrip_blocks, loop controls).
 */
import { AppError } from "../../../../base/index.ts";
import type { Call, CallBlock, For, Identifier, Member, Node, Parameter, SetNode } from "./ast.ts";
import { runFilter } from "./filters.ts";
import { attributeOf, BINARY, type Bounds, itemOf, keyOf, negate, sliceOf } from "./operators.ts";
import { runTest } from "./tests.ts";
import {
  type Arguments,
  type Budget,
  type Callable,
  dict,
  fail,
  float,
  isDict,
  isEqual,
  isObject,
  isTrue,
  isUndefined,
  itemsOf,
  type Key,
  ownList,
  textOf,
  type Namespace,
  tuple,
  typeName,
  presentOr,
  undefinedOf,
  type Value,
} from "./value.ts";

/** Nesting of expressions, blocks and macros; a few frames of the stack each. */
const MAX_DEPTH = 1000;

/** Steps of one iteration besides its body, for a scope and `loop`. */
const ITERATION_STEPS = 8;

/** Names of one block; a loop or a macro has an inner scope. */
interface Scope {
  readonly names: Map<string, Value>;
  readonly outer: Scope | undefined;
}

interface State {
  readonly budget: Budget;
  depth: number;
}

/** The text of a list of statements, and the statement that ended it, if it is `break` or `continue`. */
interface Rendered {
  readonly text: string;
  readonly flow: "next" | "break" | "continue";
}

/** @throws AppError `bad_request` with the reason, `too_large` beyond the budget */
export function evaluate(program: Node, globals: ReadonlyMap<string, Value>, budget: Budget): string {
  if (program.type !== "Program") throw fail("expected a whole template");
  const outer: Scope = { names: new Map(globals), outer: undefined };
  return runBlock({ budget, depth: 0 }, program.body, { names: new Map(), outer }).text;
}

function lookUp(scope: Scope, name: string): Value {
  for (let at: Scope | undefined = scope; at; at = at.outer) {
    const found = at.names.get(name);
    if (found !== undefined) return found;
  }
  return undefinedOf(`'${name}' is undefined`);
}

const innerScope = (outer: Scope): Scope => ({ names: new Map(), outer });

function runBlock(state: State, nodes: readonly Node[], scope: Scope): Rendered {
  let text = "";
  for (const node of nodes) {
    const part = runNode(state, node, scope);
    state.budget.check(text.length + part.text.length);
    text += part.text;
    if (part.flow !== "next") return { text, flow: part.flow };
  }
  return { text, flow: "next" };
}

const SILENT: Rendered = { text: "", flow: "next" };

/** One statement, or an expression that is printed. */
function runNode(state: State, node: Node, scope: Scope): Rendered {
  switch (node.type) {
    case "If": {
      const test = isTrue(valueOf(state, node.test, scope));
      return deeper(state, () => runBlock(state, test ? node.body : node.alternate, scope));
    }
    case "For":
      return deeper(state, () => runFor(state, node, scope));
    case "Set":
      runSet(state, node, scope);
      return SILENT;
    case "Macro": {
      const definition = { name: node.name.value, parameters: node.args, body: node.body };
      scope.names.set(node.name.value, makeMacro(state, definition, scope));
      return SILENT;
    }
    case "CallStatement":
      return printed(state, runCallBlock(state, node, scope));
    case "FilterStatement": {
      const { text } = deeper(state, () => runBlock(state, node.body, innerScope(scope)));
      return printed(state, applyFilter(state, node.filter, text, scope));
    }
    case "Break":
      return { text: "", flow: "break" };
    case "Continue":
      return { text: "", flow: "continue" };
    case "Comment":
      return SILENT;
    default:
      return printed(state, valueOf(state, node, scope));
  }
}

function printed(state: State, value: Value): Rendered {
  const text = textOf(value, state.budget);
  state.budget.make(text.length);
  return { text, flow: "next" };
}

function runFor(state: State, node: For, scope: Scope): Rendered {
  const filter = node.iterable.type === "SelectExpression" ? node.iterable : undefined;
  let items = itemsOf(valueOf(state, filter?.lhs ?? node.iterable, scope), state.budget);
  if (filter) {
    items = items.filter((item) => {
      const inner = innerScope(scope);
      bindTarget(node.loopvar, item, inner, state.budget);
      return isTrue(valueOf(state, filter.test, inner));
    });
  }
  if (items.length === 0) return runBlock(state, node.defaultBlock, innerScope(scope));
  let text = "";
  let seen: Value | undefined; // by loop.changed
  const changed = (value: Value): boolean => {
    const isNew = seen === undefined || !isEqual(seen, value, state.budget);
    seen = value;
    return isNew;
  };
  for (let i = 0; i < items.length; i++) {
    state.budget.spend(ITERATION_STEPS);
    const inner = innerScope(scope);
    inner.names.set("loop", loopAt(items, i, changed));
    bindTarget(node.loopvar, items[i]!, inner, state.budget);
    const part = runBlock(state, node.body, inner);
    state.budget.check(text.length + part.text.length);
    text += part.text;
    if (part.flow === "break") break;
  }
  return { text, flow: "next" };
}

/** The `loop` variable of a body; its fields are computed on demand, because most iterations use none. */
function loopAt(items: readonly Value[], i: number, changed: (value: Value) => boolean): Namespace {
  let fields: Map<string, Value> | undefined;
  return {
    kind: "loop",
    get fields() {
      return (fields ??= new Map(Object.entries(loopFields(items, i, changed))));
    },
  };
}

function loopFields(
  items: readonly Value[],
  i: number,
  changed: (value: Value) => boolean,
): Readonly<Record<string, Value>> {
  const { length } = items;
  return {
    index: i + 1,
    index0: i,
    revindex: length - i,
    revindex0: length - i - 1,
    first: i === 0,
    last: i === length - 1,
    length,
    depth: 1,
    depth0: 0,
    previtem: presentOr(items[i - 1], "there is no previous item"),
    nextitem: presentOr(items[i + 1], "there is no next item"),
    cycle: callable("cycle", ({ positional }) =>
      presentOr(positional[i % positional.length], "no items for cycling given"),
    ),
    changed: callable("changed", ({ positional }) => changed(tuple(positional))),
  };
}

const callable = (name: string, call: (args: Arguments) => Value): Callable => ({ kind: "function", name, call });

/** Assigns a value to a name, or to each name of a tuple. */
function bindTarget(target: Node, value: Value, scope: Scope, budget: Budget): void {
  if (target.type === "Identifier") {
    scope.names.set(target.value, value);
  } else if (target.type === "TupleLiteral") {
    const items = itemsOf(value, budget);
    if (items.length !== target.value.length) {
      const amount = items.length < target.value.length ? "not enough" : "too many";
      throw fail(`${amount} values to unpack (expected ${target.value.length}, got ${items.length})`);
    }
    target.value.forEach((part, i) => bindTarget(part, items[i]!, scope, budget));
  } else {
    throw fail(`cannot assign to ${target.type}`);
  }
}

function runSet(state: State, node: SetNode, scope: Scope): void {
  const value = node.value
    ? valueOf(state, node.value, scope)
    : deeper(state, () => runBlock(state, node.body, innerScope(scope))).text;
  const target = node.assignee;
  if (target.type !== "MemberExpression") {
    bindTarget(target, value, scope, state.budget);
    return;
  }
  const object = valueOf(state, target.object, scope);
  if (!isObject(object) || object.kind !== "namespace" || target.property.type !== "Identifier" || target.computed) {
    throw fail("cannot assign attribute on non-namespace object");
  }
  object.fields.set(target.property.value, value);
}

interface Definition {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly body: readonly Node[];
}

/** A macro sees the names around its definition. `caller` is the call block's body. */
function makeMacro(state: State, { name, parameters, body }: Definition, scope: Scope): Callable {
  return callable(name, ({ positional, named }) => {
    const inner = innerScope(scope);
    const rest = new Map(named);
    parameters.forEach((parameter, i) => {
      const key = parameter.type === "Identifier" ? parameter.value : parameter.key.value;
      const given = i < positional.length ? positional[i] : rest.get(key); // None counts as given
      rest.delete(key);
      if (given !== undefined) inner.names.set(key, given);
      else if (parameter.type === "Identifier") {
        inner.names.set(key, undefinedOf(`parameter '${key}' was not provided`));
      } else inner.names.set(key, valueOf(state, parameter.value, inner));
    });
    const caller = rest.get("caller");
    if (caller !== undefined) inner.names.set("caller", caller);
    rest.delete("caller");
    const extra = positional.slice(parameters.length);
    inner.names.set("varargs", tuple(extra));
    inner.names.set("kwargs", dict(rest));
    inner.names.set("name", name);
    return deeper(state, () => runBlock(state, body, inner)).text;
  });
}

function runCallBlock(state: State, node: CallBlock, scope: Scope): Value {
  const definition = { name: "caller", parameters: node.callerArgs ?? [], body: node.body };
  const caller = makeMacro(state, definition, scope);
  const args = argumentsOf(state, node.call.args, scope);
  const target = valueOf(state, node.call.callee, scope);
  return invoke(target, { positional: args.positional, named: new Map([...args.named, ["caller", caller]]) });
}

function invoke(target: Value, args: Arguments): Value {
  if (isUndefined(target)) throw fail(target.reason);
  if (!isObject(target) || target.kind !== "function") throw fail(`'${typeName(target)}' object is not callable`);
  return target.call(args);
}

function valueOf(state: State, node: Node, scope: Scope): Value {
  state.budget.spend(1);
  switch (node.type) {
    case "Identifier":
      return lookUp(scope, node.value);
    case "StringLiteral":
    case "IntegerLiteral":
      return node.value;
    case "FloatLiteral":
      return float(node.value);
    default:
      return deeper(state, () => compositeValue(state, node, scope));
  }
}

function compositeValue(state: State, node: Node, scope: Scope): Value {
  const value = (part: Node): Value => valueOf(state, part, scope);
  switch (node.type) {
    case "ArrayLiteral":
      return ownList(node.value.map(value));
    case "TupleLiteral":
      return tuple(node.value.map(value));
    case "ObjectLiteral":
      return dict([...node.value].map(([key, item]): [Key, Value] => [keyOf(value(key)), value(item)]));
    case "MemberExpression":
      return memberValue(state, node, scope);
    case "CallExpression": {
      const target = value(node.callee);
      return invoke(target, argumentsOf(state, node.args, scope));
    }
    case "UnaryExpression": {
      const argument = value(node.argument);
      return node.operator.value === "not" ? !isTrue(argument) : negate(node.operator.value, argument);
    }
    case "BinaryExpression": {
      const left = value(node.left);
      const operator = node.operator.value;
      if (operator === "and") return isTrue(left) ? value(node.right) : left;
      if (operator === "or") return isTrue(left) ? left : value(node.right);
      const apply = BINARY[operator];
      if (!apply) throw fail(`unknown operator ${operator}`);
      return apply(left, value(node.right), state.budget);
    }
    case "FilterExpression":
      return applyFilter(state, node.filter, value(node.operand), scope);
    case "TestExpression":
      return runTest(node.test.value, value(node.operand), [], state.budget) !== node.negate;
    case "SelectExpression":
      return isTrue(value(node.test)) ? value(node.lhs) : undefinedOf("the condition was false, and there is no else");
    case "Ternary":
      return value(isTrue(value(node.condition)) ? node.trueExpr : node.falseExpr);
    default:
      throw fail(`${node.type} has no value`);
  }
}

function memberValue(state: State, node: Member, scope: Scope): Value {
  const object = valueOf(state, node.object, scope);
  const { property } = node;
  if (!node.computed) {
    if (property.type === "Identifier") return attributeOf(object, property.value, state.budget);
    return itemOf(object, valueOf(state, property, scope), state.budget);
  }
  if (property.type !== "SliceExpression") return itemOf(object, valueOf(state, property, scope), state.budget);
  const bound = (part: Node | undefined): number | undefined => {
    const value = part ? valueOf(state, part, scope) : null;
    if (value === null || typeof value === "number") return value ?? undefined;
    throw fail("slice indices must be integers or None");
  };
  const bounds: Bounds = { start: bound(property.start), stop: bound(property.stop), step: bound(property.step) };
  return sliceOf(object, bounds, state.budget);
}

function applyFilter(state: State, filter: Identifier | Call, value: Value, scope: Scope): Value {
  if (filter.type === "Identifier") return runFilter(filter.value, value, NO_ARGUMENTS, state.budget);
  if (filter.callee.type !== "Identifier") throw fail("expected the name of a filter");
  return runFilter(filter.callee.value, value, argumentsOf(state, filter.args, scope), state.budget);
}

const NO_ARGUMENTS: Arguments = { positional: [], named: new Map() };

function argumentsOf(state: State, nodes: readonly Node[], scope: Scope): Arguments {
  const positional: Value[] = [];
  const named = new Map<string, Value>();
  for (const node of nodes) {
    if (node.type === "KeywordArgumentExpression") named.set(node.key.value, valueOf(state, node.value, scope));
    else if (node.type === "SpreadExpression") {
      for (const item of itemsOf(valueOf(state, node.argument, scope), state.budget)) positional.push(item);
    } else if (node.type === "KeywordSpreadExpression") {
      const value = valueOf(state, node.argument, scope);
      if (!isDict(value)) throw fail(`argument after ** must be a mapping, not ${typeName(value)}`);
      state.budget.spend(value.entries.size);
      for (const [key, item] of value.entries) named.set(String(key), item);
    } else positional.push(valueOf(state, node, scope));
  }
  state.budget.spend(positional.length / 8);
  return { positional, named };
}

function deeper<T>(state: State, inner: () => T): T {
  if (++state.depth > MAX_DEPTH) throw new AppError("too_large", `chat template: nested deeper than ${MAX_DEPTH}`);
  const result = inner();
  state.depth--;
  return result;
}
