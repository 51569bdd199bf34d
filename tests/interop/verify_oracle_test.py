#!/usr/bin/env python3
"""Packs generated shards in many ways and checks each with NumPy alone: verify_oracle_test.py SHARDPACK"""
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: needs numpy")
    sys.exit(77)

import verify_oracle

CASES = {
    "plain": ["-L", "256"],
    "limits": ["-L", "256", "-K", "3", "--segment-multiple", "8", "--position-start", "2", "--pad-id", "5"],
    "split": ["-L", "64", "--overlong", "split", "--append-eos", "--prepend-bos", "--eos-id", "999", "--bos-id", "998"],
    "truncate": ["-L", "64", "--overlong", "truncate", "--truncate-side", "start", "--min-tokens", "5", "--partition-tokens", "20000"],
    "drop": ["-L", "64", "--overlong", "drop", "--rows-multiple", "16", "--tail", "drop", "--shard-bytes", "20000"],
    "repeat": ["-L", "128", "--packer", "concat", "--append-eos", "--eos-id", "999", "--rows-multiple", "32"],
    "fill": ["-L", "128", "--packer", "sequential", "--overlong", "split", "--rows-multiple", "32", "--tail", "fill"],
}


def write_source(path, random, records):
    lengths = np.minimum(random.lognormal(3.5, 1.0, records).astype(np.int64), 250)  # some are 0: empty records
    np.save(path, random.integers(0, 1000, lengths.sum()).astype(np.uint16))
    np.save(path.with_suffix(".lengths.npy"), lengths)
    return verify_oracle.read_source(path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "in").mkdir()
        random = np.random.default_rng(7)
        sources = [write_source(folder / "in" / f"part-{i}.npy", random, 300) for i in range(3)]
        for name, options in CASES.items():
            out = folder / name
            subprocess.run([sys.argv[1], "pack", "-q", folder / "in", "-o", out, *options], check=True)
            print(verify_oracle.check(out, sources).removeprefix(f"{folder}/"))

        # The oracle itself must see a fault.
        ids = np.load(folder / "plain/shard-00000-00000/input_ids.npy", mmap_mode="r+")
        ids[3, 1] ^= 1
        ids.flush()
        try:
            verify_oracle.check(folder / "plain", sources)
        except AssertionError as difference:
            print("found:", difference)
        else:
            sys.exit("a changed token was not found")


if __name__ == "__main__":
    main()
