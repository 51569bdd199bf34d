"""Every test that tests/cases.md names is there. Usage: cases_test.py SOURCE_TREE"""
import ast
import pathlib
import re
import sys

tree = pathlib.Path(sys.argv[1])


def tests_of(path):
    """Names that tests of a file go by: its functions, or the texts of its cases."""
    text = (tree / path).read_text()
    if path.endswith(".py"):
        return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return re.findall(r'TEST_CASE\("((?:[^"\\]|\\.)*)"', text) + re.findall(r'prop\("((?:[^"\\]|\\.)*)"', text)


def is_meant(name, wanted, path):
    return name == wanted or (path.endswith(".cpp") and name.startswith(wanted))


rows = [line for line in (tree / "tests/cases.md").read_text().splitlines() if re.match(r"\| \d+ \|", line)]
numbers, faults = [], []
for row in rows:
    number, _, tests = (cell.strip() for cell in row.strip("|").split("|"))
    numbers.append(int(number))
    for test in tests.split("; "):
        named = re.fullmatch(r"`(.+)`: (.+)", test)
        if not named:
            faults.append(f"case {number}: '{test}' names no test")
        elif not (tree / named[1]).is_file():
            faults.append(f"case {number}: there is no {named[1]}")
        elif not any(is_meant(name, named[2], named[1]) for name in tests_of(named[1])):
            faults.append(f"case {number}: {named[1]} has no test '{named[2]}'")
if numbers != sorted(set(numbers)) or len(numbers) < 50:
    faults.append("the cases are not there once each, in ascending order")
print("\n".join(faults) or f"{len(numbers)} cases, each with a test")
sys.exit(1 if faults else 0)
