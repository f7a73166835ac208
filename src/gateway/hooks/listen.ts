/** The address of a separate listener for hooks. */
import { isIPv6 } from "node:net";
import { type Address, parseAddress } from "../../base/config/index.ts";

/** Bytes of a socket's path on Linux, without the NUL at its end; other systems allow a few less and report it. */
const SOCKET_PATH_BYTES_MAX = 107;

export const LISTEN_EXPECTED = `expected host:port, or unix:/path of at most ${SOCKET_PATH_BYTES_MAX} bytes`;

export type HooksListen = Address | { readonly unix: string };

/** `host:port`, `:port` on loopback, or `unix:/path`; undefined for anything else. */
export function parseListen(text: string): HooksListen | undefined {
  if (!text.startsWith("unix:")) {
    const hasPort = /:\d+$/.test(text) && !text.includes("//") && !isIPv6(text);
    return hasPort ? parseAddress(text) : undefined;
  }
  const path = text.slice("unix:".length);
  const isPath = path.startsWith("/") && !path.endsWith("/") && !path.includes("\0");
  return isPath && Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX ? { unix: path } : undefined;
}
