#!/usr/bin/env python3
"""The progress bar on a real terminal (a pty): painted, not too often, narrow enough, gone in the end; and Ctrl-C there."""
import fcntl, os, pathlib, pty, re, select, signal, struct, subprocess, sys, tempfile, termios, time, unittest

TOOL = str(pathlib.Path(sys.argv.pop(1)).resolve())
COLUMNS = 70


def run_on_terminal(arguments, folder, interrupt_after=None, environment=None):
    """(what appeared on the terminal, exit status as subprocess gives it, seconds)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    variables = {**os.environ, "TERM": "xterm", **(environment or {})}
    variables.pop("NO_COLOR", None)
    begin = time.monotonic()

    def own_terminal():  # so that Ctrl-C typed there reaches the tool
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen([TOOL, *arguments], cwd=folder, env=variables, stdin=slave, stdout=subprocess.DEVNULL, stderr=slave,
                               preexec_fn=own_terminal)
    os.close(slave)
    text, typed = b"", False
    while True:
        ready, _, _ = select.select([master], [], [], 0.05)
        if interrupt_after and not typed and re.search(interrupt_after, text):
            os.write(master, b"\x03")
            typed = True
        if ready:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # the other side is closed
                break
            if not chunk:
                break
            text += chunk
    os.close(master)
    return text.decode(), process.wait(), time.monotonic() - begin


class Terminal(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        self.scan = ["scan", "zeros.bin", "--dtype", "u16", "--eos-id", "1", "--threads", "1"]

    def make_zeros(self, size):
        """One long sequence, sparse on disk: much to do (12 ns a token or so) from nothing."""
        with open(self.folder / "zeros.bin", "wb") as file:
            file.seek(size - 2)
            file.write(b"\x01\x00")  # its delimiter

    def tearDown(self):
        self.scratch.cleanup()

    def test_bar(self):
        self.make_zeros(128 << 20)
        text, status, seconds = run_on_terminal(self.scan, self.folder)
        self.assertEqual(status, 0)
        paints = re.findall(r"\r\x1b\[K([^\r\n]+)", text)
        self.assertGreaterEqual(len(paints), 1, text)
        self.assertLessEqual(len(paints), seconds * 6 + 1)
        for paint in paints:
            self.assertLess(len(paint), COLUMNS)
        self.assertRegex(paints[-1], r"^\w[\w ]*  \[#*\.*\] +\d+ %  ")
        self.assertTrue(text.endswith("\r\x1b[K"), repr(text[-40:]))

    def test_never_and_dumb(self):
        self.make_zeros(64 << 20)
        self.assertEqual(run_on_terminal(self.scan + ["--progress", "never"], self.folder)[0], "")
        self.assertEqual(run_on_terminal(self.scan, self.folder, environment={"TERM": "dumb"})[0], "")

    def test_color_of_an_error(self):
        text, status, _ = run_on_terminal(["pak"], self.folder)
        self.assertEqual(status, 2)
        self.assertIn("shardpack: \x1b[1;31merror:\x1b[0m unknown command", text)

    def test_interrupt(self):
        self.make_zeros(4 << 30)
        pack = ["pack", *self.scan[1:], "-L", "1024", "--overlong", "split", "-o", "out"]
        text, status, _ = run_on_terminal(pack, self.folder, interrupt_after=rb"\d %")
        self.assertEqual(status, -signal.SIGINT)
        self.assertIn("stopping and cleaning up", text)
        self.assertEqual(sorted(os.listdir(self.folder)), ["zeros.bin"])


if __name__ == "__main__":
    try:
        os.close(pty.openpty()[0])
    except OSError as error:  # a bare chroot has no /dev/pts
        print(f"skipped: no pseudo-terminal here ({error})")
        sys.exit(77)
    unittest.main()
