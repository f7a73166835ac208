/** Where the server is between its start and its end, as probes and load balancers are told. */

export interface Life {
  /** `draining`: it was told to stop, still answers, and wants no new senders. */
  phase: "starting" | "serving" | "draining";
}
