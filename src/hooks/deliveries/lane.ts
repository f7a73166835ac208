/** What runs compete as: fairness and limits are per lane, a mapping's or a fixed endpoint's. */

const OF_MAPPING = "mapping "; // no path has a blank

export const laneOf = ({ mappingId, path }: { mappingId?: string | undefined; path: string }): string =>
  mappingId === undefined ? path : OF_MAPPING + mappingId;

/** Undefined: a fixed endpoint's lane. */
export const mappingOfLane = (lane: string): string | undefined =>
  lane.startsWith(OF_MAPPING) ? lane.slice(OF_MAPPING.length) : undefined;
