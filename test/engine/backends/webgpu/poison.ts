/** Fills the workgroup memory of kernels with NaN before they run, to show reads of memory that was never written. */

/** Variables in workgroup memory: their name, element type and length. */
const ARRAY = /^var<workgroup> (\w+): array<(f32|u32|i32|vec[24]<(?:f32|u32)>|Stored), (.+)>;/gm;
const SCALAR = /^var<workgroup> (\w+): (f32|u32|vec[24]<(?:f32|u32)>);/gm;
const MAIN = /^(@compute[^{]*fn main\([^{]*\{)\n/m;
const NAN_BITS = "0x7fc00000u";

/** A source whose `main` begins by filling everything. Other kinds of variables, such as atomics, stay as they are. */
export function poisoned(code: string): string {
  const main = MAIN.exec(code);
  if (!main) return code;
  const t = /thread: Thread/.test(main[1]!) ? "thread.t" : /\bt: u32/.test(main[1]!) ? "t" : undefined;
  const valueOf = (type: string): string => {
    if (type === "u32" || type === "i32") return `${type}(poison_bits)`;
    if (type.includes("u32")) return `${type}(poison_bits)`;
    return type === "f32" ? "bitcast<f32>(poison_bits)" : `${type}(bitcast<f32>(poison_bits))`;
  };
  const fills = [
    ...[...code.matchAll(ARRAY)].map(
      ([, name, type, length]) =>
        `  for (var i = ${t}; i < ${length}; i += POISON_STEP) { ${name}[i] = ${valueOf(type!)}; }`,
    ),
    ...[...code.matchAll(SCALAR)].map(([, name, type]) => `  if (${t} == 0u) { ${name} = ${valueOf(type!)}; }`),
  ];
  if (fills.length === 0 || t === undefined) return code;
  const size = /@workgroup_size\((\w+)\)/.exec(main[1]!)![1]!;
  const step = /^\d+$/.test(size) ? `${size}u` : size;
  const text = fills.join("\n").replaceAll("POISON_STEP", step);
  const prologue = `  var poison_bits = ${NAN_BITS}; // a constant would be refused\n${text}\n  workgroupBarrier();\n`;
  return code.replace(MAIN, (_, head: string) => `${head}\n${prologue}`);
}
