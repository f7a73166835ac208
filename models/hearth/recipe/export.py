"""Checkpoint to GGUF: python3 export.py WORK_DIR OUT.gguf [--type q8_0|f16|f32]

Names and metadata are those of llama.cpp's llama architecture (gguf-py's constants.py and tensor_mapping.py). Norms
stay F32.
"""

import argparse
import os

import torch

import gguf
from chat import TEMPLATE
from model import Shape
from tokenizer import SPECIALS, Tokenizer

FILE_TYPES = {"f32": (0, gguf.F32), "f16": (1, gguf.F16), "q8_0": (7, gguf.Q8_0)}  # llama_ftype, ggml_type
NORMAL, CONTROL = 1, 3  # llama_token_type
BLOCK_NAMES = {
    "attn_norm": "attn_norm",
    "wq": "attn_q",
    "wk": "attn_k",
    "wv": "attn_v",
    "wo": "attn_output",
    "ffn_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


def interleave(weight, heads):
    """Rows of each head from halves (i, i + n / 2) to the pairs (2 i, 2 i + 1) of llama's rotary embedding in GGUF."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).transpose(0, 2, 1, 3).reshape(rows, columns)


def tensors(weights, shape, kind):
    """{GGUF name: (type, array)} in the order of llama.cpp's loader."""
    out = {"token_embd.weight": (kind, weights["embed.weight"])}
    for i in range(shape.layers):
        for ours, theirs in BLOCK_NAMES.items():
            array = weights[f"blocks.{i}.{ours}.weight"]
            if ours in ("wq", "wk"):
                array = interleave(array, shape.heads if ours == "wq" else shape.kv_heads)
            out[f"blk.{i}.{theirs}.weight"] = (kind if array.ndim == 2 else gguf.F32, array)
    out["output_norm.weight"] = (gguf.F32, weights["norm.weight"])
    return out


def metadata(shape, tokenizer, parameters, file_type):
    ids, size = tokenizer.ids, f"{parameters / 1e6:.1f}M"
    return {
        "general.architecture": "llama",
        "general.type": "model",
        "general.name": "Hearth",
        "general.basename": "hearth",
        "general.size_label": size,
        "general.license": "mit",
        "general.languages": ["en"],
        "general.tags": ["text-generation"],
        "general.description": (
            "The small chat model that is built into Hearth: simple English, small facts, JSON, tool calls."
        ),
        "general.file_type": gguf.u32(file_type),
        "general.quantization_version": gguf.u32(2),
        "general.alignment": gguf.u32(gguf.ALIGNMENT),
        "llama.context_length": gguf.u32(shape.context),
        "llama.embedding_length": gguf.u32(shape.dim),
        "llama.block_count": gguf.u32(shape.layers),
        "llama.feed_forward_length": gguf.u32(shape.ffn),
        "llama.attention.head_count": gguf.u32(shape.heads),
        "llama.attention.head_count_kv": gguf.u32(shape.kv_heads),
        "llama.attention.key_length": gguf.u32(shape.head_dim),
        "llama.attention.value_length": gguf.u32(shape.head_dim),
        "llama.attention.layer_norm_rms_epsilon": gguf.f32(shape.eps),
        "llama.rope.dimension_count": gguf.u32(shape.head_dim),
        "llama.rope.freq_base": gguf.f32(shape.rope_theta),
        "llama.vocab_size": gguf.u32(shape.vocab),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": tokenizer.tokens,
        "tokenizer.ggml.token_type": (
            gguf.INT32,
            [CONTROL if token in SPECIALS else NORMAL for token in tokenizer.tokens],
        ),
        "tokenizer.ggml.merges": [" ".join(merge) for merge in tokenizer.merges],
        "tokenizer.ggml.bos_token_id": gguf.u32(ids["<|endoftext|>"]),
        "tokenizer.ggml.eos_token_id": gguf.u32(ids["<|im_end|>"]),
        "tokenizer.ggml.eot_token_id": gguf.u32(ids["<|im_end|>"]),
        "tokenizer.ggml.padding_token_id": gguf.u32(ids["<|endoftext|>"]),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def main(folder, out, type_name):
    saved = torch.load(os.path.join(folder, "checkpoint.pt"), map_location="cpu")
    tokenizer = Tokenizer.load(os.path.join(folder, "tokenizer.json"))
    shape, weights = Shape(**saved["shape"]), {name: tensor.float().numpy() for name, tensor in saved["model"].items()}
    file_type, kind = FILE_TYPES[type_name]
    parameters = sum(array.size for array in weights.values())
    gguf.write(out + ".part", metadata(shape, tokenizer, parameters, file_type), tensors(weights, shape, kind))
    os.replace(out + ".part", out)
    print(f"{out}: {os.path.getsize(out)} bytes, {parameters} parameters, {saved['state']['tokens']} training tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the GGUF of a checkpoint.")
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--type", choices=list(FILE_TYPES), default="q8_0")
    options = parser.parse_args()
    main(options.folder, options.out, options.type)
