/** What a tool of the agent is. One file per tool, and a line in the registry. */
import type { z } from "zod";
import type { Database } from "../../base/database.ts";

export interface ToolContext {
  readonly db: Database;
  /** The session whose turn this is; a tool sees no other. */
  readonly sessionKey: string;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly signal: AbortSignal;
}

export interface AgentTool<Arguments = unknown> {
  readonly name: string;
  /** For the model to read. */
  readonly description: string;
  readonly schema: z.ZodType<Arguments>;
  /** What the model is told. What it throws is told too, as an error, and does not end the turn. */
  run(args: Arguments, context: ToolContext): string | Promise<string>;
}

/** Keeps a tool's schema and its arguments together while the registry holds tools of every kind. */
export const defineTool = <Arguments>(tool: AgentTool<Arguments>): AgentTool =>
  // run only ever gets what the tool's own schema let through
  tool as AgentTool;
