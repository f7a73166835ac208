/** The phase of the server's life, for probes and load balancers. */

export interface Lifecycle {
  /** `draining`: it is stopping, still answers, and wants no new clients. */
  phase: "starting" | "serving" | "draining";
}
