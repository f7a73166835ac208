/** The interface of the agent's tools. One file per tool, and a line in the registry. */
import type { TObject } from "@sinclair/typebox";
import { type Output, reader, type Reader } from "../../../base/schema.ts";
import type { Store } from "../../database/store.ts";

export interface ToolContext {
  readonly store: Store;
  /** The session of this turn; a tool sees no other. */
  readonly sessionKey: string;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly signal: AbortSignal;
}

export interface AgentTool {
  readonly name: string;
  /** Description for the model. */
  readonly description: string;
  /** True if the result may hold words of outsiders, which go behind the safety boundary. */
  readonly isOutside?: boolean;
  /** Schema of the arguments. */
  readonly schema: Reader<unknown>;
  /** Returns the result for the model. An error becomes the result, and does not end the turn. */
  run(args: unknown, context: ToolContext): string | Promise<string>;
}

interface ToolParts<S extends TObject> extends Pick<AgentTool, "name" | "description" | "isOutside"> {
  readonly schema: S;
  run(args: Output<S>, context: ToolContext): string | Promise<string>;
}

/** Ties a tool's schema to its arguments, while the registry holds tools of every kind. */
export const defineTool = <S extends TObject>({ schema, run, ...about }: ToolParts<S>): AgentTool => ({
  ...about,
  schema: reader(schema),
  run: (args, context) => run(args as Output<S>, context), // run gets only arguments that passed the tool's schema
});
