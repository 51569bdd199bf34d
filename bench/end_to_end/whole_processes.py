#!/usr/bin/env python3
"""Whole processes side by side, in one run: `shardpack pack` of a Hugging Face dataset against TRL's pack_dataset, of a Megatron
corpus against `cp -r` + sync of the same output, and a preset for packed fine-tuning against first-fit in Python, as such
pipelines do it.

    whole_processes.py SHARDPACK [--sequences 1000000 2000000] [--rounds 3] [--only trl|copy|first-fit]

The corpora come from data/generate.py (log-normal lengths, median 180 tokens). Rounds are interleaved, so that what else the
machine does falls on both sides; the ratios of the medians say more than the seconds. Anonymous memory is RssAnon of /proc,
sampled every 10 ms. The TRL part needs a Python with datasets and trl (./dev interop makes one) and is left out, visibly, where
there is none.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve()
GENERATE = HERE.parents[2] / "data/generate.py"
ROW_TOKENS = 2048
EOS = 50256  # the highest id of the generator's vocabulary: it occurs nowhere in the corpora


# ---- measuring -----------------------------------------------------------------------------------------------------------------

class Run:
    """One whole process: wall and CPU seconds, the most anonymous memory (MB), what it printed."""

    def __init__(self, command):
        self.anonymous = 0.0
        begin = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, env=OFFLINE)
        ended = threading.Event()
        sampler = threading.Thread(target=self.sample, args=(f"/proc/{process.pid}/status", ended))
        sampler.start()
        self.output = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        self.wall = time.perf_counter() - begin
        self.cpu = usage.ru_utime + usage.ru_stime
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        sampler.join()
        if process.returncode != 0:
            sys.exit(f"whole_processes.py: exit {process.returncode} of {' '.join(map(str, command))}")

    def sample(self, path, ended):
        while not ended.wait(0.01):
            try:
                with open(path) as status:
                    kilobytes = [int(line.split()[1]) for line in status if line.startswith("RssAnon")]
            except (FileNotFoundError, ProcessLookupError):
                return
            if kilobytes:
                self.anonymous = max(self.anonymous, kilobytes[0] / 1024)


OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}


def interleaved(rounds, sides):
    """`sides`: name -> (prepare, command). One unmeasured run of each first: the inputs are in the page cache then."""
    runs = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, (prepare, command) in sides.items():
            prepare()
            os.sync()
            run = Run(command)
            if number > 0:
                runs[name].append(run)
    return runs


def median(runs, what):
    return statistics.median(getattr(run, what) for run in runs)


def table(title, runs, notes):
    """Ratios are to the first side, which is ours."""
    ours = next(iter(runs.values()))
    print(f"\n### {title}\n")
    print("| process | wall s | CPU s | anonymous MB | wall, of shardpack's | rows |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, side in runs.items():
        ratio = median(side, "wall") / median(ours, "wall")
        print(f"| {name} | {median(side, 'wall'):.2f} | {median(side, 'cpu'):.2f} | {median(side, 'anonymous'):.0f} | "
              f"{ratio:.2f} | {notes.get(name, '')} |", flush=True)


# ---- corpora -------------------------------------------------------------------------------------------------------------------

def megatron_corpus(folder, sequences):
    subprocess.run([sys.executable, GENERATE, "--sequences", str(sequences), "--out", folder, "--format", "megatron"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def read_megatron(folder):
    """Lengths, and all ids one after the other."""
    header = next(folder.glob("*.idx")).read_bytes()
    count = int(np.frombuffer(header, "<u8", 1, 18)[0])
    return np.frombuffer(header, "<i4", count, 34), np.memmap(next(folder.glob("*.bin")), "<u2", "r")


def write_save_to_disk(corpus, out):
    """The same sequences as `datasets` saves them."""
    import datasets
    import pyarrow as pa
    lengths, ids = read_megatron(corpus)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    batches = []
    for first in range(0, len(lengths), 100_000):
        last = min(first + 100_000, len(lengths))
        values = pa.array(ids[ends[first]:ends[last]].astype(np.int32))
        offsets = pa.array((ends[first:last + 1] - ends[first]).astype(np.int32))
        batches.append(pa.record_batch([pa.ListArray.from_arrays(offsets, values)], ["input_ids"]))
    datasets.disable_progress_bars()
    datasets.Dataset(pa.Table.from_batches(batches)).save_to_disk(str(out))


# ---- the other sides, each a process of its own --------------------------------------------------------------------------------

def peer_trl(folder):
    """What a training script does with packing on. Its rows lie in a cache file on the disk then."""
    import datasets
    from trl import pack_dataset
    packed = pack_dataset(datasets.load_from_disk(folder), seq_length=ROW_TOKENS, strategy="bfd")
    print(len(packed))


def peer_first_fit(corpus, out):
    """First-fit over sequences in order, then rows with starts and mask in Parquet: lists and loops, as written for clarity."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    lengths, ids = read_megatron(pathlib.Path(corpus))
    rows, room = [], []
    for sequence, length in enumerate(lengths.tolist()):
        needed = length - 1  # the collator makes n - 1 targets of n tokens
        for row, free in enumerate(room):
            if free >= needed:
                rows[row].append(sequence)
                room[row] -= needed
                break
        else:
            rows.append([sequence])
            room.append(ROW_TOKENS - needed)
    begins = (np.cumsum(lengths, dtype=np.int64) - lengths).tolist()
    columns = {"input_ids": [], "loss_mask": [], "seq_start_id": []}
    for members in rows:
        row_ids, mask, starts = [], [], []
        for sequence in members:
            starts.append(len(row_ids))
            row_ids += ids[begins[sequence]:begins[sequence] + int(lengths[sequence])].tolist()
            mask += [1] * (int(lengths[sequence]) - 1) + [0]
        columns["input_ids"].append(row_ids)
        columns["loss_mask"].append(mask)
        columns["seq_start_id"].append(starts)
    pq.write_table(pa.table(columns), out, row_group_size=500, compression="zstd")
    print(len(rows))


PEERS = {"trl": peer_trl, "first-fit": peer_first_fit}


# ---- comparisons ---------------------------------------------------------------------------------------------------------------

def remove(*paths):
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


def rows_and_bound(out):
    folder = out / ".shardpack" if (out / ".shardpack").is_dir() else out
    manifest = json.loads((folder / "manifest.json").read_text())
    return f"{manifest['rows']:,} (bound {manifest['plan']['bound']:,})"


def printed_rows(runs):
    return f"{int(runs[-1].output.split()[-1]):,}"


def against_trl(tool, corpus, scratch, sequences, rounds):
    import trl
    saved, out = scratch / "saved", scratch / "packed"
    write_save_to_disk(corpus, saved)

    def forget_cache():
        for path in saved.glob("cache-*"):
            path.unlink()

    ours, theirs = "shardpack pack --for trl", "TRL pack_dataset bfd"
    runs = interleaved(rounds, {
        ours: (lambda: remove(out), [tool, "pack", saved, "-L", ROW_TOKENS, "--for", "trl", "-o", out, "-q"]),
        theirs: (forget_cache, [sys.executable, HERE, "--peer", "trl", saved])})
    table(f"{sequences:,} sequences, Hugging Face in and out (TRL {trl.__version__})", runs,
          {ours: rows_and_bound(out), theirs: printed_rows(runs[theirs])})
    remove(saved, out)


def against_copy(tool, corpus, scratch, sequences, rounds):
    out, copied = scratch / "packed", scratch / "copied"
    ours, theirs = "shardpack pack", "cp -r and sync"
    runs = interleaved(rounds, {
        ours: (lambda: remove(out, copied), [tool, "pack", corpus, "-L", ROW_TOKENS, "-o", out, "-q"]),
        theirs: (lambda: remove(copied), ["sh", "-c", 'cp -r "$1" "$2" && find "$2" -type f -exec sync {} +', "-", out, copied])})
    tokens = read_megatron(corpus)[0].sum(dtype=np.int64)
    table(f"{sequences:,} sequences, Megatron in, NumPy out", runs, {ours: rows_and_bound(out)})
    print(f"\n{tokens / median(runs[ours], 'wall') / 1e6:.0f} M tokens a second")
    remove(out, copied)


def against_first_fit(tool, scratch, sequences, rounds):
    import pyarrow  # what the other side needs, asked for before the work  # noqa: F401
    corpus, out, file = megatron_corpus(scratch / "fit", sequences), scratch / "packed", scratch / "first_fit.parquet"
    ours, theirs = "shardpack pack --for bridge", "first-fit in Python"
    runs = interleaved(rounds, {
        ours: (lambda: remove(out),
               [tool, "pack", corpus, "-L", ROW_TOKENS, "--for", "bridge", "--eos-id", EOS, "-o", out, "-q"]),
        theirs: (lambda: file.unlink(missing_ok=True), [sys.executable, HERE, "--peer", "first-fit", corpus, file])})
    table(f"{sequences:,} sequences, Megatron in, packed fine-tuning Parquet out", runs,
          {ours: rows_and_bound(out), theirs: printed_rows(runs[theirs])})
    remove(corpus, out)


def unless_absent(name, compare, *arguments):
    try:
        compare(*arguments)
    except ImportError as absent:
        print(f"\nskipped: against {name}: {absent}; ./dev interop makes a Python that has it")


def main():
    if sys.argv[1:2] == ["--peer"]:
        return PEERS[sys.argv[2]](*sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--sequences", type=int, nargs="+", default=[1_000_000, 2_000_000])
    parser.add_argument("--first-fit-sequences", type=int, default=20_000, help="its time grows with the square (20000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["trl", "copy", "first-fit"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shardpack-bench.") as folder:
        scratch = pathlib.Path(folder)
        for sequences in options.sequences if options.only != "first-fit" else []:
            corpus = megatron_corpus(scratch / "corpus", sequences)
            for name, compare in (("copy", against_copy), ("trl", against_trl)):
                if options.only in (None, name):
                    unless_absent(name, compare, options.tool, corpus, scratch, sequences, options.rounds)
            remove(corpus)
        if options.only in (None, "first-fit"):
            unless_absent("first-fit", against_first_fit, options.tool, scratch, options.first_fit_sequences, options.rounds)


if __name__ == "__main__":
    main()
