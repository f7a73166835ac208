/** Discrete Fourier transforms of any length; fast for lengths with small prime factors. */

export interface Fft {
  /** The transform of `size` complex values. The result is valid up to the next call. */
  transform(re: Float64Array, im: Float64Array): { readonly re: Float64Array; readonly im: Float64Array };
  /**
   * The squared magnitudes of the first `size / 2 + 1` frequencies of two real signals at once.
   * @param a and b have `size` values each
   */
  powers(a: Float64Array, b: Float64Array, out: { a: Float64Array; b: Float64Array }): void;
}

export function makeFft(size: number): Fft {
  const [cos, sin] = [new Float64Array(size), new Float64Array(size)];
  for (let i = 0; i < size; i++) {
    cos[i] = Math.cos((2 * Math.PI * i) / size);
    sin[i] = -Math.sin((2 * Math.PI * i) / size);
  }
  const [re, im] = [new Float64Array(size), new Float64Array(size)];
  const [re2, im2] = [new Float64Array(size), new Float64Array(size)];

  /**
   * Transforms `length` values, which lie `step` apart and begin at `from`, into `length` values at `to`. Each level of
   * the recursion reads the results of its parts from the other pair of arrays, at the same offsets.
   */
  const transform = (source: { re: Float64Array; im: Float64Array }, from: number, step: number, at: Place): void => {
    const { length, to, re: outRe, im: outIm, re2: partRe, im2: partIm } = at;
    const radix = smallestFactor(length);
    const part = length / radix;
    if (part > 1)
      for (let r = 0; r < radix; r++)
        transform(source, from + r * step, step * radix, {
          length: part,
          to: to + r * part,
          re: partRe,
          im: partIm,
          re2: outRe,
          im2: outIm,
        });
    else
      for (let r = 0; r < radix; r++) {
        partRe[to + r] = source.re[from + r * step]!;
        partIm[to + r] = source.im[from + r * step]!;
      }
    for (let k = 0; k < length; k++) {
      let sumRe = 0;
      let sumIm = 0;
      let index = to + (k % part);
      let turn = 0;
      for (let r = 0; r < radix; r++) {
        sumRe += partRe[index]! * cos[turn]! - partIm[index]! * sin[turn]!;
        sumIm += partRe[index]! * sin[turn]! + partIm[index]! * cos[turn]!;
        index += part;
        turn += k * step; // below `size`
        if (turn >= size) turn -= size;
      }
      outRe[to + k] = sumRe;
      outIm[to + k] = sumIm;
    }
  };
  return {
    transform(a, b) {
      transform({ re: a, im: b }, 0, 1, { length: size, to: 0, re, im, re2, im2 });
      return { re, im };
    },
    powers(a, b, out) {
      transform({ re: a, im: b }, 0, 1, { length: size, to: 0, re, im, re2, im2 });
      // the transforms of two real signals are the even and the odd part of the transform of one complex signal
      for (let k = 0; k <= size / 2; k++) {
        const other = (size - k) % size;
        out.a[k] = ((re[k]! + re[other]!) ** 2 + (im[k]! - im[other]!) ** 2) / 4;
        out.b[k] = ((im[k]! + im[other]!) ** 2 + (re[k]! - re[other]!) ** 2) / 4;
      }
    },
  };
}

/** Destination of a part of the transform, and the arrays with the results of its parts. */
interface Place {
  readonly length: number;
  readonly to: number;
  readonly re: Float64Array;
  readonly im: Float64Array;
  readonly re2: Float64Array;
  readonly im2: Float64Array;
}

function smallestFactor(length: number): number {
  if (length % 4 === 0) return 4;
  for (let factor = 2; factor * factor <= length; factor++) if (length % factor === 0) return factor;
  return length;
}
