"""A port of the selection, as docs/ltd.md shows it, against the C++ one on random rows.

    ltd_port_test.py numpy|torch DOCUMENT LTD_SELECT [CASES]
"""
import pathlib
import random
import re
import subprocess
import sys

MODES = ["uniform", "quota", "quota-min1"]


def port_in(document, name):
    """The functions of the code block that follows <!-- port: NAME -->."""
    text = pathlib.Path(document).read_text()
    block = re.search(rf"<!-- port: {name} -->\n```python\n(.*?)```", text, re.DOTALL)[1]
    functions = {}
    exec(block, functions)
    return functions["kept"]


def random_case(draw):
    lengths = [draw.randint(1, draw.choice([1, 8, 60])) for _ in range(draw.choice([0, 1, 1, 2, 5, 12]))]
    gap, parts, ids = draw.choice([0, 0, 0, 1, 3]), [], []
    for number, length in enumerate(lengths, 1):
        parts.append((len(ids), length))
        ids += [number] * length + [0] * gap
    ids += [0] * draw.choice([0, 0, 1, 20])
    if not ids:
        ids = [0]
    mode = draw.randrange(3)
    r = draw.randint(len(lengths) if mode == 2 else 0, len(ids) + 2)
    place = draw.randrange(2**32), draw.randrange(200), draw.randrange(2**31)
    return mode, draw.choice([0, 1, draw.randrange(2**64)]), *place, r, ids, parts


def main():
    name, document, program = sys.argv[1:4]
    cases = int(sys.argv[4]) if len(sys.argv) > 4 else 3000
    kept, draw = port_in(document, name), random.Random(7)
    chosen = [random_case(draw) for _ in range(cases)]
    lines = "".join(f"{mode} {seed} {step} {layer} {row} {len(ids)} {r} {' '.join(f'{b}:{n}' for b, n in parts)}\n"
                    for mode, seed, step, layer, row, r, ids, parts in chosen)
    printed = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(printed) == cases
    if name == "torch":
        import torch
        as_row = torch.tensor
    else:
        as_row = list
    for (mode, seed, step, layer, row, r, ids, _), line in zip(chosen, printed):
        found = [int(slot) for slot in kept(seed, step, layer, row, r, as_row(ids), MODES[mode])]
        assert found == [int(slot) for slot in line.split()], (MODES[mode], seed, step, layer, row, r, ids, found, line)
    print(f"{name}: {cases} rows as the tool selects them")


if __name__ == "__main__":
    main()
