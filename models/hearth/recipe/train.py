"""Trains the embedded model on CPU, for a given time: python3 train.py WORK_DIR --hours 1.4

Documents come straight from the corpus generator and are never repeated. They are sorted by length into batches of
about equal numbers of tokens, so that a document starts at position 0 as it does when served, and attention never
crosses documents. The loss counts the tokens that the model has to write: assistant turns and plain text. The
matrices of the blocks learn by Muon (momentum made orthogonal by a Newton-Schulz iteration), the rest by AdamW; the
learning rate follows the clock, so that the run ends on time whatever else the machine does. A checkpoint in
WORK_DIR is resumed.
"""

import argparse
import os
import random
import signal
import sys
import time

import torch

import fused
from corpus import document
from model import Llama, Shape
from tokenizer import Tokenizer

POOL = 4096  # documents sorted together
MUON_RATE, ADAM_RATE, WARMUP_STEPS, DECAY_FROM = 0.01, 1.5e-3, 60, 0.4
IGNORE = -100


def targets_of(ids, tokenizer):
    """The next token of each position, or IGNORE where the loss does not count it."""
    start, end, assistant = tokenizer.ids["<|im_start|>"], tokenizer.ids["<|im_end|>"], tokenizer.ids["assistant"]
    counted = start not in ids
    out = []
    for i in range(1, len(ids)):
        if ids[i - 1] == start:
            counted = False
            speaks = ids[i] == assistant
        elif ids[i - 2] == start and i >= 2:
            counted = speaks
            out.append(IGNORE)  # the newline behind the role
            continue
        out.append(ids[i] if counted else IGNORE)
        if ids[i] == end:
            counted = False
    return out


def pool_batches(tokenizer, stream, pool, budget, context):
    """[(ids, targets)] of one pool of documents, padded, in random order; `budget` is tokens per batch."""
    rng = random.Random(f"{stream}-{pool}")
    rows = []
    for i in range(POOL if stream == "train" else 400):
        ids = tokenizer.encode(document(f"{stream}-{pool}-{i}"))[: context + 1]
        rows.append((ids[:-1], targets_of(ids, tokenizer)))
    rows.sort(key=lambda row: len(row[0]))
    batches, batch = [], []
    for row in rows:
        if batch and len(row[0]) * (len(batch) + 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    batches.append(batch)
    rng.shuffle(batches)
    return [pad(batch) for batch in batches]


def pad(batch):
    longest = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in batch])
    return ids, torch.tensor([targets + [IGNORE] * (longest - len(targets)) for _, targets in batch])


class Muon:
    """Momentum whose update is the nearest orthogonal matrix (Keller Jordan's Muon), matrices of one shape at once."""

    def __init__(self, parameters):
        self.groups = {}
        for parameter in parameters:
            self.groups.setdefault(tuple(parameter.shape), []).append(parameter)
        self.momentum = {shape: torch.zeros(len(group), *shape) for shape, group in self.groups.items()}

    @torch.no_grad()
    def step(self, rate, beta=0.95):
        for shape, group in self.groups.items():
            gradient = torch.stack([parameter.grad for parameter in group])
            momentum = self.momentum[shape].mul_(beta).add_(gradient)
            update = orthogonal(gradient + beta * momentum)
            scale = rate * max(1.0, shape[0] / shape[1]) ** 0.5
            for parameter, matrix in zip(group, update):
                parameter.mul_(1 - rate * 0.02).add_(matrix, alpha=-scale)


def orthogonal(x, steps=5):
    """(n, rows, columns) -> the same singular vectors, singular values near 1: a quintic Newton-Schulz iteration."""
    flipped = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if flipped else x
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(torch.bfloat16)
    for _ in range(steps):
        gram = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * (gram @ gram)) @ x
    x = x.float()
    return x.transpose(1, 2) if flipped else x


def rate_at(progress, step):
    """Factor of the learning rates: warm-up, then flat, then linear to zero over the last part of the time."""
    return min(1.0, (step + 1) / WARMUP_STEPS) * min(1.0, max(0.0, (1 - progress) / (1 - DECAY_FROM)))


class Run:
    """Everything a checkpoint holds, and the file it is kept in."""

    def __init__(self, folder, hours):
        self.path = os.path.join(folder, "checkpoint.pt")
        self.log = open(os.path.join(folder, "log"), "a", buffering=1)
        self.model, self.library = Llama(Shape()), fused.load(folder)
        blocks = [
            parameter
            for name, parameter in self.model.named_parameters()
            if parameter.dim() == 2 and name.startswith("blocks")
        ]
        others = [
            parameter
            for name, parameter in self.model.named_parameters()
            if parameter.dim() == 1 or not name.startswith("blocks")
        ]
        self.muon, self.adam = (
            Muon(blocks),
            torch.optim.AdamW(others, lr=ADAM_RATE, betas=(0.9, 0.95), weight_decay=0.0),
        )
        self.state = {
            "step": 0,
            "pool": 0,
            "batch": 0,
            "tokens": 0,
            "started": time.time(),
            "ends": time.time() + hours * 3600,
        }
        if os.path.exists(self.path):
            saved = torch.load(self.path)
            self.model.load_state_dict(saved["model"])
            self.adam.load_state_dict(saved["adam"])
            self.muon.momentum = saved["muon"]
            self.state = saved["state"]
            if hours:
                self.state["ends"] = self.state["started"] + hours * 3600

    def save(self):
        torch.save(
            {
                "model": self.model.state_dict(),
                "adam": self.adam.state_dict(),
                "muon": self.muon.momentum,
                "state": self.state,
                "shape": self.model.shape.as_dict(),
            },
            self.path + ".part",
        )
        os.replace(self.path + ".part", self.path)

    def say(self, text):
        print(text, file=self.log)
        print(text, flush=True)

    def learn(self, ids, targets):
        """One step; returns its loss."""
        state = self.state
        factor = rate_at((time.time() - state["started"]) / (state["ends"] - state["started"]), state["step"])
        loss = fused.loss(self.library, self.model, ids, targets, IGNORE)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.adam.param_groups[0]["params"], 1.0)
        self.muon.step(MUON_RATE * factor)
        self.adam.param_groups[0]["lr"] = ADAM_RATE * factor
        self.adam.step()
        self.model.zero_grad(set_to_none=True)
        state["step"] += 1
        state["tokens"] += int((ids != 0).sum())
        return loss.item()


@torch.no_grad()
def held_out_loss(run, batches):
    total = count = 0
    for ids, targets in batches:
        counted = int((targets != IGNORE).sum())
        total += fused.loss(run.library, run.model, ids, targets, IGNORE).item() * counted
        count += counted
    return total / count


def train(folder, hours, budget, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    tokenizer = Tokenizer.load(os.path.join(folder, "tokenizer.json"))
    run = Run(folder, hours)
    state, context = run.state, run.model.shape.context
    held_out = pool_batches(tokenizer, "held-out", 0, budget, context)
    run.say(f"{sum(p.numel() for p in run.model.parameters())} parameters, from step {state['step']}")
    stops = []
    signal.signal(signal.SIGTERM, lambda *_: stops.append("asked to stop"))  # after the step in hand, with a checkpoint
    saved = spoke = time.time()
    losses, tokens = [], state["tokens"]
    while time.time() < state["ends"]:
        batches = pool_batches(tokenizer, "train", state["pool"], budget, context)
        for ids, targets in batches[state["batch"] :]:
            losses.append(run.learn(ids, targets))
            state["batch"] += 1
            now = time.time()
            if now - spoke > 20:
                speed, minutes = (state["tokens"] - tokens) / (now - spoke), (now - state["started"]) / 60
                mean = sum(losses) / len(losses)
                run.say(
                    f"step {state['step']} loss {mean:.4f} tokens {state['tokens']} "
                    f"tokens/s {speed:.0f} minutes {minutes:.1f}"
                )
                losses, tokens, spoke = [], state["tokens"], now
            if now >= state["ends"]:
                stops.append("the time is over")
            if now - saved > 240 or stops:
                run.save()
                run.say(f"step {state['step']} held-out loss {held_out_loss(run, held_out):.4f}")
                saved = time.time()
            if stops:
                return
        state["pool"], state["batch"] = state["pool"] + 1, 0
    run.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Train the embedded model; WORK_DIR holds tokenizer.json, checkpoint.pt and log."
    )
    parser.add_argument("folder")
    parser.add_argument(
        "--hours", type=float, default=1.5, help="length of the whole run by the clock; 0 keeps a resumed run's end"
    )
    parser.add_argument("--budget", type=int, default=4096, help="tokens per batch, padding counted")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    sys.exit(train(options.folder, options.hours, options.budget, options.threads))
