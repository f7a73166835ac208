/** An IMAP server with scripted answers. */
import { afterTest } from "../../../cleanups.ts";

/** Calls `answer` for each command with the tag, the name in capitals and the line. Returns its port. */
export function startScripted(
  answer: (socket: Bun.Socket<undefined>, command: { tag: string; name: string; line: string }) => void,
): number {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => void socket.write("* OK [CAPABILITY IMAP4rev1] ready\r\n"),
      data(socket, bytes) {
        for (const line of bytes.toString().split("\r\n").slice(0, -1)) {
          const [tag = "", name = ""] = line.split(" ");
          answer(socket, { tag, name: name.toUpperCase(), line });
        }
      },
    },
  });
  afterTest(() => server.stop(true));
  return server.port;
}
