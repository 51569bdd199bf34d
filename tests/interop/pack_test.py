#!/usr/bin/env python3
"""The main job, seen from outside: every input format gives the same rows, threads and listings change nothing, every fault of an
output is found by `verify`, and no truncated input gives an output. Usage: pack_test.py SHARDPACK GENERATE.PY [CASE]"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: needs numpy")
    sys.exit(77)

TOOL, GENERATE = sys.argv[1], sys.argv[2]

# How each format is packed: what has to be said on the command line beside the folder.
FORMATS = {
    "megatron": [],
    "jsonl": [],
    "jsonl.gz": [],
    "jsonl.zst": [],
    "npy-rows": [],
    "npy-lengths": [],
    "npy-offsets": [],
    "raw-lengths": ["--dtype", "u16"],
    "datatrove": [],
    "raw": ["--dtype", "u16", "--eos-id", "50256"],
    "nanogpt": ["--format", "nanogpt", "--eos-id", "50256"],
    "olmo": ["--dtype", "u16"],
}
DELIMITED = ("raw", "nanogpt", "olmo")


def run(*command, expect=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == expect, f"{command}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done


def generate(folder, name, **options):
    words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value)]
    run(sys.executable, GENERATE, "--format", name, "--out", folder, *words)


def pack(source, out, *options, expect=0):
    return run(TOOL, "pack", source, "-o", out, "-L", "512", "-q", *options, expect=expect)


def tree(folder):
    """Relative name -> bytes, of everything in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def ids(folder):
    return hashlib.sha256(b"".join(data for name, data in tree(folder).items() if name.endswith("input_ids.npy"))).hexdigest()


def formats_agree(scratch):
    """Formats with boundaries beside the tokens give equal ids; so do those whose delimiter belongs to the sequence."""
    for eos, names in (("none", [name for name in FORMATS if name not in DELIMITED]), ("end", list(FORMATS))):
        digests = {}
        for name in names:
            source, out = scratch / f"{eos}-{name}", scratch / f"{eos}-{name}-out"
            fixed = {"distribution": "fixed", "max_tokens": 128} if name == "npy-rows" else {"max_tokens": 512}
            if name == "npy-rows":
                continue  # rows of equal length: below
            generate(source, name, sequences=700, shards=3, seed=5, eos=eos, **fixed)
            pack(source, out, *FORMATS[name])
            run(TOOL, "verify", out, "-q")
            digests[name] = ids(out)
        assert len(set(digests.values())) == 1, digests
    digests = {}
    for name in ("npy-rows", "megatron", "jsonl"):
        source, out = scratch / f"fixed-{name}", scratch / f"fixed-{name}-out"
        generate(source, name, sequences=100, shards=2, distribution="fixed", max_tokens=128)
        pack(source, out)
        digests[name] = ids(out)
    assert len(set(digests.values())) == 1, digests


def units_stay_together(scratch):
    """Every unit lies whole and in order in one row, its sequences as segments of their own; `verify` finds a unit that is torn."""
    import collections
    source = scratch / "source"
    generate(source, "megatron", sequences=2000, shards=2, max_tokens=100)
    for together, options in ((2, []), (4, ["--segment-multiple", "8", "-K", "9", "--partition-tokens", "50000"]),
                              (5, ["--packer", "sequential", "--overlong", "drop", "--min-tokens", "20"]),
                              (2, ["--rows-multiple", "64", "--tail", "drop", "--append-eos", "--eos-id", "9"]),
                              (4, ["--order", "balanced", "--world", "4", "--balance", "attention"])):
        out = scratch / "out"
        pack(source, out, "--keep-together", together, "--force", *options)
        run(TOOL, "verify", out, "--against", source, "-q")
        places = collections.Counter()
        for shard in sorted(out.glob("shard-*")):
            offsets, origin = np.load(shard / "row_offsets.npy"), np.load(shard / "seq_source.npy")
            for begin, end in zip(offsets, offsets[1:]):
                units = origin[begin:end].reshape(-1, together, 3)
                assert (units[:, :, 0] == units[:, :1, 0]).all() and (units[:, :, 2] == 0).all()
                assert (units[:, 0, 1] % together == 0).all()
                assert (units[:, :, 1] == units[:, :1, 1] + np.arange(together)).all()
                places.update((int(file), int(record)) for file, record, _ in origin[begin:end])
        assert set(places.values()) == {1}
        manifest = json.loads((out / "manifest.json").read_text())
        assert len(places) == manifest["sequences"] and (options or len(places) == 2000), (len(places), manifest["sequences"])
        plan = out / "plan-00000.json"
        run(TOOL, "verify", plan, "-q")
        run(TOOL, "pack", source, "-o", scratch / "again", "--plan", out, "--keep-together", together, "-q", "--force",
            *[word for word in options if word not in ("--packer", "sequential", "--balance", "attention")], expect=3 if "drop" in options else 0)
        if not {"drop", "--balance"} & set(options):
            assert tree(out) == tree(scratch / "again")


def groups_never_mix(scratch):
    """No row holds two values of the group column, whether JSON lines or a file beside binary shards tell it; every packer, order, listing
    and number of threads; `verify` agrees, and finds rows that mix."""
    rng = np.random.default_rng(4)
    lines, shards = scratch / "lines", scratch / "shards"
    lines.mkdir(), shards.mkdir()
    kinds = ["web", "code", "books"]
    group_of, begin = [], 0
    for part in range(3):
        lengths = rng.integers(1, 120, 200)
        groups = rng.integers(0, 3, 200)
        ids = [[int(rng.integers(3, 60000)) for _ in range(length)] for length in lengths]
        (lines / f"part-{part}.jsonl").write_text("".join(json.dumps({"lang": kinds[g], "input_ids": i}) + "\n" for g, i in zip(groups, ids)))
        np.save(shards / f"part-{part}.npy", np.concatenate(ids).astype(np.uint16))
        np.save(shards / f"part-{part}.lengths.npy", lengths)
        np.save(shards / f"part-{part}.lang.npy", (-7 * groups).astype(np.int8))
        group_of.append(groups)

    def check(out, source):
        run(TOOL, "verify", out, "-q")
        run(TOOL, "verify", out, "--against", source, "-q")
        manifest = json.loads((out / "manifest.json").read_text())
        seen = 0
        for shard in manifest["shards"]:
            offsets, origin = np.load(out / shard["folder"] / "row_offsets.npy"), np.load(out / shard["folder"] / "seq_source.npy")
            for first, last in zip(offsets, offsets[1:]):
                assert len({int(group_of[file][record]) for file, record, _ in origin[first:last]}) == 1
                seen += last - first
        assert seen >= manifest["segments"]
        for partition in manifest["partitions"]:
            assert sum(group["rows"] for group in partition["groups"]) == partition["rows"]
            assert sum(group["bound"] for group in partition["groups"]) == partition["bound"]
        return manifest

    for options in ([], ["--partition-tokens", "5000", "--order", "input"], ["--packer", "optimal", "-K", "6"], ["--packer", "sequential"],
                    ["--packer", "concat"], ["--packer", "spfhp", "--rows-multiple", "32", "--tail", "drop", "--order", "by-strategy"],
                    ["--rows-multiple", "32", "--segment-multiple", "8"],
                    ["--order", "balanced", "--balance", "attention", "--world", "4", "--rows-multiple", "auto", "--partition-tokens", "5000"]):
        found = None
        for threads in (1, 3):
            out = scratch / "out"
            pack(lines, out, "--group-column", "lang", "--force", "--threads", threads, *options)
            found = found or tree(out)
            assert tree(out) == found
        manifest = check(out, lines)
        binary = scratch / "binary"
        pack(shards, binary, "--group-column", "lang", "--force", *options)
        assert check(binary, shards)["rows"] == manifest["rows"]
        if not {"sequential", "concat", "drop", "--balance"} & set(options):
            pack(lines, scratch / "again", "--plan", out, "--group-column", "lang", "--force", *options)
            assert tree(scratch / "again") == found
    assert [group["key"] for group in json.loads((binary / "manifest.json").read_text())["partitions"][0]["groups"]] == [-14, -7, 0]

    # Lengths alone: a grouped histogram has the same plan.
    run(TOOL, "scan", lines, "--group-column", "lang", "-o", scratch / "hist.csv", "-q")
    run(TOOL, "plan", scratch / "hist.csv", "-L", 512, "--group-column", "lang", "-o", scratch / "a.json", "-q")
    run(TOOL, "plan", lines, "-L", 512, "--group-column", "lang", "-o", scratch / "b.json", "-q")
    assert (scratch / "a.json").read_bytes() == (scratch / "b.json").read_bytes()
    run(TOOL, "verify", scratch / "a.json", "-q")
    run(TOOL, "pack", lines, "--plan", scratch / "a.json", "--group-column", "lang", "-o", scratch / "by-plan", "-q")
    pack(lines, scratch / "own", "--group-column", "lang")
    assert tree(scratch / "by-plan") == tree(scratch / "own")
    pack(lines, scratch / "refused", "--plan", scratch / "a.json", expect=3)

    # Rows that mix groups: the values changed after packing.
    values = np.load(shards / "part-1.lang.npy")
    np.save(shards / "part-1.lang.npy", np.roll(values, 1))
    report = run(TOOL, "verify", binary, "--against", shards, "--json", expect=1)
    assert any(issue["kind"] == "group" for issue in json.loads(report.stdout)["issues"])
    (shards / "part-1.lang.npy").unlink()
    assert "part-1.lang.npy" in pack(shards, scratch / "refused", "--group-column", "lang", expect=2).stderr
    assert pack(lines, scratch / "refused", "--group-column", "tongue", expect=2)


def threads_change_nothing(scratch):
    """1, 2, 3 and 8 threads give equal bytes, for every file, with several partitions and shards, compressed or not."""
    for source_format in ("megatron", "jsonl.gz"):
        source = scratch / f"source-{source_format}"
        generate(source, source_format, sequences=3000, shards=3, max_tokens=512)
        for options in ([], ["--compress", "zstd:3"], ["--packer", "nnlshp", "--order", "input"],
                        ["--order", "balanced", "--balance", "attention", "--world", "4", "--micro-batch", "2"]):
            first = None
            for threads in (1, 2, 3, 8):
                out = scratch / "out"
                pack(source, out, "--threads", threads, "--partition-tokens", "300000", "--shard-bytes", "400K", "--force",
                     "--rows-multiple", "7", *options)
                found = tree(out)
                assert len([name for name in found if name.startswith("shard-")]) > 20
                first = first or found
                assert found == first, [name for name in first if found.get(name) != first[name]]
            run(TOOL, "verify", out, "-q")


def listing_changes_nothing(scratch):
    """Files made in another order, and given one by one instead of as a folder, are the same dataset."""
    source, shuffled = scratch / "source", scratch / "shuffled"
    generate(source, "megatron", sequences=500, shards=5, max_tokens=512)
    shuffled.mkdir()
    for path in sorted(source.iterdir(), key=lambda p: hashlib.md5(p.name.encode()).digest()):
        shutil.copy(path, shuffled / path.name)
    pack(source, scratch / "a")
    pack(shuffled, scratch / "b")
    assert tree(scratch / "a") == tree(scratch / "b")
    files = sorted(source.glob("*.bin"))
    run(TOOL, "pack", *files, "-o", scratch / "c", "-L", "512", "-q")
    assert tree(scratch / "a") == tree(scratch / "c")


def content_is_kept(scratch):
    """With NumPy alone: every source sequence lies whole in one row, with its segment and position ids, and nothing else does."""
    source, out = scratch / "source", scratch / "out"
    generate(source, "npy-lengths", sequences=2000, shards=2, max_tokens=512)
    pack(source, out, "--partition-tokens", "200000", "--pad-id", "7")
    wanted = []
    for path in sorted(source.glob("*[0-9].npy")):
        lengths = np.load(str(path)[:-4] + ".lengths.npy")
        wanted.append(np.split(np.load(path), np.cumsum(lengths)[:-1]))
    seen = set()
    manifest = json.loads((out / "manifest.json").read_text())
    for shard in manifest["shards"]:
        arrays = {path.stem: np.load(path, mmap_mode="r") for path in (out / shard["folder"]).glob("*.npy")}
        segment = 0
        for row in range(shard["rows"]):
            at = 0
            for number in range(1, 1 + arrays["row_offsets"][row + 1] - arrays["row_offsets"][row]):
                length = arrays["seq_lengths"][segment]
                file, record, first = arrays["seq_source"][segment]
                cells = (row, slice(at, at + length))
                assert (arrays["input_ids"][cells] == wanted[file][record]).all() and first == 0
                assert (arrays["segment_ids"][cells] == number).all()
                assert (arrays["position_ids"][cells] == np.arange(length)).all()
                assert (file, record) not in seen
                seen.add((file, record))
                at += length
                segment += 1
            assert (arrays["input_ids"][row, at:] == 7).all()
            assert not arrays["segment_ids"][row, at:].any() and not arrays["position_ids"][row, at:].any()
    assert len(seen) == 2000 == manifest["sequences"]


def faults_are_found(scratch):
    """A flipped byte in any file, a missing shard or file, swapped rows, a stranger: verify exits 1 and names the place."""
    source, good, bad = scratch / "source", scratch / "good", scratch / "bad"
    generate(source, "megatron", sequences=300, max_tokens=600)
    pack(source, good, "--overlong", "truncate", "--append-eos", "--eos-id", "3", "--partition-tokens", "30000", "--shard-bytes", "60K")
    run(TOOL, "verify", good)
    run(TOOL, "verify", good, "--against", source)
    files = tree(good)
    assert "removed.csv" in files

    def damaged(name, place, change):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        change()
        done = run(TOOL, "verify", bad, expect=1)
        assert place in done.stdout + done.stderr, f"{name}: {place} is not named in\n{done.stdout}{done.stderr}"

    def flip(path, at):
        data = bytearray(path.read_bytes())
        data[at] ^= 0x01
        path.write_bytes(data)

    for name, data in files.items():
        for at in sorted({0, len(data) // 3, len(data) - 1}):
            damaged(f"byte {at} of {name}", pathlib.PurePath(name).parts[0], lambda: flip(bad / name, at))
        damaged(f"without {name}", pathlib.PurePath(name).parts[0], lambda: (bad / name).unlink())
    shard = sorted(name for name in files if name.startswith("shard-"))[0].split("/")[0]
    damaged("without a shard", shard, lambda: shutil.rmtree(bad / shard))
    damaged("a stranger", "stranger.txt", lambda: (bad / "stranger.txt").write_text("?"))

    def swap_rows():
        path = bad / shard / "input_ids.npy"
        rows = np.load(path)
        rows[[0, 1]] = rows[[1, 0]]
        np.save(path, rows)

    damaged("two rows swapped", shard, swap_rows)
    # A source that changed is found by --against alone.
    with open(next(source.glob("*.bin")), "r+b") as data:
        data.seek(100)
        byte = data.read(1)[0] ^ 1
        data.seek(100)
        data.write(bytes([byte]))
    done = run(TOOL, "verify", good, "--against", source, expect=1)
    assert "train-00000" in done.stdout + done.stderr, done.stdout + done.stderr


def truncation_is_refused(scratch):
    """An input cut anywhere: exit 3 with its name, and no output. Headerless files and JSON lines cut between records are smaller
    inputs."""
    for name, options in FORMATS.items():
        source = scratch / f"whole-{name}"
        fixed = {"distribution": "fixed", "max_tokens": 8} if name == "npy-rows" else {"max_tokens": 12}
        generate(source, name, sequences=6, **fixed)
        for path in sorted(source.iterdir()):
            if path.suffix == ".metadata":  # not needed: the width is what --dtype or the default says
                continue
            data = path.read_bytes()
            for size in sorted(set(list(range(0, min(len(data), 60))) + list(range(60, len(data), 7)) + [len(data) - 1])):
                cut, out = scratch / "cut", scratch / "out"
                shutil.rmtree(cut, ignore_errors=True)
                shutil.copytree(source, cut)
                (cut / path.name).write_bytes(data[:size])
                done = subprocess.run([TOOL, "pack", cut, "-o", out, "-L", "16", "-q", *options], capture_output=True, text=True)
                whole_records = (name in ("raw", "nanogpt") and size % 2 == 0) or (name == "jsonl" and (size == 0 or b"}" in data[size - 1 : size + 1]))
                if done.returncode == 0:
                    assert whole_records, f"{path.name} cut to {size} bytes was packed"
                    shutil.rmtree(out)
                else:
                    assert done.returncode in (2, 3), f"{path.name} cut to {size} bytes: exit {done.returncode}\n{done.stderr}"
                    assert done.returncode == 3 or size < 16, f"{path.name} cut to {size} bytes: exit 2\n{done.stderr}"
                    assert path.name.split(".")[0] in done.stderr, f"{path.name} cut to {size} bytes: {done.stderr}"
                    left = [p.name for p in scratch.iterdir() if p.name.startswith("out")]
                    assert not left, f"{path.name} cut to {size} bytes left {left}"


def tails_add_up(scratch):
    """--rows-multiple with each --tail: the multiple holds, verify agrees, and nothing is lost but what --tail drop counts."""
    source = scratch / "source"
    generate(source, "megatron", sequences=400, max_tokens=512)
    for tail in ("repeat", "fill", "drop"):
        for multiple in (1, 64, 1000):
            out = scratch / f"{tail}-{multiple}"
            pack(source, out, "--rows-multiple", multiple, "--tail", tail, "--partition-tokens", "40000")
            manifest = json.loads((out / "manifest.json").read_text())
            assert manifest["rows"] % multiple == 0
            dropped = manifest["removed"]["tail"]
            assert (dropped["sequences"] > 0) == (tail == "drop" and multiple > 1)
            assert manifest["sequences"] + dropped["sequences"] == 400
            run(TOOL, "verify", out, "-q")


def short_rows_hold(scratch):
    """Rows of a few slots, where every EOS, BOS and cut falls on a row's end somewhere: verify agrees, and NumPy finds each token."""
    source, out = scratch / "few.jsonl", scratch / "out"
    lengths = [1, 1, 2, 3, 5, 0, 4, 1, 7, 2]
    source.write_text("".join(json.dumps({"input_ids": list(range(10, 10 + n))}) + "\n" for n in lengths))
    for packer, policy in (("concat", "error"), ("sequential", "split"), ("lpfhp", "split"), ("spfhp", "truncate")):
        for row_tokens in (3, 4, 5):
            for options in ([], ["--append-eos", "--eos-id", "2"], ["--prepend-bos", "--bos-id", "1"],
                            ["--append-eos", "--eos-id", "2", "--prepend-bos", "--bos-id", "1"]):
                for segments in (0, 1, 2):
                    run(TOOL, "pack", source, "-o", out, "-L", row_tokens, "--packer", packer, "--overlong", policy, "-K", segments,
                        "--force", "-q", *options)
                    run(TOOL, "verify", out, "-q")
                    manifest = json.loads((out / "manifest.json").read_text())
                    ids = np.concatenate([np.load(out / shard["folder"] / "input_ids.npy").ravel() for shard in manifest["shards"]])
                    kept = sum(lengths) - manifest["removed"]["truncated"]["tokens"]
                    assert (ids >= 10).sum() == kept and (ids == 1).sum() == manifest["added"]["bos"]
                    assert (ids == 2).sum() == manifest["added"]["eos"] == (9 if "--append-eos" in options else 0)


CASES = [formats_agree, units_stay_together, groups_never_mix, threads_change_nothing, listing_changes_nothing, content_is_kept, faults_are_found, truncation_is_refused, tails_add_up,
         short_rows_hold]

if __name__ == "__main__":
    names = sys.argv[3:] or [case.__name__ for case in CASES]
    for case in CASES:
        if case.__name__ in names:
            with tempfile.TemporaryDirectory(prefix="shardpack-test-") as folder:
                case(pathlib.Path(folder))
            print(f"{case.__name__}: ok", flush=True)
