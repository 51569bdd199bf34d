"""Batch plans read by NumPy and judged from the lengths alone.

    batch_test.py SHARDPACK [CASE...]

Shares nothing with the tool: what a plan must hold is written down here once more.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

tool = str(pathlib.Path(sys.argv[1]).resolve())


def run(*arguments, code=0):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done


def load(folder):
    plan = json.loads((folder / "manifest.json").read_text())
    names = [file["name"] for file in plan["files"]]
    assert sorted(names + ["manifest.json"]) == sorted(path.name for path in folder.iterdir())
    return plan, {name[:-4]: np.load(folder / name, mmap_mode="r") for name in names}


def stand_in(count, low=1, high=60, seed=5):
    return np.clip(np.exp(np.random.default_rng(seed).normal(3, 0.7, count)), low, high).astype(np.int64)


def check(folder, lengths, tail, pad_of, limit, costs=None):
    """Every rule of a plan over `lengths` (0 = not to be batched); limit(size, pad) says whether a batch may be."""
    plan, arrays = load(folder)
    offsets, members, pads = arrays["batch_offsets"], arrays["members"], arrays["pad_length"]
    group, epochs, batches = plan["world"] * plan["accumulation"], plan["epochs"], plan["batches_per_epoch"]
    assert [arrays[name].dtype.str for name in ("batch_offsets", "members", "pad_length", "group", "real_tokens")] == \
        ["<i8", "<i8", "<i4", "<i4", "<i8"]
    assert len(offsets) == epochs * batches + 1 and len(pads) == len(arrays["group"]) == len(arrays["real_tokens"]) == epochs * batches
    assert offsets[0] == 0 and offsets[-1] == len(members) and (np.diff(offsets) > 0).all() and batches % group == 0
    weights = arrays.get("weights", np.ones(len(members), np.float32))
    assert weights.dtype == np.float32
    wanted = np.flatnonzero(lengths)
    orders = []
    for epoch in range(epochs):
        seen = []
        for b in range(epoch * batches, (epoch + 1) * batches):
            mine, weight = members[offsets[b]:offsets[b + 1]], weights[offsets[b]:offsets[b + 1]]
            assert (lengths[mine] > 0).all()
            assert pads[b] == pad_of(lengths[mine].max()), (pads[b], lengths[mine].max())
            assert limit(len(mine), int(pads[b])), (len(mine), pads[b])
            real = (lengths if costs is None else costs["tokens"])[mine]
            assert arrays["real_tokens"][b] == real[weight > 0].sum()
            assert arrays["group"][b] == (b - epoch * batches) // group
            seen += mine[weight > 0].tolist()
        counts = np.bincount(seen, minlength=len(lengths))
        assert (counts[lengths == 0] == 0).all()
        if tail == "short":
            assert (counts[wanted] == 1).all()
        elif tail == "repeat":
            assert (counts[wanted] >= 1).all()
        else:
            assert (counts <= 1).all()
        orders.append(members[offsets[epoch * batches]:offsets[(epoch + 1) * batches]].tolist())
    assert epochs == 1 or orders[0] != orders[1], "ties and groups are drawn anew in each epoch"
    return plan, arrays


def strategies(folder):
    """Every strategy, tail and shape of training: exact cover, pads, budgets, equal ranks; verify agrees."""
    lengths = stand_in(997)
    lengths[::100] = 0
    np.save(folder / "lengths.npy", lengths)
    longest = int(lengths.max())
    sized = lambda size, pad: size <= 16
    cases = {"fixed": sized, "dynamic": sized, "sorted": sized, "gist": sized, "mega:5": sized, "pool:4": sized, "buckets:10,25": sized,
             "buckets:auto:4": sized, "tokens:500": lambda size, pad: size * pad <= 500,
             "quad:500:64": lambda size, pad: size * (pad + pad * pad / 64) <= 500}
    number = 0
    for strategy, limit in cases.items():
        for tail in ("short", "repeat", "drop"):
            for world, accumulation in ((1, 1), (4, 2), (7, 1)):
                number += 1
                out = folder / f"plan-{number}"
                pad = (1, 8)[number % 2]
                rounded = lambda length: -(-int(length) // pad) * pad
                pad_of = (lambda length: rounded(longest)) if strategy == "fixed" else rounded
                size = [] if ":" in strategy and strategy[0] in "tq" else ["--batch-size", 16]
                run("batch", folder / "lengths.npy", "--strategy", strategy, *size, "--tail", tail, "--world", world, "--accumulation",
                    accumulation, "--epochs", 2, "--pad-multiple", pad, "--seed", number, "-o", out)
                check(out, lengths, tail, pad_of, limit)
                run("verify", out, "--against", folder / "lengths.npy")


def threads_change_nothing(folder):
    """The bytes depend on lengths, options and seed alone."""
    np.save(folder / "lengths.npy", stand_in(5000))
    (folder / "list.txt").write_text("".join(f"{length}\n" for length in stand_in(5000)))
    common = ["--batch-size", 8, "--world", 4, "--epochs", 5]
    run("batch", folder / "lengths.npy", *common, "--threads", 1, "-o", folder / "a")
    run("batch", folder / "lengths.npy", *common, "--threads", 8, "-o", folder / "b")
    run("batch", folder / "lengths.npy", *common, "--seed", 1, "-o", folder / "c")
    run("batch", folder / "list.txt", *common, "-o", folder / "d")
    same = lambda x, y: all((folder / x / f.name).read_bytes() == f.read_bytes() for f in (folder / y).iterdir())
    assert same("a", "b") and not same("a", "c")
    members = [np.load(folder / name / "members.npy") for name in "ad"]
    assert (members[0] == members[1]).all()


def long_sequences(folder):
    """--max-length: refused, cut or dropped, and always counted; shapes; a budget that one sequence breaks."""
    lengths = stand_in(600, high=200)
    np.save(folder / "lengths.npy", lengths)
    common = [folder / "lengths.npy", "--batch-size", 8]
    refusal = run("batch", *common, "--max-length", 50, "-o", folder / "no", code=3).stderr
    assert f"{(lengths > 50).sum()} of 600 sequences" in refusal and not (folder / "no").exists()

    run("batch", *common, "--max-length", 50, "--overlong", "truncate", "-o", folder / "cut")
    plan, arrays = check(folder / "cut", np.minimum(lengths, 50), "short", int, lambda size, pad: size <= 8)
    assert (arrays["kept_tokens"] == np.minimum(lengths, 50)[arrays["members"]]).all() and arrays["kept_tokens"].dtype == np.int32
    assert plan["removed"]["truncated"] == {"sequences": int((lengths > 50).sum()), "tokens": int((lengths - 50).clip(0).sum())}
    run("verify", folder / "cut", "--against", folder / "lengths.npy")

    run("batch", *common, "--max-length", 50, "--overlong", "drop", "--min-tokens", 10, "-o", folder / "dropped")
    kept = np.where((lengths > 50) | (lengths < 10), 0, lengths)
    plan, arrays = check(folder / "dropped", kept, "short", int, lambda size, pad: size <= 8)
    assert "kept_tokens" not in arrays and plan["items"] == (kept > 0).sum()
    run("verify", folder / "dropped", "--against", folder / "lengths.npy")

    shapes = [32, 64, 256]
    run("batch", *common, "--shapes", "32,64,256", "-o", folder / "shapes")
    check(folder / "shapes", lengths, "short", lambda length: min(s for s in shapes if s >= length), lambda size, pad: size <= 8)
    run("verify", folder / "shapes", "--against", folder / "lengths.npy")

    alone = run("batch", folder / "lengths.npy", "--strategy", f"tokens:{lengths.max() - 1}", "-o", folder / "no", code=3).stderr
    assert f"sequence {lengths.argmax()}" in alone, alone
    run("batch", *common, "--max-length", 50, "--overlong", "split", "-o", folder / "no", code=2)
    run("batch", folder / "lengths.npy", "--batch-size", 700, "--tail", "drop", "-o", folder / "no", code=2)
    (folder / "histogram.csv").write_text("length,count\n5,3\n")
    run("batch", folder / "histogram.csv", "--batch-size", 2, "-o", folder / "no", code=2)


def few_sequences(folder):
    """Fewer sequences than ranks: no rank is left without a batch, and nothing counts twice."""
    for count in (1, 3, 7):
        lengths = stand_in(count)
        np.save(folder / f"{count}.npy", lengths)
        run("batch", folder / f"{count}.npy", "--batch-size", 4, "--world", 8, "-o", folder / f"out-{count}")
        plan, arrays = check(folder / f"out-{count}", lengths, "short", int, lambda size, pad: size <= 4)
        assert plan["batches_per_epoch"] == 8 and (arrays["weights"] == 0).sum() == 8 - count == plan["repeated"]["items"]
        run("verify", folder / f"out-{count}", "--against", folder / f"{count}.npy")
    np.save(folder / "none.npy", np.zeros(3, np.int64))
    run("batch", folder / "none.npy", "--batch-size", 4, "-o", folder / "none")
    run("verify", folder / "none")


def shards_and_rows(folder):
    """From shards, sequence numbers count over all files; over a packed dataset, rows are balanced by their segments' squares."""
    lengths = stand_in(2000, high=64)
    for part in (0, 1):
        with open(folder / f"part-{part}.jsonl", "w") as file:
            for length in lengths[part * 1000:part * 1000 + 1000]:
                file.write(json.dumps({"input_ids": list(range(length))}) + "\n")
    inputs = [folder / "part-0.jsonl", folder / "part-1.jsonl"]
    run("batch", *inputs, "--batch-size", 10, "--world", 2, "-o", folder / "batches")
    plan, _ = check(folder / "batches", lengths, "short", int, lambda size, pad: size <= 10)
    assert [source["name"] for source in plan["sources"]] == ["part-0.jsonl", "part-1.jsonl"]
    run("verify", folder / "batches", "--against", *inputs)

    run("pack", *inputs, "-L", 64, "--packer", "lpfhp", "--rows-multiple", 64, "-o", folder / "packed")
    tokens, squares = [], []
    for shard in json.loads((folder / "packed/manifest.json").read_text())["shards"]:
        begin = np.load(folder / "packed" / shard["folder"] / "row_offsets.npy")
        segments = np.load(folder / "packed" / shard["folder"] / "seq_lengths.npy").astype(np.int64)
        tokens += [segments[a:b].sum() for a, b in zip(begin, begin[1:])]
        squares += [(segments[a:b] ** 2).sum() for a, b in zip(begin, begin[1:])]
    manifest = json.loads((folder / "packed/manifest.json").read_text())
    planned = manifest["rows"] - manifest["repeated"]["rows"]
    tokens, squares = np.array(tokens)[:planned], np.array(squares)[:planned]
    run("batch", folder / "packed", "--batch-size", 2, "--world", 4, "--epochs", 2, "-o", folder / "rows")
    plan, arrays = check(folder / "rows", np.full(planned, 64), "short", int, lambda size, pad: size <= 2, {"tokens": tokens})
    cost = np.add.reduceat(squares[arrays["members"]], arrays["batch_offsets"][:-1]).reshape(-1, 4)
    whole = cost[:(planned // 8)]  # the last step is short
    assert whole.max(1).sum() / whole.mean(1).sum() < 1.01 < plan["free_imbalance"]
    run("verify", folder / "rows", "--against", folder / "packed")


def labels(folder):
    """label_tokens: the real tokens that take part in the loss, from labels or a mask; of packed rows, from the dataset."""
    lengths = stand_in(500, high=60)
    marks = [[(i * 7 + t) % 3 > 0 for t in range(length)] for i, length in enumerate(lengths)]
    with open(folder / "labels.jsonl", "w") as file:
        for mark in marks:
            file.write(json.dumps({"input_ids": list(range(1, len(mark) + 1)),
                                   "labels": [t + 1 if m else -100 for t, m in enumerate(mark)]}) + "\n")
    np.save(folder / "mask.npy", np.concatenate([np.arange(1, length + 1) for length in lengths]).astype(np.uint16))
    np.save(folder / "mask.lengths.npy", lengths)
    np.save(folder / "mask.loss_mask.npy", np.concatenate(marks).astype(np.uint8))

    def compare(out, kept, per_item):
        plan, arrays = load(out)
        weights = arrays.get("weights", np.ones(len(arrays["members"]), np.float32))
        expected = np.add.reduceat(per_item[arrays["members"]] * (weights > 0), arrays["batch_offsets"][:-1])
        assert arrays["label_tokens"].dtype.str == "<i8" and (arrays["label_tokens"] == expected).all()
        assert (arrays["label_tokens"] <= arrays["real_tokens"]).all() and plan["label_tokens"] == expected.sum()
        return plan

    number = 0
    for source, column in (("labels.jsonl", "labels"), ("mask.npy", "loss_mask")):
        for cut in ([], ["--max-length", 20, "--overlong", "truncate"], ["--max-length", 20, "--overlong", "truncate", "--truncate-side", "start"],
                    ["--max-length", 20, "--overlong", "drop"]):
            for tail in ("short", "repeat", "drop"):
                number += 1
                out = folder / f"plan-{number}"
                run("batch", folder / source, "--batch-size", 16, "--world", 4, "--epochs", 2, "--tail", tail, *cut, "-o", out)
                part = slice(0, 20) if "truncate" in cut else slice(None)
                if "start" in cut:
                    part = slice(-20, None)
                plan = compare(out, part, np.array([sum(mark[part]) for mark in marks]))
                assert plan["loss_column"] == column
                run("verify", out, "--against", folder / source)
    run("batch", folder / "labels.jsonl", "--columns", "none", "--batch-size", 16, "-o", folder / "none")
    assert "label_tokens" not in load(folder / "none")[1]
    run("verify", folder / "none", "--against", folder / "labels.jsonl")
    run("batch", *[folder / "labels.jsonl"] * 2, "--allow-repeats", "--batch-size", 16, "--limit", 700, "-o", folder / "twice")
    compare(folder / "twice", None, np.array([sum(mark) for mark in marks] * 2))

    # Other labels of the same lengths: only who reads them again can tell.
    changed = (folder / "labels.jsonl").read_text().replace("-100", "7", 1)
    (folder / "other.jsonl").write_text(changed)
    run("verify", folder / "plan-1")
    assert "label_tokens" in run("verify", folder / "plan-1", "--against", folder / "other.jsonl", code=1).stdout
    assert "no column" in run("verify", folder / "plan-1", "--against", folder / "mask.npy", code=1).stdout.replace("'loss_mask'", "no column")

    run("pack", folder / "labels.jsonl", "-L", 64, "--rows-multiple", 16, "-o", folder / "packed")
    manifest = json.loads((folder / "packed/manifest.json").read_text())
    rows = np.concatenate([(np.load(folder / "packed" / shard["folder"] / "labels.npy") != -100).sum(1) for shard in manifest["shards"]])
    run("batch", folder / "packed", "--batch-size", 3, "--world", 2, "-o", folder / "rows")
    plan = compare(folder / "rows", None, rows)
    assert plan["label_tokens"] == sum(map(sum, marks)) == manifest["loss"]["tokens"]
    run("verify", folder / "rows", "--against", folder / "packed")


def outputs_are_whole(folder):
    """Nothing is replaced that is not ours, and --force replaces what is."""
    np.save(folder / "lengths.npy", stand_in(100))
    run("batch", folder / "lengths.npy", "--batch-size", 4, "-o", folder / "out")
    run("batch", folder / "lengths.npy", "--batch-size", 4, "-o", folder / "out", code=2)
    stamp = (folder / "out/members.npy").stat().st_mtime_ns
    run("batch", folder / "lengths.npy", "--batch-size", 4, "--force", "-o", folder / "out")
    assert (folder / "out/members.npy").stat().st_mtime_ns == stamp, "equal files keep their time"
    (folder / "out/notes.txt").write_text("mine")
    assert "notes.txt" in run("batch", folder / "lengths.npy", "--batch-size", 4, "--force", "-o", folder / "out", code=2).stderr
    assert "extra" in run("verify", folder / "out", code=1).stdout
    (folder / "out/notes.txt").unlink()
    with open(folder / "out/members.npy", "r+b") as file:
        file.seek(200)
        file.write(b"\x63")
    assert "checksum" in run("verify", folder / "out", code=1).stdout
    run("batch", folder / "lengths.npy", "--batch-size", 4, "-n", "-o", folder / "dry")
    assert not (folder / "dry").exists()


cases = [strategies, threads_change_nothing, long_sequences, few_sequences, shards_and_rows, labels, outputs_are_whole]
wanted = sys.argv[2:]
for case in cases:
    if wanted and case.__name__ not in wanted:
        continue
    with tempfile.TemporaryDirectory(prefix="shardpack-batch-") as scratch:
        case(pathlib.Path(scratch))
    print(f"{case.__name__}: holds")
