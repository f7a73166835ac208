/** Files, memory, processes and addresses of this machine. */
export { availableMemory, residentBytes, totalMemory } from "./available-memory.ts";
export { collectWhenIdle } from "./collect-idle.ts";
export {
  copyBytes,
  makePrivate,
  putInPlace,
  removeFile,
  removeLeftovers,
  storageError,
  syncFolder,
  writeBytes,
  writeChunks,
  writeDurably,
} from "./durable.ts";
export { patiently, replaceFile } from "./held-files.ts";
export { groupsOf, isNetwork, isWithin, parseAddress, parseNetworks, type Networks } from "./networks.ts";
export { flushDrive } from "./flush-drive.ts";
export { openLibc } from "./libc.ts";
export { MAC_FACTS, type MacFacts } from "./mac-facts.ts";
export { endedEarly, notRegular, openError, reading, readingSync } from "./open-error.ts";
export { dieBeforeParent, dieWithParent } from "./parent-death.ts";
export { takeLock, type ProcessLock } from "./process-lock.ts";
export {
  apartFolder,
  checkOwnFolder,
  hasInside,
  machineCache,
  packageFolder,
  programFile,
  scriptEnv,
  selfCommand,
} from "./program-files.ts";
export { isPublicAddress } from "./public-address.ts";
export { shipped } from "./shipped.ts";
export { fromWire, toWire } from "./wire.ts";
