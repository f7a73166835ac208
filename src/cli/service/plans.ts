/**
 * A user's own service on each system: the file that describes it, and the commands that install, stop and show it. It
 * starts at login. A service of the whole machine is `packaging/hearth.service`.
 */
import { join, win32 } from "node:path";
import { AppError } from "../../base/index.ts";

export interface Plan {
  /** UTF-16 with its mark for Windows' tasks, else UTF-8. */
  readonly file: { readonly path: string; readonly text: string; readonly isUtf16: boolean };
  /** Commands that may fail, such as one that stops what is not there. */
  readonly before?: readonly (readonly string[])[];
  readonly install: readonly (readonly string[])[];
  readonly uninstall: readonly (readonly string[])[];
  readonly status: readonly string[];
  /** A line to display. */
  readonly hint: string;
}

export interface Person {
  /** The command line that starts this program, without arguments. */
  readonly command: readonly string[];
  readonly home: string;
  readonly userId: number;
  /** With the domain on Windows: `LAPTOP\anna`. */
  readonly userName: string;
}

/** Throws `unsupported` on other systems. */
export function planFor(platform: NodeJS.Platform, person: Person): Plan {
  const plans: Partial<Record<NodeJS.Platform, (person: Person) => Plan>> = {
    linux: systemd,
    darwin: launchd,
    win32: task,
  };
  const plan = plans[platform];
  if (!plan) throw new AppError("unsupported", `services: expected Linux, macOS or Windows, got ${platform}`);
  return plan(person);
}

const UNIT = "hearth.service";

function systemd({ command, home }: Person): Plan {
  const path = join(home, ".config/systemd/user", UNIT);
  // quotes hold blanks; % and $ begin names of systemd and variables
  const quoted = (word: string): string => `"${word.replace(/["\\]/g, String.raw`\$&`).replace(/[%$]/g, "$&$&")}"`;
  const text = `[Unit]
Description=Hearth, a server for language models

[Service]
ExecStart=${[...command, "serve"].map(quoted).join(" ")}
Restart=on-failure
RestartSec=3
KillMode=mixed
TimeoutStopSec=30

[Install]
WantedBy=default.target
`;
  const systemctl = (...args: string[]): string[] => ["systemctl", "--user", ...args];
  return {
    file: { path, text, isUtf16: false },
    install: [systemctl("daemon-reload"), systemctl("enable", "--now", UNIT)],
    uninstall: [systemctl("disable", "--now", UNIT)],
    status: systemctl("status", "--no-pager", UNIT),
    hint: "it starts when you log in; before that, too, after: loginctl enable-linger",
  };
}

const LABEL = "org.hearth";

function launchd({ command, home, userId }: Person): Plan {
  const path = join(home, "Library/LaunchAgents", `${LABEL}.plist`);
  const log = join(home, "Library/Logs/hearth.log");
  const words = [...command, "serve"].map((word) => `    <string>${escaped(word)}</string>`);
  // Interactive: macOS slows down other background processes
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${words.join("\n")}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ProcessType</key>
  <string>Interactive</string>
  <key>ExitTimeOut</key>
  <integer>30</integer>
  <key>StandardOutPath</key>
  <string>${escaped(log)}</string>
  <key>StandardErrorPath</key>
  <string>${escaped(log)}</string>
</dict>
</plist>
`;
  const domain = `gui/${userId}`;
  const bootout = ["launchctl", "bootout", `${domain}/${LABEL}`];
  return {
    file: { path, text, isUtf16: false },
    before: [bootout], // a label that is loaded cannot be loaded again
    install: [
      ["launchctl", "enable", `${domain}/${LABEL}`],
      ["launchctl", "bootstrap", domain, path],
    ],
    uninstall: [bootout],
    status: ["launchctl", "print", `${domain}/${LABEL}`],
    hint: `its log is ${log}`,
  };
}

const TASK = "Hearth";

/**
 * A user without administrator's rights may only have a trigger and a principal of his own: "Registering a Task" of
 * [MS-TSCH]. Priority 7, the default, is for background work: below normal, with slow reads of the disk.
 */
function task({ command, home, userName }: Person): Plan {
  const path = win32.join(home, ".hearth", "service.xml");
  // a console program gets a window, unless the console's host runs without one
  const words = ["--headless", ...command, "serve"].map((word) => (/\s/.test(word) ? `"${word}"` : word));
  const text = `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Hearth, a server for language models</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>${escaped(userName)}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${escaped(userName)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <Priority>4</Priority>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>3</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>${escaped(words.join(" "))}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
  const schtasks = (verb: string, ...args: string[]): string[] => ["schtasks", verb, "/TN", TASK, ...args];
  return {
    file: { path, text, isUtf16: true },
    install: [schtasks("/Create", "/XML", path, "/F"), schtasks("/Run")],
    uninstall: [schtasks("/End"), schtasks("/Delete", "/F")],
    status: schtasks("/Query", "/V", "/FO", "LIST"),
    hint: "it starts when you log on; ending the task stops it at once, and loses nothing that was accepted",
  };
}

/** A text within XML. */
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
