"""Autograd functions over fused.c, compiled once per work folder.

The same steps as `Llama.forward`, in bf16 with float32 sums and a float32 residual, and with fewer passes over memory.
"""

import ctypes
import math
import os
import subprocess

import torch
import torch.nn.functional as F

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fused.c")
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
BF16 = torch.bfloat16


def load(folder):
    """The compiled library; needs gcc."""
    path = os.path.join(folder, "fused.so")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(SOURCE):
        subprocess.run(["gcc", *FLAGS, SOURCE, "-o", path, "-lm"], check=True)
    library = ctypes.CDLL(path)
    library.cross_entropy.restype = ctypes.c_double
    return library


def call(function, *arguments):
    """Calls C with tensors as pointers, integers as long and floats as float."""
    convert = {
        int: ctypes.c_long,
        float: ctypes.c_float,
        type(None): lambda _: ctypes.c_void_p(None),
        torch.Tensor: lambda tensor: ctypes.c_void_p(tensor.data_ptr()),
    }
    return function(*(convert[torch.Tensor if torch.is_tensor(value) else type(value)](value) for value in arguments))


class AddNorm(torch.autograd.Function):
    """(x, delta or None, weight) -> (x + delta in float32, its RMS norm in bf16)."""

    @staticmethod
    def forward(ctx, library, x, delta, weight, eps):
        total, y, inverse = torch.empty_like(x), torch.empty_like(x, dtype=BF16), x.new_empty(x.shape[:-1])
        delta = None if delta is None else delta.contiguous()
        call(library.add_norm, x.contiguous(), delta, weight, total, y, inverse, inverse.numel(), x.shape[-1], eps)
        ctx.library, ctx.has_delta = library, delta is not None
        ctx.save_for_backward(total, weight, inverse)
        return total, y

    @staticmethod
    def backward(ctx, d_total, d_y):
        total, weight, inverse = ctx.saved_tensors
        d_sum, d_weight = d_total.contiguous().clone(), torch.zeros_like(weight)
        d_delta = torch.empty_like(total, dtype=BF16) if ctx.has_delta else None
        arguments = (
            total,
            weight,
            inverse,
            d_y.contiguous(),
            d_sum,
            d_delta,
            d_weight,
            inverse.numel(),
            total.shape[-1],
        )
        call(ctx.library.add_norm_back, *arguments)
        return None, d_sum, d_delta, d_weight, None


class Swiglu(torch.autograd.Function):
    """silu(gate) * value in bf16."""

    @staticmethod
    def forward(ctx, library, gate, value):
        y = torch.empty_like(gate)
        call(library.swiglu, gate, value, y, gate.numel())
        ctx.library = library
        ctx.save_for_backward(gate, value)
        return y

    @staticmethod
    def backward(ctx, d_y):
        gate, value = ctx.saved_tensors
        d_gate, d_value = torch.empty_like(gate), torch.empty_like(value)
        call(ctx.library.swiglu_back, gate, value, d_y.contiguous(), d_gate, d_value, gate.numel())
        return None, d_gate, d_value


class Rope(torch.autograd.Function):
    """(batch, time, heads, head_dim) -> (batch, heads, time, head_dim), rotated and scaled."""

    @staticmethod
    def forward(ctx, library, x, cos, sin, scale):
        batch, time, heads, dim = x.shape
        y = x.new_empty(batch, heads, time, dim)
        call(library.rope, x, cos, sin, y, batch, time, heads, dim, scale)
        ctx.library, ctx.scale = library, scale
        ctx.save_for_backward(cos, sin)
        return y

    @staticmethod
    def backward(ctx, d_y):
        cos, sin = ctx.saved_tensors
        batch, heads, time, dim = d_y.shape
        d_x = d_y.new_empty(batch, time, heads, dim)
        call(ctx.library.rope_back, d_y.contiguous(), cos, sin, d_x, batch, time, heads, dim, ctx.scale)
        return None, d_x, None, None, None


class Softmax(torch.autograd.Function):
    """Causal softmax over the last axis of scores (..., time, time), in place."""

    @staticmethod
    def forward(ctx, library, scores):
        call(library.softmax, scores, scores.numel() // scores.shape[-1], scores.shape[-1])
        ctx.mark_dirty(scores)
        ctx.library = library
        ctx.save_for_backward(scores)
        return scores

    @staticmethod
    def backward(ctx, d_weights):
        (weights,) = ctx.saved_tensors
        d_scores = d_weights.contiguous()
        call(ctx.library.softmax_back, weights, d_scores, weights.numel() // weights.shape[-1], weights.shape[-1])
        return None, d_scores


class CrossEntropy(torch.autograd.Function):
    """Mean cross entropy of logits (rows, vocab); the gradient takes the place of the logits at once."""

    @staticmethod
    def forward(ctx, library, logits, targets):
        loss = call(library.cross_entropy, logits, targets, *logits.shape)
        ctx.mark_dirty(logits)
        ctx.gradient = logits
        return torch.tensor(loss, dtype=torch.float32), logits

    @staticmethod
    def backward(ctx, d_loss, _):
        return None, ctx.gradient, None


def linear(x, layer):
    return F.linear(x, layer.weight.to(BF16))


def attend(library, block, y, cos, sin):
    """The attention of a block on y (batch, time, dim) bf16, as `Block.attend`."""
    shape, (batch, time, dim) = block.shape, y.shape
    q = linear(y, block.wq).view(batch, time, shape.heads, shape.head_dim)
    k = linear(y, block.wk).view(batch, time, shape.kv_heads, shape.head_dim)
    v = linear(y, block.wv).view(batch, time, shape.kv_heads, shape.head_dim)
    q = Rope.apply(library, q, cos, sin, 1 / math.sqrt(shape.head_dim)).view(batch * shape.kv_heads, -1, shape.head_dim)
    k = Rope.apply(library, k, cos, sin, 1.0).view(batch * shape.kv_heads, time, shape.head_dim)
    v = v.transpose(1, 2).reshape(batch * shape.kv_heads, time, shape.head_dim)
    weights = Softmax.apply(library, torch.bmm(q, k.transpose(1, 2)))
    out = torch.bmm(weights, v).view(batch, shape.heads, time, shape.head_dim)
    return linear(out.transpose(1, 2).reshape(batch, time, dim), block.wo)


def loss(library, model, ids, targets, ignored):
    """Mean cross entropy over the positions of targets (batch, time) that are not `ignored`."""
    eps, time = model.shape.eps, ids.shape[1]
    cos, sin = model.cos[:time].contiguous(), model.sin[:time].contiguous()
    x, delta = model.embed(ids), None
    for block in model.blocks:
        x, y = AddNorm.apply(library, x, delta, block.attn_norm.weight, eps)
        x, y = AddNorm.apply(library, x, attend(library, block, y, cos, sin), block.ffn_norm.weight, eps)
        delta = linear(Swiglu.apply(library, linear(y, block.gate), linear(y, block.up)), block.down)
    _, y = AddNorm.apply(library, x, delta, model.norm.weight, eps)
    counted = targets != ignored
    return CrossEntropy.apply(library, linear(y[counted], model.embed), targets[counted].contiguous())[0]
