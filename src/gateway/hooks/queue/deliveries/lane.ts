/** Lanes: fairness and limits apply per lane, which is a mapping or a fixed endpoint. */

/** A key for comparison only; a run stores its mapping separately. */
export const laneOf = ({ mappingId, path }: { mappingId?: string | undefined; path: string }): string =>
  mappingId === undefined ? path : `mapping ${mappingId}`; // a path has no blank
