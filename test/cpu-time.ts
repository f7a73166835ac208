/** The processor time of this process, in milliseconds: what other work on the machine takes does not count. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
