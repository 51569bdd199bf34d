"""Random-LTD schedules over batch plans, worked out again in NumPy from the plan's files and the lengths alone.

    ltd_batches_test.py SHARDPACK DOCUMENT numpy|torch [CASE...]

Shares nothing with the tool but the port of the selection that DOCUMENT (docs/ltd.md) shows.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from ltd_port_test import port_in

tool = str(pathlib.Path(sys.argv[1]).resolve())
port = port_in(sys.argv[2], sys.argv[3])
LAYERS, DROPPING = 6, [1, 2, 3, 4]


def kept_slots(seed, step, layer, row, kept, ids, mode="quota"):
    if sys.argv[3] == "numpy":
        return port(seed, step, layer, row, kept, ids, mode)
    import torch
    return port(seed, step, layer, row, kept, torch.from_numpy(ids), mode).numpy()


def run(*arguments, code=0):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done


def lengths_of(count, high, seed):
    return np.clip(np.exp(np.random.default_rng(seed).normal(3, 0.7, count)), 1, high).astype(np.int64)


class Plan:
    """The rows of each step of a batch plan: (micro-step, batch, segment ids over the padded length, weight)."""

    def __init__(self, folder, segments_of):
        self.manifest = json.loads((folder / "manifest.json").read_text())
        names = [file["name"] for file in self.manifest["files"]]
        self.arrays = {name[:-4]: np.load(folder / name) for name in names}
        self.offsets, self.members, self.pads = (self.arrays[name] for name in ("batch_offsets", "members", "pad_length"))
        self.weights = self.arrays.get("weights", np.ones(len(self.members)))
        self.world, self.accumulation = self.manifest["world"], self.manifest["accumulation"]
        self.group, self.segments_of = self.world * self.accumulation, segments_of
        self.steps = len(self.pads) // self.group

    def rows(self, step):
        first = step % self.steps * self.group
        for b in range(first, first + self.group):
            for i in range(self.offsets[b], self.offsets[b + 1]):
                ids = np.zeros(self.pads[b], np.int64)
                segments = self.segments_of(int(self.members[i]))
                ids[:len(segments)] = segments
                yield (b - first) // self.world, b, ids, self.weights[i] > 0


def schedule(start, most, granularity, ramp, step):
    value = start + step * (most - start) // ramp
    return min(most, value - value % granularity)


def kept_count(options, kept, pad):
    if options["kept_length"] == "absolute":
        return min(kept, pad)
    full = min(options["kept_max"], options["seq_length"])
    if kept >= full:
        return pad
    share = pad * kept // full
    return min(pad, max(options["kept_step"], share - share % options["kept_step"]))


def check(folder, plan):
    """Everything in the schedule's folder against the plan's rows."""
    manifest = json.loads((folder / "manifest.json").read_text())
    options, mode, seed = manifest["options"], manifest["options"]["selection"], manifest["options"]["seed"]
    steps, middle = np.load(folder / "steps.npy"), len(DROPPING)
    assert options["layer_ids"] == DROPPING and options["layers"] == LAYERS
    assert (options["world"], options["accumulation"]) == (plan.world, plan.accumulation)
    boundaries = np.load(folder / "cu_seqlens.npy") if (folder / "cu_seqlens.npy").exists() else None
    indices = np.load(folder / "kept" / f"{manifest['kept']['first_step']:08}.npy") if manifest["kept"] else None
    if boundaries is not None:
        lists = np.split(boundaries, np.load(folder / "cu_offsets.npy")[1:-1])
    if indices is not None:
        blocks, block, window = np.load(folder / "kept_offsets.npy"), 0, manifest["kept"]
    totals = dict.fromkeys(("real", "padded", "dense_real", "dense_padded", "effective", "cumulative"), 0)
    pairs = dense_pairs = full_pairs = 0
    list_at, ended = 0, None
    count_padded = options["count"] == "padded"
    for step, row_of_table in enumerate(steps):
        kept = schedule(options["kept_start"], options["kept_max"], options["kept_step"], options["ramp_steps"], step)
        kept = min(kept, options["seq_length"])
        assert row_of_table["step"] == step and row_of_table["kept"] == kept
        step_tokens, previous_micro, of_batch = 0, 0, {}
        for row, (micro, batch, ids, counts) in enumerate(plan.rows(step)):
            consumed = totals["effective"] if options_kind(manifest) == "tokens" else totals["cumulative"]
            if micro != previous_micro and ended is None and consumed >= manifest["budget"]["amount"]:
                ended = step * plan.accumulation + micro
            previous_micro = micro
            pad, here = len(ids), kept_count(options, kept, len(ids))
            tokens = int((ids > 0).sum())
            real = (2 * tokens + middle * min(here, tokens)) * counts
            padded = 2 * pad + middle * here
            counted = padded if count_padded else real
            totals["real"] += real
            totals["padded"] += padded
            totals["dense_real"] += LAYERS * tokens * counts
            totals["dense_padded"] += LAYERS * pad
            totals["effective"] += counted // LAYERS
            totals["cumulative"] += counted
            step_tokens += counted
            full_pairs += LAYERS * pad * pad
            if ids.max() == 1 and counts:  # one segment: no chance in it
                dense_pairs += LAYERS * tokens ** 2
                pairs += 2 * tokens ** 2 + middle * min(here, tokens) ** 2
            if boundaries is not None and window_holds(manifest["cu_seqlens"], step):
                slots = kept_slots(seed, step, 1, row, here, ids, mode)
                of_slots = ids[slots]
                edges = [0, *(np.flatnonzero(np.diff(of_slots)) + 1), len(slots)]
                if gapless(ids):  # else padding between the same segment's neighbours has edges of its own
                    assert lists[list_at].tolist() == edges, (step, row, lists[list_at], edges)
                list_at += 1
            if indices is not None and window_holds(window, step):
                of_batch.setdefault(batch, []).append((row, ids, here))
        for batch, rows in of_batch.items():
            stored = indices[blocks[block]:blocks[block + 1]]
            block += 1
            pad, here = len(rows[0][1]), rows[0][2]
            if here == pad:
                assert len(stored) == 0
                continue
            stored = stored.reshape(len(DROPPING), len(rows), here)
            for layer, of_layer in zip(DROPPING, stored):
                for (row, ids, _), slots in zip(rows, of_layer):
                    assert slots.tolist() == kept_slots(seed, step, layer, row, here, ids, mode).tolist(), (step, layer, row)
        assert row_of_table["layer_tokens"] == step_tokens
        assert row_of_table["cumulative"] == totals["cumulative"] and row_of_table["effective_tokens"] == totals["effective"]
    assert manifest["layer_tokens"] == totals["padded" if count_padded else "real"] == totals["cumulative"]
    assert manifest["dense_layer_tokens"] == totals["dense_padded" if count_padded else "dense_real"]
    data = manifest["dataset"]
    assert data["kind"] == "batches" and data["batches"] == len(plan.pads) and data["steps"] == plan.steps
    assert data["rows"] == len(plan.members) and data["row_tokens"] == plan.pads.max()
    assert data["tokens"] == plan.arrays["real_tokens"].sum() == plan.manifest["real_tokens"]
    assert data["real"] == {"layer_tokens": totals["real"], "dense_layer_tokens": totals["dense_real"]}
    assert data["padded"] == {"layer_tokens": totals["padded"], "dense_layer_tokens": totals["dense_padded"]}
    if data["rows_manifest_xxh3_128"] is None:
        assert abs(data["attention_saving_of_packing"] - (1 - dense_pairs / full_pairs)) < 1e-8
        assert abs(data["attention_saving_of_both"] - (1 - pairs / full_pairs)) < 1e-8
    if boundaries is not None:
        assert list_at == len(lists)
    if indices is not None:
        assert block == len(blocks) - 1 and blocks[-1] == len(indices)
    if options_kind(manifest) != "steps":
        end = len(steps) * plan.accumulation if ended is None else ended
        assert manifest["budget"]["micro_step"] == end, (manifest["budget"], end)
        assert manifest["budget"]["optimizer_step"] == end // plan.accumulation
    return manifest


def options_kind(manifest):
    return manifest["budget"]["kind"]


def window_holds(window, step):
    return window is not None and window["first_step"] <= step < window["first_step"] + window["steps"]


def gapless(ids):
    used = ids[ids > 0]
    return len(used) == 0 or (ids[:len(used)] > 0).all()


def sequences(lengths, limit=None):
    return lambda member: np.ones(min(int(lengths[member]), limit or 2**31), np.int64)


FLAGS = ["--kept-start", 8, "--kept-step", 4, "--ramp-steps", 9, "--layers", LAYERS]


def toy(folder):
    """Acceptance check 19: three steps of which everything is known; LayerTokens are the sum of the exact form."""
    lengths = [3, 3, 5, 5, 9, 9, 2, 2, 6, 6, 12, 12]
    (folder / "lengths.txt").write_text("".join(f"{length}\n" for length in lengths))
    run("batch", folder / "lengths.txt", "--batch-size", 2, "--world", 2, "--pad-multiple", 4, "-o", folder / "plan")
    plan = Plan(folder / "plan", sequences(lengths))
    assert plan.steps == 3
    flags = ["--kept-start", 4, "--kept-step", 2, "--ramp-steps", 4, "--layers", LAYERS, "--total-steps", 3]
    for count in ("padded", "real"):
        run("ltd", folder / "plan", *flags, "--count", count, "-o", folder / count)
        steps, sums = np.load(folder / count / "steps.npy"), []
        for step, kept in enumerate((4, 6, 8)):
            total = 0
            for b in range(2 * step, 2 * step + 2):
                members = plan.members[plan.offsets[b]:plan.offsets[b + 1]]
                for tokens in [plan.pads[b]] * len(members) if count == "padded" else [lengths[m] for m in members]:
                    total += (LAYERS - 4) * tokens + 4 * min(kept, tokens)
            sums.append(total)
        assert steps["kept"].tolist() == [4, 6, 8]
        assert steps["layer_tokens"].tolist() == sums
        manifest = json.loads((folder / count / "manifest.json").read_text())
        assert manifest["layer_tokens"] == sum(sums) == manifest["dataset"][count]["layer_tokens"]
        check(folder / count, plan)
        run("verify", folder / count, "--against", folder / "plan")


def plans(folder):
    """Strategies, tails, shapes of training, both ways to count and to keep, every selection; runs past the plan's end."""
    lengths = lengths_of(97, 60, 3)
    np.save(folder / "lengths.npy", lengths)
    cases = [
        (["--batch-size", 4, "--world", 2, "--accumulation", 2], ["--total-steps", 14]),
        (["--batch-size", 4, "--world", 4, "--epochs", 2, "--tail", "repeat"], ["--total-tokens", 5000, "--count", "padded"]),
        (["--strategy", "tokens:240", "--world", 2, "--pad-multiple", 8, "--accumulation", 2], ["--total-layer-tokens", 30000]),
        (["--strategy", "mega:3", "--batch-size", 8, "--tail", "drop"], ["--total-steps", 20, "--kept-length", "ratio"]),
        (["--strategy", "fixed", "--batch-size", 8, "--max-length", 32, "--overlong", "truncate"], ["--total-steps", 15, "-L", 64]),
        (["--strategy", "tokens:240", "--epochs", 2],
         ["--total-tokens", 9000, "--kept-length", "ratio", "--count", "padded", "--kept-max", 40]),
    ]
    for number, (batching, training) in enumerate(cases):
        out, limit = folder / f"plan{number}", 32 if "--max-length" in batching else None
        run("batch", folder / "lengths.npy", *batching, "-o", out)
        plan = Plan(out, sequences(lengths, limit))
        for selection in ("uniform", "quota", "quota-min1"):
            ltd = folder / f"ltd{number}-{selection}"
            run("ltd", out, *FLAGS, *training, "--selection", selection, "--write-indices", "--seed", number, "-o", ltd)
            manifest = check(ltd, plan)
            assert (manifest["cu_seqlens"] is None) == (selection == "uniform")
            held = run("verify", ltd, "--against", out).stdout
            assert "every one regenerated" in held, held
            run("verify", ltd)
        # One place asked for alone; what is not there is refused.
        step = int(manifest["steps"]) - 1
        for row, (_, _, ids, _) in enumerate(plan.rows(step)):
            asked = run("ltd", out, *FLAGS, *training, "--seed", number, "--kept-at", f"{step}:2:{row}").stdout.split()
            kept = kept_count(manifest["options"], int(np.load(ltd / "steps.npy")["kept"][step]), len(ids))
            assert list(map(int, asked)) == kept_slots(number, step, 2, row, kept, ids).tolist()
        run("ltd", out, *FLAGS, *training, "--kept-at", f"{step}:2:{row + 1}", code=2)


def windows(folder):
    """A window of indices past the plan's end holds those steps and no others; threads change nothing."""
    lengths = lengths_of(60, 40, 4)
    np.save(folder / "lengths.npy", lengths)
    run("batch", folder / "lengths.npy", "--batch-size", 4, "--world", 3, "-o", folder / "plan")
    plan = Plan(folder / "plan", sequences(lengths))
    for threads in (1, 2, 8):
        run("ltd", folder / "plan", *FLAGS, "--total-steps", 12, "--write-indices", "--window", "3:6", "--threads", threads, "-o",
            folder / f"t{threads}")
    manifest = check(folder / "t1", plan)
    assert manifest["kept"] == manifest["cu_seqlens"] == {"first_step": 3, "steps": 6}
    for other in ("t2", "t8"):
        files = sorted(path.relative_to(folder / "t1") for path in (folder / "t1").rglob("*") if path.is_file())
        assert files == sorted(path.relative_to(folder / other) for path in (folder / other).rglob("*") if path.is_file())
        for file in files:
            assert (folder / "t1" / file).read_bytes() == (folder / other / file).read_bytes()
    run("ltd", folder / "plan", *FLAGS, "--total-steps", 12, "--write-indices", "--index-cap", 1000, "-o", folder / "big", code=4)


def packed_rows(folder):
    """Batches of a packed dataset's rows: its segments keep their share, and the plan and the dataset are both named."""
    lengths = lengths_of(1000, 50, 5)
    ids = np.split(np.random.default_rng(6).permutation(lengths.sum()) + 1, np.cumsum(lengths)[:-1])  # every token another one
    with open(folder / "data.jsonl", "w") as file:
        for sequence in ids:
            file.write(json.dumps({"input_ids": sequence.tolist()}) + "\n")
    run("pack", folder / "data.jsonl", "-L", 50, "--segment-multiple", 2, "-o", folder / "packed")
    run("batch", folder / "packed", "--batch-size", 3, "--world", 2, "--pad-multiple", 8, "-o", folder / "plan")
    dataset = json.loads((folder / "packed" / "manifest.json").read_text())
    rows = np.concatenate([np.load(folder / "packed" / shard["folder"] / "segment_ids.npy") for shard in dataset["shards"]])
    plan = Plan(folder / "plan", lambda member: rows[member].astype(np.int64))
    flags = [*FLAGS, "--total-steps", 9, "--write-indices"]
    before = {path: path.read_bytes() for path in (folder / "packed").rglob("*") if path.is_file()}
    for selection in ("quota", "uniform"):
        run("ltd", folder / "plan", folder / "packed", *flags, "--selection", selection, "-o", folder / selection)
        assert check(folder / selection, plan)["dataset"]["rows_manifest_xxh3_128"] == plan.manifest["source_manifest_xxh3_128"]
        run("verify", folder / selection, "--against", folder / "packed", folder / "plan")
    # Acceptance check 20: the schedules touched no byte of the shards, which hold every source token once.
    assert before == {path: path.read_bytes() for path in (folder / "packed").rglob("*") if path.is_file()}
    run("verify", folder / "packed", "--against", folder / "data.jsonl")
    slots = np.concatenate([np.load(folder / "packed" / shard["folder"] / "input_ids.npy") for shard in dataset["shards"]])
    assert np.array_equal(np.sort(slots[rows > 0]), np.arange(1, lengths.sum() + 1))
    assert "give its folder as well" in run("ltd", folder / "plan", *flags, "-o", folder / "no", code=2).stderr
    run("pack", folder / "data.jsonl", "-L", 50, "--seed", 1, "-o", folder / "other")
    assert "another packed dataset" in run("ltd", folder / "plan", folder / "other", *flags, "-o", folder / "no", code=3).stderr
    run("ltd", folder / "packed", folder / "packed", *flags, "-o", folder / "no", code=2)


def refusals(folder):
    """What cannot work is refused with the number that would; what was changed is found."""
    np.save(folder / "lengths.npy", lengths_of(40, 30, 8))
    run("batch", folder / "lengths.npy", "--batch-size", 4, "--world", 2, "-o", folder / "plan")
    widest = np.load(folder / "plan" / "pad_length.npy").max()
    training = [folder / "plan", *FLAGS, "--total-steps", 5, "-o", folder / "no"]
    for extra, words in ((["--world", 4], "the batch plan has 2 ranks"),
                         (["--accumulation", 2], "the batch plan has 1 micro-batches a step"),
                         (["--micro-batch", 8], "the batch plan has 4 rows in"),
                         (["-L", widest - 1], f"the plan pads batches to as many as {widest} tokens"),
                         (["--curriculum", "fixed_discrete:8,16:3"], "batches are whole")):
        refusal = run("ltd", *training, *extra, code=2).stderr
        assert words in refusal, refusal
    assert "is for a batch plan" in run("ltd", *FLAGS, "--micro-batch", 2, "-L", 64, "--total-steps", 5, "--kept-length", "ratio", "-o",
                                        folder / "no", code=2).stderr
    run("ltd", *training[:-1], folder / "ltd", "--write-indices")
    # Another plan of the same lengths is not the one that it was made for.
    run("batch", folder / "lengths.npy", "--batch-size", 4, "--world", 2, "--seed", 1, "-o", folder / "other")
    assert "made for the manifest" in run("verify", folder / "ltd", "--against", folder / "other", code=1).stdout
    run("verify", folder / "ltd", "--against", folder / "plan")
    path = folder / "plan" / "lengths.npy"
    stored = bytearray(path.read_bytes())
    stored[-8] ^= 1
    path.write_bytes(stored)
    assert "not the lengths" in run("ltd", *training, code=3).stderr
    assert "checksum lengths.npy" in run("verify", folder / "plan", code=1).stdout.replace(":", "")


def main():
    cases = {case.__name__: case for case in (toy, plans, windows, packed_rows, refusals)}
    for name in sys.argv[4:] or cases:
        with tempfile.TemporaryDirectory() as folder:
            cases[name](pathlib.Path(folder))
        print(f"{name}: as the plan's rows give it")


if __name__ == "__main__":
    main()
