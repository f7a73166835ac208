/** The agent: turns on its sessions. Who asks for one sees to it that no other of its session runs. */
import { runTurn, type TurnParts, type TurnRequest, type TurnResult } from "./turn.ts";

export interface Agent {
  /** Never rejects: a failure is a status. Changes nothing durable. */
  run(request: TurnRequest): Promise<TurnResult>;
}

export const makeAgent = (parts: TurnParts): Agent => ({ run: (request) => runTurn(parts, request) });
