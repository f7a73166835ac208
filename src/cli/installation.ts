/** Commands about the program itself, with their flags. */
import type { Command } from "commander";
import { failing, type CliParts } from "./terminal/failing.ts";
import type { UpdateOptions } from "./update/update.ts";

export function addInstallationCommands(program: Command, parts: CliParts): void {
  program
    .command("update")
    .description("replace this program by the newest release, once its signature is checked")
    .option("--check", "only say whether there is one")
    .option("--rollback", "go back to the program before; a second time goes forward again")
    .option("--gpu", "fetch the GPU library that this program was made without")
    .option("--downgrade", "install a release that is older than this program, too")
    .option("--url <address>", "where releases are; else HEARTH_UPDATE_URL, else as this program was made")
    .option("--key <key>", "minisign's public key of releases; else HEARTH_UPDATE_KEY, else as this program was made")
    .action(
      failing(parts, async (terminal, options: UpdateOptions) => {
        const { contextHere, update } = await import("./update/update.ts");
        await update(contextHere(terminal, parts.env), options);
      }),
    );
  const service = program.command("service").description("let Hearth start when you log in");
  const load = () => import("./service/service.ts");
  service
    .command("install")
    .description("install and start it")
    .option("--print", "only print the service's file and the commands")
    .action(
      failing(parts, async (terminal, options: { print?: boolean }) =>
        (await load()).installService(terminal, { ...options, domain: parts.env["USERDOMAIN"] }),
      ),
    );
  service
    .command("uninstall")
    .description("stop and remove it")
    .action(failing(parts, async (terminal) => (await load()).uninstallService(terminal)));
  service
    .command("status")
    .description("show the service's state as the system reports it")
    .action(failing(parts, async (terminal) => (await load()).showService(terminal)));
}
