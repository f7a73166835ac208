/** The agent runs turns on its sessions. The caller runs at most one turn of a session at a time. */
import { runTurn, type TurnParts, type TurnRequest, type TurnResult } from "./turn.ts";

export interface Agent {
  /** Never rejects: a failure is a status. Stores nothing. */
  run(request: TurnRequest): Promise<TurnResult>;
}

export const makeAgent = (parts: TurnParts): Agent => ({ run: (request) => runTurn(parts, request) });
