#!/usr/bin/env python3
"""Bounds of linear programming, proven again from plan.json alone, with Python's whole numbers: no row is worth more than the
certificate's scale, the items' prices make the bound, and the plan covers the items within its limits. `verify` must say the same of
each plan, and of each altered one. Usage: certificate_test.py SHARDPACK"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

TOOL = sys.argv[1]


def run(*command, expect=0):
    done = subprocess.run([TOOL, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == expect, f"{command}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done.stdout


def most_worth(row, segments, prices):
    """Of any choice of at most `segments` lengths (0 = any number) that fits a row of `row`. prices: length -> price"""
    # A length that is worth no more than a shorter one is never needed.
    useful, best = [], 0
    for length, price in sorted(prices.items()):
        if price > best:
            useful.append((length, price))
            best = price
    shortest = useful[0][0] if useful else row + 1
    if segments == 0 or segments >= row // shortest:
        most = [0] * (row + 1)
        for slots in range(1, row + 1):
            most[slots] = max([most[slots - 1]] + [most[slots - length] + price for length, price in useful if length <= slots])
        return most[row]
    most = [0] * (row + 1)
    for _ in range(segments):
        most = [max([0] + [most[slots - length] + price for length, price in useful if length <= slots]) for slots in range(row + 1)]
    return most[row]


def fault(plan):
    """What is wrong with a plan and its certificate, or None."""
    row, segments, items = plan["row_tokens"], plan["max_segments"], dict(plan["histogram"])
    open_items = dict(items)
    for entry in plan["entries"]:
        if sum(entry["lengths"]) > row or (segments and len(entry["lengths"]) > segments):
            return "a row is too full"
        for length in entry["lengths"]:
            open_items[length] = open_items.get(length, 0) - entry["count"]
    if any(open_items.values()):
        return "not a cover"
    if plan["bound_kind"] != "lp":
        return None
    certificate = plan["certificate"]
    unit, scale = certificate["granularity"], certificate["scale"]
    coarse = {}
    for length, price in certificate["prices"]:
        coarse[length // unit] = max(coarse.get(length // unit, 0), price)
    if most_worth(row // unit, segments, coarse) > scale:
        return "a row is worth more than the scale"
    worth = sum(items.get(length, 0) * price for length, price in certificate["prices"])
    if -(-worth // scale) != plan["bound"]:
        return "the prices do not make the bound"
    return None


def altered(plan):
    """Plans with a false certificate, each with a word on what was done to it."""
    def with_certificate(**changes):
        return dict(plan, certificate=dict(plan["certificate"], **changes))

    scale, prices = plan["certificate"]["scale"], plan["certificate"]["prices"]
    yield "bound raised", dict(plan, bound=plan["bound"] + 1)
    yield "scale lowered", with_certificate(scale=scale - max(scale // 1000, 1))
    yield "prices raised", with_certificate(prices=[[length, price + scale // 1000 + 1] for length, price in prices])
    yield "no prices", with_certificate(prices=[])
    yield "no certificate", {key: value for key, value in plan.items() if key != "certificate"}


def check(folder, counts, row, segments, published=None):
    """Plans; True where the bound is one of linear programming."""
    histogram, path = folder / "lengths.csv", folder / "plan.json"
    histogram.write_text("length,count\n" + "".join(f"{length},{count}\n" for length, count in sorted(counts.items())))
    path.unlink(missing_ok=True)
    run("plan", histogram, "-L", row, "-K", segments, "--packer", "optimal", "-o", path, "-q")
    plan = json.loads(path.read_text())
    where = f"rows of {row}, {segments} segments, {counts if len(counts) < 50 else len(counts)}"
    assert fault(plan) is None, f"{where}: {fault(plan)}"
    assert published is None or plan["bound"] == published, f"{where}: bound {plan['bound']}, expected {published}"
    run("verify", path)
    if plan["bound_kind"] != "lp":
        return False
    for what, false_plan in altered(plan):
        path.write_text(json.dumps(false_plan))
        if "certificate" in false_plan:
            assert fault(false_plan) is not None, f"{where}: {what}: not false at all"
        run("verify", path, expect=1)
    return True


def check_dataset(folder):
    """A packed dataset whose bound is one of linear programming."""
    draw = random.Random(5)
    records, out = folder / "records.jsonl", folder / "packed"
    lengths = [251] * 30 + [334] * 30 + [501] * 30 + [draw.randint(30, 60) for _ in range(10)]
    records.write_text("".join(json.dumps({"input_ids": [7] * length}) + "\n" for length in lengths))
    run("pack", records, "-o", out, "-L", 1000, "--packer", "optimal", "-q")
    plans = [json.loads(path.read_text()) for path in out.glob("plan-*.json")]
    assert [plan["bound_kind"] for plan in plans] == ["lp"], plans
    assert fault(plans[0]) is None, fault(plans[0])
    assert json.loads((out / "manifest.json").read_text())["solver"].startswith("Clp ")
    assert "certificate" in run("verify", out)
    assert "certificate" in run("verify", out / "plan-00000.json")


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    check_dataset(folder)

    draw = random.Random(4)
    proven = 0
    for case in range(60):
        row = draw.choice([1, 7, 30, 100, 333])
        shortest = draw.randint(1, row)
        lengths = [draw.randint(shortest, row) for _ in range(draw.randint(1, 25))]
        most = draw.choice([1, 20, 10**12])
        proven += check(folder, {length: draw.randint(1, most) for length in lengths}, row, draw.choice([0, 0, 1, 2, 3, 8, row + 5]))
    assert proven >= 5, f"only {proven} bounds of linear programming: the test shows little"

    # Long rows: coarse certificates.
    counts = {}
    for i in range(400):
        length = 20_011 + i * i * 7919 % 400_003
        counts[length] = counts.get(length, 0) + 1 + i % 3
    check(folder, counts, 1_048_573, 3)

    shared = pathlib.Path(os.environ.get("SHARDPACK_SHARED", "")) / "data/histograms"
    published = {("wikipedia_bert_512.csv", 512): {0: 8135727, 2: 10099081, 3: 8143829, 4: 8135727},
                 ("squad_1_1_384.csv", 384): {0: 40195, 2: 45335, 3: 40195}}
    for (name, row), bounds in published.items():
        if not os.environ.get("SHARDPACK_SHARED") or not (shared / name).exists():
            print(f"skipped: {name}: no shared data (set SHARDPACK_SHARED to its folder)")
            continue
        lines = (shared / name).read_text().split()[1:]
        counts = {int(line.split(",")[0]): int(line.split(",")[1]) for line in lines}
        for segments, bound in bounds.items():
            check(folder, {length: count for length, count in counts.items() if length and count}, row, segments, bound)
    print(f"{proven} generated bounds of linear programming proven again")
