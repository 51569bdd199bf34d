"""The reader that docs/formats.md shows for `pack --as index`, over sources of every format that is read at random: its rows are
those that pack writes.

    index_test.py SHARDPACK GENERATE_PY DOCUMENT
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: needs numpy")
    sys.exit(77)

TOOL, GENERATE, DOCUMENT = sys.argv[1:4]
FORMATS = ["megatron", "npy-rows", "npy-lengths", "npy-offsets", "raw-lengths", "raw", "nanogpt", "llmc", "olmo", "datatrove"]
EOS = "39"  # of a vocabulary of 40: the delimiter of formats that need one


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def reader():
    """The function of the block that follows <!-- reader of an index -->, in at most 20 lines."""
    text = pathlib.Path(DOCUMENT).read_text()
    block = re.search(r"<!-- reader of an index -->\n```python\n(.*?)```", text, re.DOTALL)[1]
    assert block.count("\n") <= 20
    functions = {}
    exec(block, functions)
    return functions["rows_of"]


def native_rows(out):
    manifest = json.loads((out / "manifest.json").read_text())
    return [row for shard in manifest["shards"] for row in np.load(out / shard["folder"] / "input_ids.npy")]


def compare(rows_of, sources, name, scratch, *options):
    """The rows of an index are those of a pack with the same options."""
    index, native = scratch / f"{name}-index", scratch / f"{name}-native"
    run(TOOL, "pack", sources, "-o", index, "--as", "index", "-q", *options)
    run(TOOL, "pack", sources, "-o", native, "-q", *options)
    found, expected = list(rows_of(index, sources)), native_rows(native)
    assert len(found) == len(expected) > 0, name
    for row, (one, other) in enumerate(zip(found, expected)):
        assert np.array_equal(one, other), (name, row, one, other)
    assert "holds" in run(TOOL, "verify", index, "--against", sources)
    return len(found)


def main():
    rows_of, rows = reader(), 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name in FORMATS:
            sources = scratch / name
            run(sys.executable, GENERATE, "--format", name, "--sequences", "150", "--max-tokens", "90", "--vocab", "40", "--shards", "2",
                "--distribution", "fixed" if name == "npy-rows" else "uniform", "--out", sources)
            eos = ["--eos-id", EOS] if name in ("raw", "nanogpt", "llmc", "olmo") else []
            dtype = ["--dtype", "u16"] if name.startswith("raw") else []
            as_nanogpt = ["--format", "nanogpt"] if name == "nanogpt" else []
            rows += compare(rows_of, sources, name, scratch, "-L", "64", "--overlong", "split", "--pad-id", "3", "--partition-tokens", "3K",
                            "--shard-bytes", "4K", *eos, *dtype, *as_nanogpt)
        batches_and_tokens_to_drop(scratch)
    print(f"{len(FORMATS)} formats, {rows} rows")


def batches_and_tokens_to_drop(scratch):
    """batch and ltd read lengths alone: an index serves them as its dataset does."""
    for job in [["batch", "--batch-size", "4"], ["ltd", "--kept-start", "16", "--ramp-steps", "4", "--layers", "6", "--micro-batch", "1",
                                                 "--total-steps", "6", "--write-indices"]]:
        arrays = []
        for kind in ["index", "native"]:
            out = scratch / f"{job[0]}-{kind}"
            run(TOOL, job[0], scratch / f"megatron-{kind}", *job[1:], "-o", out, "-q")
            arrays.append({path.name: path.read_bytes() for path in out.rglob("*.npy")})
        assert arrays[0] == arrays[1] and arrays[0], job


if __name__ == "__main__":
    main()
