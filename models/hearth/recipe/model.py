"""The network of the embedded model: a small llama (RMSNorm, RoPE, grouped-query attention, SwiGLU, tied embedding).

This is the plain form, for reading and for sampling in float32; training runs the same steps fused (`fused.py`). Rotary
pairs are (i, i + head_dim / 2) here because halves are contiguous in memory; `export.py` permutes wq and wk into the
interleaved pairs that llama GGUF files use (the same permutation as `LlamaModel.permute` in llama.cpp's
convert_hf_to_gguf.py).
"""

import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Shape:
    """Hyperparameters; every matrix dimension is a multiple of 256 so that any ggml block type fits."""

    vocab: int = 4096
    dim: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    ffn: int = 768
    context: int = 2048
    rope_theta: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self):
        return self.dim // self.heads

    def as_dict(self):
        return asdict(self)


class RmsNorm(nn.Module):
    """x / rms(x) * weight over the last axis, in float32."""

    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    """Rotary embedding of x (batch, heads, time, head_dim) by angle tables (time, head_dim / 2)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Block(nn.Module):
    """One transformer layer: attention and gated MLP, each behind a norm and a residual."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        kv_dim = shape.kv_heads * shape.head_dim
        self.attn_norm = RmsNorm(shape.dim, shape.eps)
        self.wq = nn.Linear(shape.dim, shape.dim, bias=False)
        self.wk = nn.Linear(shape.dim, kv_dim, bias=False)
        self.wv = nn.Linear(shape.dim, kv_dim, bias=False)
        self.wo = nn.Linear(shape.dim, shape.dim, bias=False)
        self.ffn_norm = RmsNorm(shape.dim, shape.eps)
        self.gate = nn.Linear(shape.dim, shape.ffn, bias=False)
        self.up = nn.Linear(shape.dim, shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.dim, bias=False)

    def attend(self, x, cos, sin, mask):
        """x (batch, time, dim) -> the same shape; mask (time, time) holds -inf above the diagonal."""
        shape, (batch, time, _) = self.shape, x.shape
        group = shape.heads // shape.kv_heads
        q = self.wq(x).view(batch, time, shape.heads, shape.head_dim).transpose(1, 2)
        k = self.wk(x).view(batch, time, shape.kv_heads, shape.head_dim).transpose(1, 2)
        v = self.wv(x).view(batch, time, shape.kv_heads, shape.head_dim).transpose(1, 2)
        q = rotate(q, cos, sin) * (1 / math.sqrt(shape.head_dim))
        k = rotate(k, cos, sin)
        # The query heads of one kv head are laid along time, so that k and v are never repeated in memory.
        q = q.reshape(batch, shape.kv_heads, group * time, shape.head_dim)
        scores = (q @ k.transpose(2, 3)).view(batch, shape.kv_heads, group, time, time) + mask
        weights = scores.softmax(-1).view(batch, shape.kv_heads, group * time, time)
        out = (weights @ v).view(batch, shape.heads, time, shape.head_dim)
        return self.wo(out.transpose(1, 2).reshape(batch, time, shape.dim))

    def forward(self, x, cos, sin, mask):
        x = x + self.attend(self.attn_norm(x), cos, sin, mask)
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Token ids (batch, time) -> hidden states (batch, time, dim); `logits` applies the tied head."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab, shape.dim)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = RmsNorm(shape.dim, shape.eps)
        half = shape.head_dim // 2
        frequency = shape.rope_theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(shape.context, dtype=torch.float64)[:, None] * frequency
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)
        self.reset()

    def reset(self):
        """Normal init; the two matrices that write into the residual start smaller, by depth (GPT-2's rule)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = (2 * self.shape.layers) ** -0.5 if name.endswith(("wo.weight", "down.weight")) else 1.0
                nn.init.normal_(parameter, std=0.02 * scale)

    def forward(self, ids):
        time = ids.shape[1]
        mask = torch.full((time, time), float("-inf")).triu(1)
        x = self.embed(ids)
        cos, sin = self.cos[:time], self.sin[:time]
        for block in self.blocks:
            x = block(x, cos, sin, mask)
        return self.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.embed.weight)
