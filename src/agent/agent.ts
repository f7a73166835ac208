/** The agent: turns in their lanes. What runs hooks and what beats the heart both go through it. */
import { AppError } from "../base/errors.ts";
import { Lanes } from "./lanes.ts";
import { agentOf, mainSessionKey } from "./session-key.ts";
import { runTurn, type TurnParts, type TurnRequest, type TurnResult } from "./turn.ts";

export interface Agent {
  /**
   * Runs a turn once no other of its session runs. A failure is a status.
   * @param settle stores the result; the session's next turn begins after it. What it throws is thrown
   */
  run(request: TurnRequest, settle?: (result: TurnResult) => Promise<void>): Promise<TurnResult>;
  /** Turns that run. */
  running(): number;
}

export function makeAgent(parts: TurnParts): Agent {
  const lanes = new Lanes(() => parts.settings().agents.defaults.maxConcurrent);
  return {
    running: () => lanes.running,
    async run(request, settle) {
      const { sessionKey, signal } = request;
      const isExempt = sessionKey === mainSessionKey(parts.settings().session, agentOf(sessionKey));
      let begun = false;
      try {
        return await lanes.run({ key: sessionKey, isExempt, signal }, async () => {
          begun = true;
          const result = await runTurn(parts, request);
          await settle?.(result);
          return result;
        });
      } catch (error) {
        if (begun || !(error instanceof AppError) || error.code !== "cancelled") throw error;
        return neverBegan(error.message);
      }
    },
  };
}

const neverBegan = (error: string): TurnResult => ({
  text: "",
  status: "cancelled",
  error,
  isTruncated: false,
  usage: { promptTokens: 0, completionTokens: 0, rounds: 0, toolCalls: 0 },
  record: { entries: [], seen: [] },
});
