/** What runs compete as: fairness and limits are per lane, a mapping's or a fixed endpoint's. */

/** Equal for what competes together. Nothing reads it: what a run's mapping is stands beside it. */
export const laneOf = ({ mappingId, path }: { mappingId?: string | undefined; path: string }): string =>
  mappingId === undefined ? path : `mapping ${mappingId}`; // no path has a blank
