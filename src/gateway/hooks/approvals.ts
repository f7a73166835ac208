/** Approvals for operators, and for chats: a message `yes CODE` or `no CODE` in the chat that was asked decides. */
import { type Approval, chatOf, decide, listApprovals, type Verdict } from "../agent/calls/approvals.ts";
import { operator, plain } from "../agent/boundary/tainted-text.ts";
import { AppError } from "../../base/index.ts";
import type { Peers } from "../database/peers.ts";
import type { Transaction, Store } from "../database/store.ts";
import type { HookAction } from "./action.ts";
import type { Deliveries } from "./queue/deliveries/deliveries.ts";
import type { AcceptRequest } from "./queue/deliveries/request.ts";
import type { WorkerPorts } from "./queue/worker/ports.ts";
import type { Worker } from "./queue/worker/worker.ts";

export interface Approvals {
  /** The calls that wait, the oldest first. */
  list(): Promise<readonly Approval[]>;
  /**
   * Throws `not_found`, or `conflict` if it is over, decided otherwise, or for another digest.
   * @param code in any case
   */
  decide(code: string, verdict: Pick<Verdict, "verdict" | "digest" | "by">): Promise<Approval>;
  /** Accepts a request; an answer to an approval becomes a note for the main session instead of a turn. */
  readonly accept: Deliveries["accept"];
}

export interface ApprovalDeps {
  readonly store: Store;
  readonly ports: Pick<WorkerPorts, "resolveTarget" | "addReply" | "sendReplies">;
  readonly now: () => number;
  readonly deliveries: Pick<Deliveries, "accept">;
  readonly worker: Pick<Worker, "poke">;
  readonly peers: Pick<Peers, "tell">;
}

/** A line that contains only the answer, perhaps after a label and names of those addressed, as presets write them. */
const ANSWER = /^(?:[A-Za-z]+:[ \t]*)?(?:<@\w+>[ \t]*)*(yes|no)[ \t]+([2-9A-Z]{8})[.!]?$/i;

export function makeApprovals({ store, ports, now, deliveries, worker, peers }: ApprovalDeps): Approvals {
  /** The run may continue, on any node. */
  const onDecided = (): void => {
    worker.poke();
    peers.tell("turns");
  };
  const settle = async (action: HookAction): Promise<HookAction> => {
    const answer = answerIn(action);
    if (!answer) return action;
    const { verdict, code } = answer;
    const decided = await store.write(() => decideInChat(action, answer, { ports, now: now() }));
    if (decided === undefined) return action;
    onDecided();
    ports.sendReplies();
    const { isWrapped, itemId } = action;
    const text = operator(`Approval ${code} was answered with '${verdict}': ${decided.tool}.`);
    return { kind: "wake", text, mode: "next-heartbeat", isWrapped, ...(itemId === undefined ? {} : { itemId }) };
  };
  return {
    list: () => store.read(() => listApprovals(now())),
    async decide(code, verdict) {
      const decided = await store.write(() => decide(code.toUpperCase(), { ...verdict, now: now() }));
      onDecided();
      return decided;
    },
    async accept(request: AcceptRequest) {
      if (!request.actions.some(answerIn)) return deliveries.accept(request);
      const actions: HookAction[] = [];
      for (const action of request.actions) actions.push(await settle(action));
      return deliveries.accept({ ...request, actions });
    },
  };
}

interface Answer {
  readonly verdict: "yes" | "no";
  readonly code: string;
}

function answerIn(action: HookAction): Answer | undefined {
  if (action.kind !== "agent") return undefined;
  const said = plain(action.message.filter(({ from }) => from === "external"));
  for (const line of said.length > 10_000 ? [] : said.split(/\r?\n/)) {
    const [, word = "", code = ""] = ANSWER.exec(line.trim()) ?? [];
    if (code !== "") return { verdict: word.toLowerCase() === "yes" ? "yes" : "no", code: code.toUpperCase() };
  }
  return undefined;
}

/** Undefined: the message is not from the chat that was asked, or it is too late. */
function* decideInChat(
  action: HookAction,
  { verdict, code }: Answer,
  { ports, now }: Pick<ApprovalDeps, "ports"> & { readonly now: number },
): Transaction<Approval | undefined> {
  const asked = yield* chatOf(code);
  if (!asked || action.kind !== "agent") return undefined;
  const { channel, to } = action;
  const chat = yield* ports.resolveTarget({ channel, ...(to === undefined ? {} : { to }) });
  if ("reason" in chat || chat.channel !== asked.channel || chat.to !== asked.to) return undefined;
  try {
    const decided = yield* decide(code, { verdict, by: `${chat.channel} ${chat.to}`, now });
    const text =
      verdict === "yes" ? `Allowed: ${decided.tool} is called once.` : `Refused: ${decided.tool} is not called.`;
    yield* ports.addReply({ groupId: `approval:${code}:${verdict}`, target: chat, text, now });
    return decided;
  } catch (error) {
    if (error instanceof AppError && error.code === "conflict") return undefined;
    throw error;
  }
}
