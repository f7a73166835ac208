/** `hearth service`: installs, removes and shows the user's own service. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { dirname } from "node:path";
import { AppError } from "../../base/index.ts";
import { selfCommand, storageError } from "../../base/system.ts";
import { ReportedFailure } from "../terminal/context.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { planFor, type Plan } from "./plans.ts";

/** @param domain of Windows, or the computer's name for a user of this computer alone */
function planHere(domain?: string): Plan {
  const { username } = userInfo();
  return planFor(process.platform, {
    command: selfCommand(),
    home: homedir(),
    userId: process.getuid?.() ?? 0,
    userName: domain ? `${domain}\\${username}` : username,
  });
}

/** @param isShown true: only prints the file and the commands */
export async function installService(
  terminal: Terminal,
  { print: isShown = false, domain }: { print?: boolean; domain: string | undefined },
): Promise<void> {
  const { file, before = [], install, hint } = planHere(domain);
  const temporary = selfCommand().find((word) => /[\\/]_npx[\\/]/.test(word));
  if (temporary !== undefined)
    throw new AppError(
      "unsupported",
      `npx removes '${temporary}' some day: npm install --global hearth-llm, then again`,
    );
  if (isShown) {
    terminal.write(`${file.path}:\n\n${file.text}\n${install.map((command) => `${command.join(" ")}\n`).join("")}`);
    return;
  }
  try {
    await mkdir(dirname(file.path), { recursive: true });
    await writeFile(file.path, file.isUtf16 ? Buffer.from(`\ufeff${file.text}`, "utf16le") : file.text);
  } catch (error) {
    throw storageError(error, dirname(file.path));
  }
  for (const command of before) await run(command).catch(() => {});
  for (const command of install) await run(command);
  terminal.note(`the service runs: hearth service status; ${hint}`);
}

export async function uninstallService(terminal: Terminal): Promise<void> {
  const { file, uninstall } = planHere();
  const problems: string[] = [];
  // it may be installed in part
  for (const command of uninstall) await run(command).catch((error: Error) => problems.push(error.message));
  await rm(file.path, { force: true });
  if (problems.length > 0) throw new AppError("not_found", problems.join("; "));
  terminal.note("the service is removed; models and settings stay");
}

/**
 * Shows the output of the system's own command. Fails if the command fails, such as for a service that does not run.
 */
export async function showService(terminal: Terminal): Promise<void> {
  const { status } = planHere();
  const child = start(status, "pipe");
  terminal.write(await new Response(child.stdout).text());
  const errors = (await new Response(child.stderr).text()).trim();
  if (errors !== "") terminal.note(`${status.join(" ")}: ${errors}`);
  if ((await child.exited) !== 0) throw new ReportedFailure();
}

/** Throws `unsupported` for a program that is missing, or that fails. */
async function run(command: readonly string[]): Promise<void> {
  const child = start(command, "ignore");
  const errors = (await new Response(child.stderr).text()).trim();
  if ((await child.exited) === 0) return;
  throw new AppError("unsupported", `${command.join(" ")}: ${errors || `exit code ${child.exitCode}`}`);
}

function start<Out extends "pipe" | "ignore">(command: readonly string[], stdout: Out) {
  try {
    return Bun.spawn([...command], { stdin: "ignore", stdout, stderr: "pipe" });
  } catch (error) {
    throw new AppError("unsupported", `'${command[0]}' cannot be started here: this system has no such services`, {
      cause: error,
    });
  }
}
