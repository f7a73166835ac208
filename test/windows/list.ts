/** Tests that Windows runs, and those among them that do not pass there. */

/** Files and folders of test/. */
export const RUN: readonly string[] = [
  "base/available-memory.test.ts",
  "base/config/config.test.ts",
  "base/config/document.test.ts",
  "base/config/edit.test.ts",
  "base/held-files.test.ts",
  "base/macos.test.ts",
  "base/process-lock.test.ts",
  "cli/gpu-memory.test.ts",
  "cli/run/editor.test.ts",
  "e2e/anywhere.test.ts",
  "engine/backends/index.test.ts",
  "engine/backends/kept-file.test.ts",
  "engine/backends/machines.test.ts",
  "engine/backends/offload.test.ts",
  "engine/backends/onnx/folders.test.ts",
  "engine/backends/onnx/windows-cores.test.ts",
  "engine/backends/processor.test.ts",
  "engine/backends/wasm.test.ts",
  "engine/formats/files/map.test.ts",
  "engine/formats/files/read-ahead.test.ts",
  "engine/formats/files/snapshots.test.ts",
  "engine/formats/files/write.test.ts",
  "engine/formats/gguf/read.test.ts",
];

export interface Failing {
  /** Its name, as bun prints it. */
  readonly test: string;
  readonly reason: string;
  /** Part of its output when it fails for that reason. */
  readonly says: string;
}

/** A test that is listed here must fail, for its reason: one that passes leaves the list. */
export const FAILING: readonly Failing[] = [
  {
    test: "a missing file, a folder, a pipe and an empty file are errors that say so",
    reason: "it has no mkfifo",
    says: "mkfifo",
  },
  {
    test: "an invalid setting is an error naming setting, place, value and expectation > a path or an include that is not a regular file is refused",
    reason: "it has no mkfifo",
    says: "mkfifo",
  },
  {
    test: "includes > through a link that leads out of the folder are refused",
    reason: "the link leads to a file of Linux, which is not there",
    says: "ENOENT",
  },
  {
    test: 'variables of Ollama set the same settings > {"HEARTH_HOME":"/h"}',
    reason: "the paths that it expects have slashes",
    says: "models",
  },
  {
    test: "nothing set gives the documented defaults",
    reason: "the paths that it expects have slashes",
    says: "\\nowhere",
  },
  {
    test: "a written snapshot is read by the next process, in the same scope only",
    reason: "access lists keep files private there, and every mode is 0o666",
    says: "Received: 54",
  },
  {
    test: "a folder in place of a snapshot that cannot be removed is ignored",
    reason: "it cleans up a folder that is gone, which wine refuses",
    says: "ENOENT",
  },
  {
    test: "(unnamed)",
    reason: "config.test.ts cleans up a folder that is gone, which wine refuses",
    says: "hearth-config-",
  },
];
