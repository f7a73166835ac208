/** The backends, best first, with the traits that are needed before one is loaded. */
interface Traits {
  /** Runs on a GPU. */
  readonly onGpu?: true;
  /** True if it accepts no vectors as rows, so it encodes no images. */
  readonly tokensOnly?: true;
  /** True if it copies the weights into another layout in addition to the mapped file. */
  readonly repacks?: true;
  /** The rows of a run may have different adapters. */
  readonly adaptersByRow?: true;
}

const BACKENDS = {
  webgpu: { onGpu: true, adaptersByRow: true },
  simd: { adaptersByRow: true },
  wasm: { adaptersByRow: true },
  onnx: { tokensOnly: true, repacks: true },
  cpu: { adaptersByRow: true },
} as const satisfies Record<string, Traits>;

export type BackendName = keyof typeof BACKENDS;

/** Maximum adapters of a row, where rows may have different ones. */
export const ADAPTERS_MAX = 8;

/** The values of the backend setting. */
export const BACKEND_CHOICES: readonly ("auto" | BackendName)[] = [
  "auto",
  ...(Object.keys(BACKENDS) as BackendName[]), // keys of the object above
];

/** "auto, webgpu, … or cpu". */
export const BACKENDS_IN_WORDS = BACKEND_CHOICES.join(", ").replace(/, (\w+)$/, " or $1");

/** The traits of a backend, or of two that share a model (`webgpu+simd`). */
export function backendTraits(name: string): Traits {
  const traits = Object.entries<Traits>(BACKENDS).flatMap(([each, own]) =>
    name.split("+").includes(each) ? [own] : [],
  );
  const { adaptersByRow, ...either } = Object.assign({}, ...traits) as Traits;
  // a row passes through both backends
  return { ...either, ...(adaptersByRow && traits.every((each) => each.adaptersByRow) && { adaptersByRow }) };
}
