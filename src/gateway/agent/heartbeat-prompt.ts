/** The prompt of a heartbeat. It names the waiting events, so that the model cannot answer without having read them. */
import { ACK_TOKEN } from "./ack.ts";

const ABOUT_EVENTS =
  "The system events above came in since your last turn. Decide whether people should hear of any of them. If so, " +
  "write what they need to know; your reply is sent to them. Do not repeat what they know, or what is on its way to them.";

const HOW_TO_ACKNOWLEDGE = `If nothing needs attention, reply with ${ACK_TOKEN} and nothing else.`;

/**
 * Undefined if there is nothing to ask.
 * @param own the operator's standing prompt
 */
export function heartbeatPrompt(own: string | undefined, hasEvents: boolean): string | undefined {
  if (own === undefined && !hasEvents) return undefined;
  return [...(hasEvents ? [ABOUT_EVENTS] : []), ...(own === undefined ? [] : [own]), HOW_TO_ACKNOWLEDGE].join("\n\n");
}
