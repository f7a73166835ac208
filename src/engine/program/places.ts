/** The devices that hold the layers of a model. */

/** A device with a part of a model. */
export interface Place {
  /** Displayed name. */
  readonly device: string;
  /** Layers, the output counted as one. */
  readonly layers: number;
  /** Number of other layers whose experts are on this device. */
  readonly experts?: number;
}

interface Placed {
  readonly device: string;
  readonly places?: readonly Place[];
}

/** The places of a session. @param layers of the session's program */
export const placesOf = ({ places, device }: Placed, layers: number): readonly Place[] =>
  places ?? [{ device, layers }];

/** A displayed text: "GPU 1: 20 of 33 layers, GPU 2: 8 layers, CPU: the others". */
export function describePlaces(places: readonly Place[]): string {
  const all = places.reduce((sum, { layers }) => sum + layers, 0);
  const last = places.findLastIndex(({ layers }) => layers > 0);
  const layersOf = ({ layers }: Place, i: number): string => {
    if (i === 0) return layers === all ? `all ${all} layers` : `${layers} of ${all} layers`;
    return i === last ? "the others" : `${layers} layer${layers === 1 ? "" : "s"}`;
  };
  return places
    .map((place, i) => {
      const { device, layers, experts = 0 } = place;
      const which = `the experts of ${experts} layer${experts === 1 ? "" : "s"}`;
      return `${device}: ${layers > 0 ? layersOf(place, i) : which}`;
    })
    .join(", ");
}
