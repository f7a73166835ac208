/** The processor time of this process, in milliseconds: independent of other work on the machine. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
