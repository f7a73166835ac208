/** Programs that a package manager installed: it keeps a list of its files, so only it may replace them. */
/** The npm package's name: `hearth` belongs to another program. */
const NPM_PACKAGE = "hearth-llm";

/** Parts of a program's path, and the command that brings the next version. */
const MANAGERS: readonly (readonly [path: RegExp, command: string])[] = [
  [/[\\/]Cellar[\\/]/, "brew upgrade hearth"],
  [/[\\/]scoop[\\/]apps[\\/]/i, "scoop update hearth"],
  [/[\\/]WinGet[\\/]Packages[\\/]/i, "winget upgrade Hearth.Hearth"],
  [/[\\/]_npx[\\/]/, `npx --yes ${NPM_PACKAGE}@latest`],
  [/[\\/]node_modules[\\/]|[\\/]hearth[\\/]npm-[^\\/]+[\\/]/, `npm install --global ${NPM_PACKAGE}@latest`],
  [/^\/usr\/bin\/[^/]+$/, "sudo apt-get install ./hearth_VERSION_ARCHITECTURE.deb, with the new release's file"],
];

/**
 * The command that updates a program which does not update itself; undefined: it updates itself.
 * @param program its path, with links resolved
 */
export const updatedBy = (program: string): string | undefined => MANAGERS.find(([path]) => path.test(program))?.[1];
