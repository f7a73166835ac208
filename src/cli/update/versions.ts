/** The order of versions, as https://semver.org says: a version with a suffix comes before the one without. */

/** Returns whether version `a` comes after `b`. Both are `1.2.3` or `1.2.3-rc.1`. */
export function isNewer(a: string, b: string): boolean {
  return compare(a, b) > 0;
}

function compare(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (let i = 0; i < 3; i++) {
    if (left.numbers[i] !== right.numbers[i]) return left.numbers[i]! - right.numbers[i]!;
  }
  if (left.suffix === right.suffix) return 0;
  if (left.suffix === "" || right.suffix === "") return left.suffix === "" ? 1 : -1;
  return left.suffix.localeCompare(right.suffix, "en", { numeric: true });
}

function partsOf(version: string): { numbers: number[]; suffix: string } {
  const [numbers = "", ...suffix] = version.split("-");
  return { numbers: numbers.split(".").map(Number), suffix: suffix.join("-") };
}
