/** The parts of the gateway that the server serves: webhooks, their answers, administration. */
export type { ModelSource } from "./agent/models.ts";
export type { Admin } from "./hooks/admin/admin.ts";
export {
  approvalsSchema,
  cancelledSchema,
  decidedSchema,
  detailsSchema,
  dryRunSchema,
  filterFields,
  findingsSchema,
  mappingsSchema,
  nodesSchema,
  pageSchema,
  pausedSchema,
  replayedPageSchema,
  replayedSchema,
} from "./hooks/admin/answers.ts";
export { UNIX_PEER } from "./hooks/ingress/address.ts";
export type { Ingress } from "./hooks/ingress/ingress.ts";
export type { IngressDescription } from "./hooks/ingress/openapi/describe.ts";
export type { HookReply } from "./hooks/ingress/ports.ts";
export { Refusal } from "./hooks/ingress/problems.ts";
export { refusalReply } from "./hooks/ingress/reply.ts";
export { parseListen, type HooksListen } from "./hooks/listen.ts";
export { mailStatusSchema } from "./hooks/mail/status.ts";
export { REPLAYABLE } from "./hooks/queue/deliveries/replayable.ts";
export { isOver, type RunNews } from "./hooks/queue/worker/watch.ts";
export type { Gateway } from "./operate/gateway.ts";
export { configurations } from "./operate/nodes.ts";
export type { GatewayStatus } from "./operate/status.ts";
