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
    assert "the sources tell it by 'loss_mask'" in run("verify", folder / "plan-1", "--against", folder / "mask.npy", code=1).stdout

    run("pack", folder / "labels.jsonl", "-L", 64, "--rows-multiple", 16, "-o", folder / "packed")
    manifest = json.loads((folder / "packed/manifest.json").read_text())
    rows = np.concatenate([(np.load(folder / "packed" / shard["folder"] / "labels.npy") != -100).sum(1) for shard in manifest["shards"]])
    run("batch", folder / "packed", "--batch-size", 3, "--world", 2, "-o", folder / "rows")
    plan = compare(folder / "rows", None, rows)
    assert plan["label_tokens"] == sum(map(sum, marks)) == manifest["loss"]["tokens"]
    run("verify", folder / "rows", "--against", folder / "packed")

    # Megatron-Bridge's rows: of n tokens the trainer makes n - 1 pairs, and the mask is theirs.
    bridge = ["pack", folder / "labels.jsonl", "-L", 64, "--for", "bridge", "--eos-id", 0, "-o", folder / "bridge"]
    if subprocess.run([tool, *map(str, bridge)], capture_output=True).returncode == 4:
        return  # built without Parquet
    run("batch", folder / "bridge", "--batch-size", 3, "--world", 2, "-o", folder / "bridge-rows")
    plan, arrays = load(folder / "bridge-rows")
    assert plan["real_tokens"] == lengths.sum() - len(lengths)
    assert plan["label_tokens"] == sum(sum(mark[1:]) for mark in marks)
    run("verify", folder / "bridge-rows", "--against", folder / "bridge")


class Corpus:
    """Sequences with labels, a score, a list and a name in two files of JSON lines."""

    def __init__(self, folder, count=400, seed=7):
        random = np.random.default_rng(seed)
        self.lengths = stand_in(count, high=90, seed=seed)
        self.lengths[::50] = 0
        self.records = []
        for i, length in enumerate(self.lengths):
            ids = random.integers(0, 40_000, length).tolist()
            self.records.append({"input_ids": ids, "labels": [t if (i + at) % 3 else -100 for at, t in enumerate(ids)], "score": i / 4,
                                 "tags": list(range(i % 4)) + [i], "name": f"record \u00fc {i}"})
        self.paths = [folder / "a.jsonl", folder / "b.jsonl"]
        half = count // 3
        for path, part in zip(self.paths, (self.records[:half], self.records[half:])):
            path.write_text("".join(json.dumps(record) + "\n" for record in part))
        self.place = [(0, i) if i < half else (1, i - half) for i in range(count)]


def load_stored(folder):
    """The plan, its arrays, and all shards' batches in order: (ids, members' lengths, sources, columns) each."""
    plan = json.loads((folder / "manifest.json").read_text())
    arrays = {file["name"][:-4]: np.load(folder / file["name"]) for file in plan["files"] if file["name"].endswith(".npy")}
    names = [file["name"] for file in plan["files"]] + [shard["folder"] for shard in plan["shards"]]
    assert sorted(names + ["manifest.json"]) == sorted(path.name for path in folder.iterdir())
    batches = []
    for shard in plan["shards"]:
        read = {file["name"][:-4]: np.load(folder / shard["folder"] / file["name"]) for file in shard["files"]}
        assert sorted(path.name for path in (folder / shard["folder"]).iterdir()) == [file["name"] for file in shard["files"]]
        begin, slots = read["batch_offsets"], read["batch_slot_offsets"]
        assert begin.dtype == slots.dtype == np.int64 and len(begin) == len(slots) == shard["rows"] + 1
        assert begin[0] == slots[0] == 0 and begin[-1] == shard["segments"] == len(read["seq_lengths"]) and slots[-1] == len(read["input_ids"])
        for b in range(shard["rows"]):
            own, slot = slice(begin[b], begin[b + 1]), slice(slots[b], slots[b + 1])
            columns = {name: read[name][slot if name in ("labels",) else own] for name in ("labels", "score") if name in read}
            for name in ("tags", "name"):
                if name in read:
                    at = read[name + "_offsets"]
                    columns[name] = [read[name][at[i]:at[i + 1]] for i in range(own.start, own.stop)]
            batches.append((read["input_ids"][slot], read["seq_lengths"][own], read["seq_source"][own], columns))
    return plan, arrays, batches


def check_stored(folder, corpus, layout, kept, pad_id=0):
    """Every batch holds what the plan says, from the records; kept(length) is the slice of a sequence that is used."""
    plan, arrays, batches = load_stored(folder)
    offsets, members, pads = arrays["batch_offsets"], arrays["members"], arrays["pad_length"]
    weights = arrays.get("weights", np.ones(len(members)))
    assert len(batches) == len(pads) == plan["epochs"] * plan["batches_per_epoch"]
    for b, (ids, lengths, sources, columns) in enumerate(batches):
        mine, labels = members[offsets[b]:offsets[b + 1]], 0
        assert len(lengths) == len(mine)
        if layout == "padded":
            begin = np.arange(len(mine)) * pads[b]
            assert len(ids) == len(mine) * pads[b]
        else:
            begin = np.cumsum(lengths) - lengths
            assert len(ids) == lengths.sum()
        for i, member in enumerate(mine):
            record, part = corpus.records[member], kept(corpus.lengths[member])
            expected = record["input_ids"][part]
            rest = pads[b] - len(expected) if layout == "padded" else 0
            slots = slice(begin[i], begin[i] + len(expected) + rest)
            assert lengths[i] == len(expected) and tuple(sources[i][:2]) == corpus.place[member]
            assert sources[i][2] == range(corpus.lengths[member])[part].start
            assert ids[slots].tolist() == expected + [pad_id] * rest
            if "labels" in columns:
                assert columns["labels"][slots].tolist() == record["labels"][part] + [-100] * rest
                labels += (weights[offsets[b] + i] > 0) * sum(label != -100 for label in record["labels"][part])
                assert columns["score"][i] == record["score"]
            if "tags" in columns:
                assert columns["tags"][i].tolist() == record["tags"] and bytes(columns["name"][i]).decode() == record["name"]
        if "label_tokens" in arrays:
            assert arrays["label_tokens"][b] == labels
    return plan


def write_shards(folder):
    """--write-shards: every batch in one piece, padded or ragged, with its columns, under every strategy, tail and cut; verify agrees."""
    corpus = Corpus(folder)
    cuts = {"": ([], lambda length: slice(0, length)),
            "end": (["--max-length", 30, "--overlong", "truncate"], lambda length: slice(0, min(length, 30))),
            "start": (["--max-length", 30, "--overlong", "truncate", "--truncate-side", "start"], lambda length: slice(max(length - 30, 0), length)),
            "drop": (["--max-length", 30, "--overlong", "drop", "--min-tokens", 5], lambda length: slice(0, length))}
    number = 0
    for strategy in (["--batch-size", 8], ["--strategy", "tokens:400", "--pad-multiple", 8], ["--strategy", "mega:4", "--batch-size", 8]):
        for tail in ("short", "repeat", "drop"):
            for cut, (options, kept) in cuts.items():
                number += 1
                layout = ("padded", "ragged")[number % 2]
                columns = (["--columns", "all"], [], ["--columns", "none"])[number % 3]
                out = folder / f"out-{number}"
                run("batch", *corpus.paths, *strategy, *options, *columns, "--tail", tail, "--world", 3, "--epochs", 2, "--write-shards", layout,
                    "--shard-bytes", 3000, "--pad-id", 7, "--seed", number, "-o", out)
                plan = check_stored(out, corpus, layout, kept, 7)
                assert len(plan["shards"]) > 4 and plan["ids"]["dtype"] == "u16"
                assert (out / "removed.csv").exists() == bool(cut)
                checked = run("verify", out, "--against", *corpus.paths).stdout
                assert f"{len(plan['shards'])} {layout}" in checked
                run("verify", out)
                run("inspect", out)
    # Which sequences a plan chooses does not depend on whether they are written.
    run("batch", *corpus.paths, "--batch-size", 8, "--world", 3, "--epochs", 2, "--seed", 1, "-o", folder / "plan")
    run("batch", *corpus.paths, "--batch-size", 8, "--world", 3, "--epochs", 2, "--seed", 1, "--write-shards", "ragged", "-o", folder / "both")
    run("ltd", folder / "both", "--layers", 4, "--kept-start", 8, "--ramp-steps", 3, "--total-steps", 4, "-o", folder / "schedule")
    for path in (folder / "plan").glob("*.npy"):
        assert path.read_bytes() == (folder / "both" / path.name).read_bytes(), path.name


def same_shards(folder):
    """Threads, memory and the format of the input change no byte; compression no value."""
    corpus = Corpus(folder)
    common = ["--batch-size", 8, "--world", 2, "--write-shards", "padded", "--shard-bytes", 20000, "--columns", "labels"]
    run("batch", *corpus.paths, *common, "--threads", 1, "-o", folder / "a")
    run("batch", *corpus.paths, *common, "--threads", 7, "--memory", "64M", "-o", folder / "b")
    flat = folder / "flat"
    flat.mkdir()
    for path, part in zip(("x.npy", "y.npy"), (corpus.records[:133], corpus.records[133:])):
        np.save(flat / path, np.concatenate([np.array(record["input_ids"], np.uint16) for record in part]))
        np.save(flat / f"{path[0]}.lengths.npy", [len(record["input_ids"]) for record in part])
        np.save(flat / f"{path[0]}.labels.npy", np.concatenate([np.array(record["labels"], np.int64) for record in part]))
    run("batch", flat, *common, "-o", folder / "c")
    whole = lambda name: {path.relative_to(folder / name): path.read_bytes() for path in (folder / name).rglob("*") if path.is_file()}
    assert whole("a") == whole("b")
    arrays = lambda name: {path: content for path, content in whole(name).items() if path.suffix == ".npy"}
    assert arrays("a") == arrays("c") and any(path.name == "labels.npy" for path in arrays("c"))
    run("batch", *corpus.paths, *common, "--compress", "zstd", "-o", folder / "z")
    assert sum(map(len, whole("z").values())) < sum(map(len, whole("a").values()))
    run("verify", folder / "z", "--against", *corpus.paths)
    fingerprints = [json.loads((folder / name / "manifest.json").read_text())["fingerprint"] for name in "az"]
    assert fingerprints[0] == fingerprints[1]


def shard_faults(folder):
    """A byte changed anywhere, a file or shard gone, strangers: verify names it; what holds no tokens is refused."""
    corpus = Corpus(folder, count=60)
    run("batch", *corpus.paths, "--batch-size", 8, "--epochs", 2, "--max-length", 30, "--overlong", "truncate", "--write-shards", "padded",
        "--shard-bytes", 3000, "-o", folder / "out")
    files = [path for path in (folder / "out").rglob("*") if path.is_file()]
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        for at in (0, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1:])
            assert path.name in run("verify", folder / "out", code=1).stdout, path
        path.unlink()
        if path.name != "manifest.json":
            assert path.name in run("verify", folder / "out", code=1).stdout, path
        path.write_bytes(content)
    stranger = folder / "out/shard-00000-00000/notes.txt"
    stranger.write_text("mine")
    assert "notes.txt" in run("verify", folder / "out", code=1).stdout
    force = ["batch", *corpus.paths, "--batch-size", 8, "--write-shards", "ragged", "--force", "-o", folder / "out"]
    assert "notes.txt" in run(*force, code=2).stderr
    stranger.unlink()
    run(*force)
    run("verify", folder / "out", "--against", *corpus.paths)
    assert "other tokens" in run("verify", folder / "out", "--against", corpus.paths[0], _other(corpus, folder), code=1).stdout

    np.save(folder / "lengths.npy", np.array([3, 4, 5]))
    assert "no token" in run("batch", folder / "lengths.npy", "--batch-size", 2, "--write-shards", "padded", "-o", folder / "no", code=2).stderr
    run("pack", *corpus.paths, "-L", 128, "-o", folder / "packed")
    assert "--order balanced" in run("batch", folder / "packed", "--batch-size", 2, "--write-shards", "padded", "-o", folder / "no", code=2).stderr
    for option in (["--compress", "zstd"], ["--pad-id", 3], ["--resume"], ["--id-dtype", "u32"]):
        assert "--write-shards" in run("batch", *corpus.paths, "--batch-size", 2, *option, "-o", folder / "no", code=2).stderr
    run("batch", *corpus.paths, "--batch-size", 2, "--write-shards", "padded", "--pad-id", 70000, "--id-dtype", "u16", "-o", folder / "no", code=2)
    assert not (folder / "no").exists() and not (folder / "no.partial").exists()


def _other(corpus, folder):
    """The second file with one id changed."""
    lines = corpus.paths[1].read_text().splitlines()
    record = json.loads(lines[5])
    record["input_ids"][0] ^= 1
    path = folder / "other.jsonl"
    path.write_text("\n".join(lines[:5] + [json.dumps(record)] + lines[6:]) + "\n")
    return path


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


cases = [strategies, threads_change_nothing, long_sequences, few_sequences, shards_and_rows, labels, write_shards, same_shards, shard_faults, outputs_are_whole]
wanted = sys.argv[2:]
for case in cases:
    if wanted and case.__name__ not in wanted:
        continue
    with tempfile.TemporaryDirectory(prefix="shardpack-batch-") as scratch:
        case(pathlib.Path(scratch))
    print(f"{case.__name__}: holds")
