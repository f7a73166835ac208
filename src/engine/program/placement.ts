/** The devices that hold the layers of a model. */

/** A device with a part of a model. */
export interface PlacedPart {
  /** Displayed name. */
  readonly device: string;
  /** Layers, the output counted as one. */
  readonly layers: number;
  /** Number of other layers whose experts are on this device. */
  readonly experts?: number;
}

interface Placed {
  readonly device: string;
  readonly placement?: readonly PlacedPart[];
}

/** The devices of a session and their parts. @param layers of the session's program */
export const placementOf = ({ placement, device }: Placed, layers: number): readonly PlacedPart[] =>
  placement ?? [{ device, layers }];

/** A displayed text: "GPU 1: 20 of 33 layers, GPU 2: 8 layers, CPU: the others". */
export function describePlacement(placement: readonly PlacedPart[]): string {
  const all = placement.reduce((sum, { layers }) => sum + layers, 0);
  const last = placement.findLastIndex(({ layers }) => layers > 0);
  const layersOf = ({ layers }: PlacedPart, i: number): string => {
    if (i === 0) return layers === all ? `all ${all} layers` : `${layers} of ${all} layers`;
    return i === last ? "the others" : `${layers} layer${layers === 1 ? "" : "s"}`;
  };
  return placement
    .map((part, i) => {
      const { device, layers, experts = 0 } = part;
      const which = `the experts of ${experts} layer${experts === 1 ? "" : "s"}`;
      return `${device}: ${layers > 0 ? layersOf(part, i) : which}`;
    })
    .join(", ");
}
