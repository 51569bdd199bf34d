"""Random-LTD on packed rows in PyTorch, with the indices that `shardpack ltd` writes.

    ltd_torch_test.py SHARDPACK DOCUMENT SAMPLE.bin

A small causal transformer with rotary positions drops tokens in its middle layers. Its outputs on packed rows must equal those on
each segment alone with the same kept tokens; attention by cu_seqlens must equal attention by the gathered mask; and it must train.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SEQ, WIDTH, HEADS, LAYERS, DROPPING = 256, 32, 4, 4, [1, 2]


def rotate(x, positions):
    """Rotary embedding: positions of kept tokens are those that they had."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * 100.0 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def attend(self, x, positions, mask):
        q, k, v = self.qkv(self.norm1(x)).view(len(x), 3, HEADS, -1).permute(1, 2, 0, 3)
        q, k = rotate(q, positions), rotate(k, positions)
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(0, 1).reshape(len(x), WIDTH))

    def forward(self, x, positions, mask):
        x = x + self.attend(x, positions, mask)
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, WIDTH), nn.Linear(WIDTH, vocabulary)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids, segments, positions, kept):
        """One row. `kept`: slots for each dropping layer; a layer that is not there sees every token."""
        x = self.embed(ids)
        for number, layer in enumerate(self.layers):
            at = kept.get(number, torch.arange(len(ids)))
            mask = (segments[at, None] == segments[None, at]) & (at[:, None] >= at[None, :])
            x = x.index_copy(0, at, layer(x[at], positions[at], mask))
        return self.head(x)


def row_arrays(packed):
    """Ids, segment ids and position ids of all rows in stored order."""
    shards = [packed / shard["folder"] for shard in json.loads((packed / "manifest.json").read_bytes())["shards"]]
    return [torch.from_numpy(np.concatenate([np.load(shard / f"{name}.npy") for shard in shards]).astype(np.int64))
            for name in ("input_ids", "segment_ids", "position_ids")]


class Kept:
    """The indices of a schedule folder, by step, layer and row."""

    def __init__(self, folder):
        self.files = {int(path.stem): np.load(path) for path in folder.joinpath("kept").iterdir()}
        self.steps = np.load(folder / "steps.npy")

    def at(self, step, row):
        first = max((first for first in self.files if first <= step), default=None)
        if first is None or step >= first + len(self.files[first]):
            return {}  # the whole row is kept
        return {layer: torch.from_numpy(self.files[first][step - first, i, row].astype(np.int64))
                for i, layer in enumerate(DROPPING)}


def check_against_segments(model, rows, kept, batch):
    """Packed rows equal each segment alone, and the files the port."""
    worst = 0.0
    for step, row in [(0, 0), (3, 1), (9, 3), (15, 2)]:
        ids, segments, positions = (array[(step * batch + row) % len(array)] for array in rows)
        slots = kept.at(step, row)
        assert slots, "these steps drop tokens"
        together = model(ids, segments, positions, slots)
        for segment in range(1, int(segments.max()) + 1):
            own = (segments == segment).nonzero()[:, 0]
            mine = {layer: torch.isin(own, at).nonzero()[:, 0] for layer, at in slots.items()}
            alone = model(ids[own], torch.ones_like(own), positions[own], mine)
            worst = max(worst, float((together[own] - alone).abs().max()))
    assert worst < 1e-5, worst
    return worst


def check_boundaries(model, rows, kept, batch, folder, port, seed):
    """cu_seqlens cuts the kept tokens as the gathered mask does: attention piece by piece is the same."""
    cu, offsets = np.load(folder / "cu_seqlens.npy"), np.load(folder / "cu_offsets.npy")
    worst = 0.0
    for step, row in [(0, 1), (5, 0), (12, 3)]:
        ids, segments, positions = (array[(step * batch + row) % len(array)] for array in rows)
        bounds = cu[offsets[step * batch + row]:offsets[step * batch + row + 1]].astype(int)
        for layer, at in kept.at(step, row).items():
            assert torch.equal(port(seed, step, layer, row, int(kept.steps["kept"][step]), segments), at)
            x = model.embed(ids)[at]
            mask = (segments[at, None] == segments[None, at]) & (at[:, None] >= at[None, :])
            whole = model.layers[layer].attend(x, positions[at], mask)
            pieces = [model.layers[layer].attend(x[a:b], positions[at][a:b], torch.ones(b - a, b - a, dtype=bool).tril())
                      for a, b in zip(bounds, bounds[1:])]
            real = segments[at] != 0
            worst = max(worst, float((torch.cat(pieces) - whole)[real].abs().max()))
    assert worst < 1e-6, worst
    return worst


def loss_of(model, rows, picks, kept_of):
    total, count = 0.0, 0
    for row, at in picks:
        ids, segments, positions = (array[row] for array in rows)
        logits = model(ids, segments, positions, kept_of(at))
        inside = (segments[1:] == segments[:-1]) & (segments[1:] != 0)  # no label across a boundary
        total = total + F.cross_entropy(logits[:-1][inside], ids[1:][inside], reduction="sum")
        count += int(inside.sum())
    return total / count


def check_training(model, rows, kept, batch, steps):
    """Train over the ramp at the schedule's rates; the loss of whole rows falls by a good part."""
    held = [(row, None) for row in range(8)]
    with torch.no_grad():
        before = float(loss_of(model, rows, held, lambda _: {}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = float(kept.steps["lr"][step])
        picks = [((step * batch + row) % len(rows[0]), row) for row in range(batch)]
        loss = loss_of(model, rows, picks, lambda row: kept.at(step, row))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        after = float(loss_of(model, rows, held, lambda _: {}))
    assert after < 0.85 * before, (before, after)
    return before, after


def main():
    shardpack, document, sample = sys.argv[1:4]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    functions = {}
    exec(re.search(r"<!-- port: torch -->\n```python\n(.*?)```", pathlib.Path(document).read_text(), re.DOTALL)[1], functions)
    batch, steps, seed = 4, 60, 11
    with tempfile.TemporaryDirectory() as scratch:
        packed, folder = pathlib.Path(scratch, "packed"), pathlib.Path(scratch, "ltd")
        run = lambda *words: subprocess.run([shardpack, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        run("pack", sample, "-L", SEQ, "--overlong", "split", "-o", packed, "-q")
        run("ltd", packed, "--kept-start", 64, "--kept-step", 16, "--ramp-steps", 48, "--layers", LAYERS, "--layer-ids", "1,2",
            "--micro-batch", 2, "--accumulation", 2, "--total-steps", steps, "--seed", seed, "--peak-lr", "1e-2", "--min-lr", "1e-3",
            "--warmup-layer-tokens", 20000, "--write-indices", "-q", "-o", folder)
        run("verify", folder, "--against", packed)
        rows, kept = row_arrays(packed), Kept(folder)
        model = Model(int(rows[0].max()) + 1)
        with torch.no_grad():
            alone = check_against_segments(model, rows, kept, batch)
            cut = check_boundaries(model, rows, kept, batch, folder, functions["kept"], seed)
        before, after = check_training(model, rows, kept, batch, steps)
    print(f"packed rows = segments alone within {alone:.1e}; cu_seqlens = gathered mask within {cut:.1e}")
    print(f"loss {before:.3f} -> {after:.3f} over {steps} steps")
    print("3 passed, 0 failed")


if __name__ == "__main__":
    main()
