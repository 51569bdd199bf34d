#!/usr/bin/env python3
"""Seeded, realistic shards of token ids in every input format: for tests, benchmarks and trying things out.

    data/generate.py --format megatron --sequences 1000000 --out /tmp/corpus          # ~290 M tokens, in seconds
    data/generate.py --format jsonl.zst --sequences 2000 --distribution mixed --shards 4 --out /tmp/chats

The same seed, distribution, vocabulary and number of sequences give the same sequences in every format, and the same bytes on
every machine: all randomness comes from the raw output of PCG64. Ids follow Zipf's law, as text does; the highest id of the
vocabulary is the end-of-text id and occurs nowhere else. In formats that need a delimiter it takes the place of each sequence's
last token (raw, nanogpt, olmo) or first token (llmc); --eos asks for that in the others too. Needs numpy; .zst needs the zstd
program.
"""
import argparse
import gzip
import io
import pathlib
import struct
import subprocess
import sys

import numpy as np

BLOCK_TOKENS = 1 << 23  # tokens made at once: bounds memory, and is no part of what decides the bytes


# ---- what the sequences are ----------------------------------------------------------------------------------------------------
def uniforms(bits):
    """Raw 64-bit numbers -> floats in (0, 1)."""
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def lognormal(generator, count, median, sigma):
    """By Box and Muller, from raw bits: NumPy's own distributions may change from release to release."""
    u, v = uniforms(generator.random_raw(count)), uniforms(generator.random_raw(count))
    normal = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
    return np.rint(median * np.exp(sigma * normal))


def draw_lengths(options):
    """Tokens of each sequence, 1 to --max-tokens: longer ones are cut there, as most tokenizing pipelines do."""
    generator = np.random.PCG64(options.seed)
    count, most = options.sequences, options.max_tokens
    if options.histogram:
        table = np.loadtxt(options.histogram, delimiter=",", comments="#", skiprows=1, dtype=np.int64, ndmin=2)
        edges = np.cumsum(table[:, 1])
        lengths = table[np.searchsorted(edges, uniforms(generator.random_raw(count)) * edges[-1], side="right"), 0]
    elif options.distribution == "lognormal":  # web text
        lengths = lognormal(generator, count, 180, 1.0)
    elif options.distribution == "mixed":  # chat turns, web text and long documents
        kind = uniforms(generator.random_raw(count))
        lengths = np.where(kind < 0.5, lognormal(generator, count, 40, 0.6), lognormal(generator, count, 330, 0.9))
        lengths = np.where(kind < 0.9, lengths, lognormal(generator, count, 1800, 0.6))
    elif options.distribution == "uniform":
        lengths = 1 + np.floor(uniforms(generator.random_raw(count)) * most)
    else:  # fixed
        lengths = np.full(count, most)
    return np.clip(lengths, 1, most).astype(np.int64)


class Tokens:
    """The ids of all sequences one after the other, made in order."""

    def __init__(self, options, dtype):
        self.generator = np.random.PCG64([options.seed, 1])
        # id = (vocab - 1) ^ u with u uniform in 65,536 steps: probability falls as 1 / id.
        steps = (np.arange(65536) + 0.5) / 65536
        self.zipf = np.floor((options.vocab - 1.0) ** steps - 1e-9).astype(dtype)
        self.zipf = np.minimum(self.zipf, options.vocab - 2).astype(dtype)
        self.spare = np.empty(0, np.uint16)

    def take(self, count):
        """The next `count` ids; what is drawn does not depend on how they are asked for."""
        if count > len(self.spare):
            words = (count - len(self.spare) + 3) // 4
            drawn = self.generator.random_raw(words).astype("<u8").view("<u2")
            self.spare = np.concatenate([self.spare, drawn])
        out, self.spare = self.spare[:count], self.spare[count:]
        return self.zipf[out]


def blocks(lengths, tokens, eos_id, eos):
    """Yield (lengths, ids) of runs of whole sequences."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        base = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, base + BLOCK_TOKENS, side="right")))
        block = lengths[first:last]
        ids = tokens.take(int(block.sum()))
        block_ends = np.cumsum(block)
        if eos == "end":
            ids[block_ends - 1] = eos_id
        elif eos == "start":
            ids[block_ends - block] = eos_id
        yield block, ids
        first = last


# ---- formats: each a function (path without suffix, lengths, blocks, options) -> files -------------------------------------------
def write_ids(path, header, runs):
    with open(path, "wb") as out:
        out.write(header)
        for _, ids in runs:
            out.write(memoryview(np.ascontiguousarray(ids)).cast("B"))
    return path


def npy_header(dtype, shape):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False,
                                               "shape": shape})
    return out.getvalue()


def megatron(stem, lengths, runs, options):
    """Megatron-Core's indexed dataset: one sequence a document."""
    dtype, code = (np.uint16, 8) if options.dtype == "u16" else (np.int32, 4)
    data = write_ids(f"{stem}.bin", b"", ((n, ids.astype(dtype, copy=False)) for n, ids in runs))
    pointers = (np.cumsum(lengths) - lengths) * np.dtype(dtype).itemsize
    with open(f"{stem}.idx", "wb") as out:
        out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1))
        out.write(lengths.astype("<i4").tobytes())
        out.write(pointers.astype("<i8").tobytes())
        out.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())
    return [data, f"{stem}.idx"]


def json_lines(runs, lines_at_once=5000):
    """Pieces of JSON lines, as bytes."""
    for block, ids in runs:
        ends = np.cumsum(block)
        for first in range(0, len(block), lines_at_once):
            part = range(first, min(first + lines_at_once, len(block)))
            yield "".join('{"input_ids": %s}\n' % ids[ends[i] - block[i]:ends[i]].tolist() for i in part).encode()


def jsonl(stem, lengths, runs, options):
    path = f"{stem}.jsonl"
    with open(path, "wb") as out:
        out.writelines(json_lines(runs))
    return [path]


def jsonl_gz(stem, lengths, runs, options):
    """A gzip member for every few thousand lines, as files made by appending have."""
    path = f"{stem}.jsonl.gz"
    with open(path, "wb") as out:
        out.writelines(gzip.compress(piece, 6, mtime=0) for piece in json_lines(runs))
    return [path]


def jsonl_zst(stem, lengths, runs, options):
    """A zstd frame for every few thousand lines."""
    path = f"{stem}.jsonl.zst"
    with open(path, "wb") as out:
        for piece in json_lines(runs):
            out.write(subprocess.run(["zstd", "-q", "-c"], input=piece, stdout=subprocess.PIPE, check=True).stdout)
    return [path]


def npy_rows(stem, lengths, runs, options):
    """[N, S]: every row is one sequence, so all must be equally long."""
    if lengths.min() != lengths.max():
        sys.exit("generate.py: npy-rows holds sequences of one length: add --distribution fixed --max-tokens S")
    return [write_ids(f"{stem}.npy", npy_header(options.numpy_dtype, (len(lengths), int(lengths[0]))), runs)]


def npy_lengths(stem, lengths, runs, options):
    np.save(f"{stem}.lengths.npy", lengths.astype(np.int32))
    return [write_ids(f"{stem}.npy", npy_header(options.numpy_dtype, (int(lengths.sum()),)), runs), f"{stem}.lengths.npy"]


def npy_offsets(stem, lengths, runs, options):
    np.save(f"{stem}.offsets.npy", np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    return [write_ids(f"{stem}.npy", npy_header(options.numpy_dtype, (int(lengths.sum()),)), runs), f"{stem}.offsets.npy"]


def raw(stem, lengths, runs, options):
    """Headerless ids, each sequence ended by the end-of-text id."""
    return [write_ids(f"{stem}.raw", b"", runs)]


def raw_lengths(stem, lengths, runs, options):
    np.save(f"{stem}.lengths.npy", lengths.astype(np.int32))
    return [write_ids(f"{stem}.raw", b"", runs), f"{stem}.lengths.npy"]


def nanogpt(stem, lengths, runs, options):
    """nanoGPT's train.bin: headerless 16-bit ids."""
    return [write_ids(f"{stem}.bin", b"", runs)]


def llmc(stem, lengths, runs, options):
    """llm.c: 256 32-bit words of header, then ids, each document begun by the end-of-text id."""
    magic, version = (20240520, 1) if options.dtype == "u16" else (20240801, 7)
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, lengths.sum()
    return [write_ids(f"{stem}.bin", header.tobytes(), runs)]


def olmo(stem, lengths, runs, options):
    """OLMo and dolma: a headerless file named .npy, and the documents' places as compressed CSV: start,end,id,src,loc."""
    ends = np.cumsum(lengths)
    rows = "".join(f"{end - n},{end},doc-{i},generated,{i + 1}\n" for i, (n, end) in enumerate(zip(lengths.tolist(), ends.tolist())))
    pathlib.Path(f"{stem}.csv.gz").write_bytes(gzip.compress(rows.encode(), 6, mtime=0))
    return [write_ids(f"{stem}.npy", b"", runs), f"{stem}.csv.gz"]


def datatrove(stem, lengths, runs, options):
    """datatrove: headerless ids, the documents' ends in .ds.index, token size and count in .ds.metadata."""
    data = write_ids(f"{stem}.ds", b"", runs)
    pathlib.Path(f"{stem}.ds.index").write_bytes(np.cumsum(lengths).astype("<u8").tobytes())
    size = np.dtype(options.numpy_dtype).itemsize
    pathlib.Path(f"{stem}.ds.metadata").write_text(f"generated|{size}\n{lengths.sum()}\n{lengths.sum() / 1e6:.1f} MT\n")
    return [data, f"{stem}.ds.index", f"{stem}.ds.metadata"]


# name -> (writer, where the end-of-text id goes)
FORMATS = {
    "megatron": (megatron, "none"),
    "jsonl": (jsonl, "none"),
    "jsonl.gz": (jsonl_gz, "none"),
    "jsonl.zst": (jsonl_zst, "none"),
    "npy-rows": (npy_rows, "none"),
    "npy-lengths": (npy_lengths, "none"),
    "npy-offsets": (npy_offsets, "none"),
    "raw-lengths": (raw_lengths, "none"),
    "raw": (raw, "end"),
    "nanogpt": (nanogpt, "end"),
    "llmc": (llmc, "start"),
    "olmo": (olmo, "end"),
    "datatrove": (datatrove, "none"),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=FORMATS, default="megatron")
    parser.add_argument("--sequences", type=int, default=10000)
    parser.add_argument("--distribution", choices=["lognormal", "mixed", "uniform", "fixed"], default="lognormal")
    parser.add_argument("--histogram", metavar="CSV", help="draw lengths from a length,count file instead")
    parser.add_argument("--max-tokens", type=int, default=2048, help="of one sequence (2048)")
    parser.add_argument("--vocab", type=int, default=50257, help="number of ids; the last one is end-of-text (50257)")
    parser.add_argument("--dtype", choices=["u16", "u32"], help="of stored ids (u16 when the vocabulary fits)")
    parser.add_argument("--eos", choices=["none", "end", "start"], help="where the end-of-text id goes (the format's way)")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder, made when it is not there")
    options = parser.parse_args()
    options.dtype = options.dtype or ("u16" if options.vocab <= 65536 else "u32")
    options.numpy_dtype = {"u16": np.uint16, "u32": np.uint32}[options.dtype]
    if options.vocab < 2 or options.vocab > (65536 if options.dtype == "u16" else 2**31):
        parser.error(f"--vocab {options.vocab} does not fit --dtype {options.dtype}")
    if min(options.sequences, options.shards, options.max_tokens) < 1 or options.shards > options.sequences:
        parser.error("--sequences, --shards and --max-tokens are at least 1, and a shard holds at least one sequence")
    if options.format == "nanogpt" and options.dtype != "u16":
        parser.error("nanogpt files hold 16-bit ids")
    return options


def main():
    options = parse_arguments()
    writer, eos = FORMATS[options.format]
    lengths = draw_lengths(options)
    tokens = Tokens(options, options.numpy_dtype)
    options.out.mkdir(parents=True, exist_ok=True)
    edges = [options.sequences * i // options.shards for i in range(options.shards + 1)]
    for shard, (first, last) in enumerate(zip(edges, edges[1:])):
        part = lengths[first:last]
        runs = blocks(part, tokens, options.vocab - 1, options.eos or eos)
        for path in writer(options.out / f"train-{shard:05}", part, runs, options):
            print(path)
    print(f"{options.sequences} sequences, {lengths.sum()} tokens, longest {lengths.max()}", file=sys.stderr)


if __name__ == "__main__":
    main()
