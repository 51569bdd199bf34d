#!/usr/bin/env python3
"""`sweep` from outside: shards and their histogram give the same figures, the baselines in input order are those of a simulation in
a few lines of Python, and each line is what `plan` prints. Usage: sweep_test.py SHARDPACK GENERATE.PY"""
import csv
import io
import json
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
ROWS, LIMITS = (256, 1024, 2048), (0, 4)


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def pieces_of(length, row, policy):
    if length <= row:
        return [length] if length else []
    if policy == "split":
        return [min(row, length - at) for at in range(0, length, row)]
    return [row] if policy == "truncate" else []


def next_fit(lengths, row, limit, policy):
    rows, room, segments = 0, 0, 0
    for length in lengths:
        for piece in pieces_of(length, row, policy):
            if piece > room or segments == limit > 0:
                rows, room, segments = rows + 1, row, 0
            room, segments = room - piece, segments + 1
    return rows


def stream(lengths, row, limit):
    """Rows, and the sequences that their ends cut."""
    rows, room, segments, cut = 0, 0, 0, 0
    for length in lengths:
        pieces = 0
        while length:
            if room == 0 or segments == limit > 0:
                rows, room, segments = rows + 1, row, 0
            taken = min(room, length)
            length, room, segments, pieces = length - taken, room - taken, segments + 1, pieces + 1
        cut += pieces > 1
    return rows, cut


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shardpack-sweep-"))
    try:
        shards = folder / "shards"
        run(sys.executable, GENERATE, "--sequences", 3000, "--shards", 3, "--out", shards)
        run(TOOL, "scan", shards, "-o", folder / "lengths.csv", "--write-lengths", folder / "lengths.npy", "-q")
        lengths = np.load(folder / "lengths.npy").tolist()
        flags = ["-L", ",".join(map(str, ROWS)), "-K", ",".join(map(str, LIMITS)), "--overlong", "truncate,split,drop", "--packer",
                 "lpfhp,spfhp,none,sequential,concat"]
        figures = {}
        for source in (shards, folder / "lengths.csv"):
            report = json.loads(run(TOOL, "sweep", source, *flags, "--json"))
            lines = list(csv.DictReader(io.StringIO(run(TOOL, "sweep", source, *flags, "--csv"))))
            assert len(report["results"]) == len(lines) == len(ROWS) * 3 * 5 * len(LIMITS)
            for cell, line in zip(report["results"], lines):
                for key in ("rows", "touched_sequences", "lost_tokens", "gap", "asked_packer", "overlong", "input_order", "bound_kind"):
                    assert ("" if cell[key] is None else str(cell[key])) == line[key], (key, cell, line)
                cell.pop("seconds")
                key = (cell["row_tokens"], cell["overlong"], cell["asked_packer"], cell["asked_max_segments"])
                figures.setdefault(key, []).append(cell)
        checked = 0
        for (row, policy, packer, limit), (of_shards, of_histogram) in figures.items():
            over = [length for length in lengths if length > row]
            if packer in ("sequential", "concat"):
                rows, cut = stream(lengths, row, limit) if packer == "concat" else (next_fit(lengths, row, limit, policy), len(over))
                assert (of_shards["rows"], of_shards["touched_sequences"]) == (rows, cut), (row, policy, packer, limit, rows, cut)
                assert (of_shards["input_order"], of_histogram["input_order"]) == ("real", "shuffled")
                assert abs(of_histogram["rows"] / rows - 1) < 0.05  # another order of the same sequences
            else:
                of_shards.pop("knee"), of_histogram.pop("knee")
                assert of_shards == of_histogram
                assert of_shards["touched_sequences"] == len(over) and of_shards["touched_tokens"] == sum(over)
                lost = {"truncate": sum(over) - row * len(over), "split": 0, "drop": sum(over)}[policy]
                assert of_shards["lost_tokens"] == lost and of_shards["tokens"] == sum(lengths) - lost
            planned = json.loads(run(TOOL, "plan", shards, "-L", row, "-K", limit, "--packer", packer, "--overlong", policy, "--json"))
            for key in planned.keys() & of_shards.keys() - {"seconds"}:
                assert planned[key] == of_shards[key], (key, planned, of_shards)
            checked += 1
        print(f"{checked} cells: as planned, as simulated, from shards as from their histogram")
    finally:
        shutil.rmtree(folder)


main()
