/**
 * The xz format with its content as it is, for tests: any xz unpacks it. Source: tukaani.org/xz/xz-file-format.txt
 * (1.2.1), and for chunks of LZMA2 the comments of liblzma's lzma2_decoder.c.
 */
import { crc32 } from "node:zlib";

/** A checksum by CRC32 after the block. */
const FLAGS = Uint8Array.of(0, 1);
/** Maximum number of bytes of a chunk that is not compressed. */
const CHUNK_BYTES = 65_536;

/** @param bytes of one file */
export function storedXz(bytes: Uint8Array): Uint8Array {
  // 12 bytes; one filter, LZMA2, with a dictionary of 4 KiB
  const head = withCrc(Uint8Array.of(2, 0, 0x21, 1, 0, 0, 0, 0));
  const chunks = Array.from({ length: Math.ceil(bytes.length / CHUNK_BYTES) }, (_, i) => {
    const chunk = bytes.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES);
    const last = chunk.length - 1;
    return [Uint8Array.of(i === 0 ? 1 : 2, last >> 8, last & 255), chunk]; // the first one resets the dictionary
  });
  const data = Buffer.concat([...chunks.flat(), Uint8Array.of(0)]);
  const unpadded = head.length + data.length + 4; // the checksum
  const index = withCrc(padded(Uint8Array.of(0, 1, ...varint(unpadded), ...varint(bytes.length))));
  const foot = Buffer.concat([word(index.length / 4 - 1), FLAGS]);
  return Buffer.concat([
    Buffer.from("\xfd7zXZ\0", "latin1"),
    withCrc(FLAGS),
    head,
    padded(data),
    word(crc32(bytes)),
    index,
    word(crc32(foot)),
    foot,
    Buffer.from("YZ"),
  ]);
}

/** 32 bits, the lowest byte first. */
function word(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** 7 bits a byte, the lowest first. */
const varint = (value: number): number[] =>
  value < 128 ? [value] : [128 + (value % 128), ...varint(Math.floor(value / 128))];

const withCrc = (bytes: Uint8Array): Uint8Array => Buffer.concat([bytes, word(crc32(bytes))]);

/** To a multiple of four bytes. */
const padded = (bytes: Uint8Array): Uint8Array => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
