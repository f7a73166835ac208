"""Writes GGUF files (version 3, little-endian), as ggml's docs/gguf.md describes them: metadata, tensor infos,
aligned data.
"""

import struct

import numpy as np

ALIGNMENT = 32
F32, F16, Q8_0 = 0, 1, 8  # ggml_type
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # gguf_metadata_value_type


def u32(value):
    return UINT32, value


def f32(value):
    return FLOAT32, value


def string(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind, value):
    if kind == STRING:
        return string(value)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], value)


def entry(key, value):
    """One metadata pair. Text, truth and lists of text speak for themselves; numbers are (type, value or list)."""
    if isinstance(value, bool):
        value = (BOOL, value)
    elif isinstance(value, str) or (isinstance(value, list) and isinstance(value[0], str)):
        value = (STRING, value)
    kind, data = value
    if isinstance(data, list):
        body = struct.pack("<IIQ", ARRAY, kind, len(data)) + b"".join(scalar(kind, item) for item in data)
    else:
        body = struct.pack("<I", kind) + scalar(kind, data)
    return string(key) + body


def quantize_q8_0(matrix):
    """Blocks of 32: f16 d = max|w| / 127, then int8 w / d, rounded half away from zero (quantize_row_q8_0_ref)."""
    blocks = matrix.astype(np.float32).reshape(-1, 32)
    d = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    scaled = np.divide(blocks, d, out=np.zeros_like(blocks), where=d > 0)
    quants = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int8)
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", 32)])
    out["d"], out["q"] = d[:, 0], quants
    return out.tobytes()


ENCODERS = {F32: lambda x: x.astype("<f4").tobytes(), F16: lambda x: x.astype("<f2").tobytes(), Q8_0: quantize_q8_0}


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write(path, metadata, tensors):
    """tensors: {name: (type, array)}; arrays are row-major (rows, columns), which GGUF lists as [columns, rows]."""
    infos, data, offset = [], [], 0
    for name, (kind, array) in tensors.items():
        raw = ENCODERS[kind](array)
        raw += padding(len(raw))
        shape = array.shape[::-1]
        infos.append(string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        data.append(raw)
        offset += len(raw)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(entry(key, value) for key, value in metadata.items()) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(head + padding(len(head)))
        file.writelines(data)
