/** Writes WAV files, including invalid ones. */

interface WavOptions {
  readonly bits: number;
  /** 1: PCM, 3: floats, 6: A-law, 7: µ-law. */
  readonly encoding?: number;
  readonly channels?: number;
  readonly rate?: number;
  readonly isExtensible?: boolean;
  /** The size in the header. */
  readonly size?: number;
}

export function wav(data: Uint8Array, options: WavOptions): Uint8Array {
  const { bits, encoding = 1, channels = 1, rate = 16_000, isExtensible = false, size = data.length } = options;
  const format = Buffer.alloc(isExtensible ? 40 : 16);
  const block = (channels * (bits >> 3)) & 0xffff;
  format.writeUInt16LE(isExtensible ? 0xfffe : encoding, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(rate, 4);
  format.writeUInt32LE((rate * block) % 2 ** 32, 8);
  format.writeUInt16LE(block, 12);
  format.writeUInt16LE(bits, 14);
  if (isExtensible) format.writeUInt16LE(encoding, 24);
  const chunk = (name: string, length: number): Buffer => {
    const header = Buffer.alloc(8);
    header.write(name, "latin1");
    header.writeUInt32LE(length, 4);
    return header;
  };
  const parts = [Buffer.from("WAVE"), chunk("fmt ", format.length), format, chunk("data", size), data];
  const body = Buffer.concat(parts);
  return Buffer.concat([chunk("RIFF", body.length), body]);
}
