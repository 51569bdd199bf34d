"""Runs what a document shows, and compares what it prints.

    readme_test.py [--update] DOCUMENT.md FOLDER_WITH_SHARDPACK SOURCE_TREE

The blocks of a document run from top to bottom in one scratch folder:
  ```console   lines that begin with "$ " are commands, continued while the shell asks for more (an open loop or quote, a
               trailing backslash); what follows is what they print, both streams together. A command exits with 0, or with what its comment says: "# exit 1".
  ```sh        must succeed; what it prints is not compared
  ```python    must succeed
Comments of the document that readers do not see:
  <!-- run: COMMANDS -->    set-up, may span lines; the source tree is $TREE
  <!-- file: NAME -->       the next block is the text of a file
  <!-- not run: WHY -->     the next block is left alone
Times and speeds differ from run to run and are not compared; a line "..." stands for any lines. --update writes what is printed
into the document.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\s*$")
NOTE = re.compile(r"<!--\s*(run|file|not run):\s*(.*?)\s*-->", re.DOTALL)
VARIES = [
    (re.compile(r"\b\d[\d,.]* (s|ms|min)\b"), "TIME"),
    (re.compile(r"\b\d[\d,.]* ?[kMG]? ?tokens/s"), "SPEED"),
]


def comparable(line):
    for pattern, word in VARIES:
        line = pattern.sub(word, line)
    return line.rstrip()


def matches(shown, printed):
    """Do the lines agree, "..." standing for any number of them?"""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(comparable(line)) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(comparable(line) + "\n" for line in printed)) is not None


def steps(lines):
    """Yield (kind, first line, end line, text): blocks by their language, notes by their word; lines are the text's."""
    i = 0
    while i < len(lines):
        fence = FENCE.match(lines[i])
        if fence:
            end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith("```"))
            yield fence.group(1) or "text", i + 1, end, "\n".join(lines[i + 1:end])
            i = end + 1
            continue
        if lines[i].startswith("<!--"):
            end = next(j for j in range(i, len(lines)) if "-->" in lines[j])
            note = NOTE.match("\n".join(lines[i:end + 1]))
            if note:
                yield note.group(1), i, end + 1, note.group(2)
            i = end + 1
            continue
        i += 1


def is_open(command):
    """Would the shell ask for more?"""
    text = "\n".join(command)[2:]
    if text.endswith("\\"):
        return True
    done = subprocess.run(["bash", "-n", "-c", text], stderr=subprocess.PIPE, text=True)
    return done.returncode != 0 and "unexpected end of file" in done.stderr or "unexpected EOF" in done.stderr


def commands(block):
    """Split a console block: [(command lines, output lines)]."""
    found = []
    for line in block.split("\n"):
        if line.startswith("$ "):
            found.append(([line], []))
        elif found and not found[-1][1] and is_open(found[-1][0]):
            found[-1][0].append(line)
        elif found:
            found[-1][1].append(line)
        else:
            raise SystemExit(f"a console block begins with a command, not with: {line}")
    return found


class Runner:
    def __init__(self, scratch, bin_folder, tree):
        self.scratch, self.tree, self.faults, self.count = scratch, tree, [], 0
        self.environment = dict(os.environ, PATH=f"{bin_folder}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
                                TREE=tree, TERM="dumb", NO_COLOR="1", LC_ALL="C.UTF-8")

    def run(self, *command):
        self.count += 1
        done = subprocess.run(command, cwd=self.scratch, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def must_succeed(self, at, *command):
        status, printed = self.run(*command)
        if status != 0:
            self.faults.append(f"line {at}: exit {status}\n{command[-1]}\n{printed}")

    def console(self, at, block):
        """Run a console block; return it with what was printed now."""
        renewed = []
        for command, shown in commands(block):
            text = "\n".join(command)[2:]
            expected = int((re.search(r"# exit (\d+)\s*$", text) or [0, 0])[1])
            status, printed = self.run("bash", "-c", text)
            lines = printed.rstrip("\n").split("\n") if printed.strip() else []
            if status != expected:
                self.faults.append(f"line {at}: {text}\nexpected exit {expected}, found {status}\n{printed}")
            elif not matches(shown, lines):
                self.faults.append(f"line {at}: {text}\nthe document shows\n" + "\n".join(shown) + f"\nbut it prints\n{printed}")
                shown = lines
            renewed += command + shown
        return renewed


def main():
    update = "--update" in sys.argv
    document, bin_folder, tree = (pathlib.Path(a).resolve() for a in sys.argv[1:] if a != "--update")
    lines = document.read_text().split("\n")
    with tempfile.TemporaryDirectory() as scratch:
        runner, edits, leave, name = Runner(scratch, str(bin_folder), str(tree)), [], False, None
        for kind, begin, end, text in steps(lines):
            if kind == "not run":
                leave = True
            elif kind == "file":
                name = text
            elif kind == "run":
                runner.must_succeed(begin + 1, "bash", "-ec", text)
            elif leave:
                leave = False
            elif name is not None:
                pathlib.Path(scratch, name).write_text(text + "\n")
                name = None
            elif kind == "console":
                edits.append((begin, end, runner.console(begin + 1, text)))
            elif kind == "sh":
                runner.must_succeed(begin + 1, "bash", "-ec", text)
            elif kind == "python":
                runner.must_succeed(begin + 1, sys.executable, "-c", text)
        if update:
            for begin, end, renewed in reversed(edits):
                lines[begin:end] = renewed
            document.write_text("\n".join(lines))
        for fault in runner.faults:
            print(f"{document.name}: {fault}\n")
        print(f"{document.name}: {runner.count} commands, {len(runner.faults)} not as shown")
        sys.exit(bool(runner.faults) and not update)


if __name__ == "__main__":
    main()
