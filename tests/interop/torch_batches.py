"""A batch plan read by a PyTorch DataLoader, as docs/batching.md shows it: two workers, two simulated ranks.

    torch_batches.py SHARDPACK SOURCE_TREE

Every sequence once an epoch, all ranks the same number of steps, every batch padded as planned. Exits 77 without PyTorch.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

try:
    import torch
except ImportError:
    print("PyTorch is not installed; ./dev interop makes an environment with it")
    sys.exit(77)

tool, tree = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])

# The very lines that the document shows.
document = (tree / "docs/batching.md").read_text()
block = next(b for b in re.findall(r"```python\n(.*?)```", document, re.DOTALL) if "class PlannedBatches" in b)
exec(block)


class Sequences(torch.utils.data.Dataset):
    def __init__(self, sequences):
        self.sequences = sequences

    def __getitem__(self, item):
        number, kept, weight, pad = item
        return number, self.sequences[number][:kept], weight, pad, torch.utils.data.get_worker_info().id


def collate(items):
    pad = items[0][3]
    ids = torch.zeros(len(items), pad, dtype=torch.long)
    for row, (_, sequence, _, _, _) in enumerate(items):
        ids[row, :len(sequence)] = torch.tensor(sequence)
    return ids, [item[0] for item in items], [item[2] for item in items], items[0][4]


def check(folder, sequences, options, kept=None):
    (folder / "data.jsonl").write_text("".join(json.dumps({"input_ids": s}) + "\n" for s in sequences))
    out = folder / "batches"
    subprocess.run([tool, "batch", folder / "data.jsonl", "--world", "2", "--epochs", "2", "--force", "-q", *options, "-o", out], check=True)
    plan = json.loads((out / "manifest.json").read_text())
    batch_tokens = np.load(out / "real_tokens.npy")
    dataset = Sequences(sequences)
    orders = []
    for epoch in (0, 1):
        seen, steps, workers = [], [], set()
        for rank in (0, 1):
            sampler = PlannedBatches(str(out), rank)
            sampler.epoch = epoch
            loader = torch.utils.data.DataLoader(dataset, batch_sampler=sampler, num_workers=2, collate_fn=collate)
            assert len(loader) == plan["batches_per_epoch"] // 2
            count = 0
            for ids, numbers, weights, worker in loader:
                used = [sequences[n][:kept] for n in numbers]
                assert ids.shape[1] >= max(map(len, used)) and (ids != 0).sum() == sum(map(len, used))
                batch = epoch * plan["batches_per_epoch"] + count * 2 + rank
                assert batch_tokens[batch] == sum(len(s) for s, w in zip(used, weights) if w)
                seen += [n for n, w in zip(numbers, weights) if w]
                workers.add(worker)
                count += 1
            steps.append(count)
        assert sorted(seen) == list(range(len(sequences))), "every sequence once an epoch"
        assert steps[0] == steps[1] == plan["batches_per_epoch"] // 2, "all ranks the same number of steps"
        assert workers == {0, 1} or min(steps) < 2
        orders.append(seen)
    assert orders[0] != orders[1] or len(sequences) < 8


lengths = np.clip(np.exp(np.random.default_rng(3).normal(3, 0.6, 203)), 1, 90).astype(int)
sequences = [list(range(1, n + 1)) for n in lengths]
with tempfile.TemporaryDirectory(prefix="shardpack-torch-") as scratch:
    folder = pathlib.Path(scratch)
    check(folder, sequences, ["--batch-size", "8"])
    check(folder, sequences, ["--strategy", "tokens:400", "--pad-multiple", "8", "--accumulation", "2"])
    check(folder, sequences, ["--batch-size", "8", "--max-length", "32", "--overlong", "truncate"], kept=32)
    check(folder, sequences[:1], ["--batch-size", "8"])  # one rank repeats with weight 0
print(f"PyTorch {torch.__version__}: every sequence once an epoch, on two ranks and two workers")
