/** The phase of the server's life, for probes and load balancers. */

export interface Lifecycle {
  /** `draining`: it is about to stop, still answers, and should get no new clients. */
  phase: "starting" | "serving" | "draining";
}
