#!/usr/bin/env python3
"""How much faster is `--packer nnlshp` than the straightforward way to the same problem with NumPy and SciPy, and is it as good?

    dense_nnls.py SHARDPACK HISTOGRAM ROW_TOKENS [AT_LEAST]

Non-negative least squares histogram packing, dense: every multiset of at most three lengths that sums to exactly ROW_TOKENS is a
column of a matrix, a length is a row, weight 1, and 0.09 for lengths up to 8; scipy.optimize.nnls; counts rounded to the nearest;
a sequence that is left over takes a row with what fills it up. HISTOGRAM is CSV with the header "length,count". Both ways are
timed in this run, ours as a whole process. Exit 1 when ours needs more rows, or is not AT_LEAST (30) times as fast.
"""
import json, subprocess, sys, time

import numpy as np
import scipy
import scipy.optimize


def strategies(row_tokens):
    """Rows of three lengths, ascending; 0 stands for none."""
    first, second = np.meshgrid(np.arange(row_tokens + 1), np.arange(row_tokens + 1), indexing="ij")
    third = row_tokens - first - second
    valid = (first <= second) & (second <= third)
    return np.stack([first[valid], second[valid], third[valid]], axis=1)


def dense_rows(counts, row_tokens):
    """Rows that the dense formulation needs for counts[l] sequences of l tokens."""
    parts = strategies(row_tokens)
    matrix = np.zeros((row_tokens + 1, len(parts)))
    for column in range(3):
        np.add.at(matrix, (parts[:, column], np.arange(len(parts))), 1)
    matrix = matrix[1:]  # no row for "none"
    target = counts[1:].astype(float)
    weights = np.where(np.arange(1, row_tokens + 1) <= 8, 0.09, 1.0)
    solution, _ = scipy.optimize.nnls(weights[:, None] * matrix, weights * target, maxiter=100 * row_tokens)
    repeats = np.rint(solution)
    left_over = target - matrix @ repeats
    return len(parts), int(repeats.sum() + np.maximum(left_over, 0).sum())


def main():
    shardpack, histogram, row_tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])
    at_least = float(sys.argv[4]) if len(sys.argv) > 4 else 30
    counts = np.zeros(row_tokens + 1, dtype=np.int64)
    for line in open(histogram).read().split()[1:]:
        length, count = map(int, line.split(","))
        counts[length] = count

    command = [shardpack, "plan", histogram, "-L", str(row_tokens), "-K", "3", "--packer", "nnlshp", "--json"]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        found = subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    ours, our_rows = sorted(seconds)[2], json.loads(found.stdout)["rows"]

    start = time.perf_counter()
    columns, rows = dense_rows(counts, row_tokens)
    dense = time.perf_counter() - start
    ratio = dense / ours
    print(f"least squares packing, {counts.sum():,} sequences, rows of {row_tokens} tokens, at most 3 segments")
    print(f"  NumPy {np.__version__}, SciPy {scipy.__version__}, {columns:,} columns: {rows:,} rows in {dense:.2f} s")
    print(f"  shardpack, the whole process, median of {len(seconds)}: {our_rows:,} rows in {ours:.3f} s")
    print(f"  {ratio:.0f} times as fast, {rows - our_rows:,} rows fewer")
    return 0 if our_rows <= rows and ratio >= at_least else 1


if __name__ == "__main__":
    sys.exit(main())
