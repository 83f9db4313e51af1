"""The calls of the mycc command that its tests share, and the checks of how they end."""

import os
import pathlib
import pty
import re
import subprocess
import tempfile
import unittest

TWO = """# count 3
workload scale(x: f32[4,8], w: const f32[8]) -> (y: f32[4,8]) {
  y[i,j] = x[i,j] * w[j]
}

workload total(v: f32[6]) -> (s: f32[]) {
  s[] = sum[i:6](v[i])
}

# count 2
workload scale_again(a: f32[4,8], b: const f32[8]) -> (c: f32[4,8]) {
  c[p,q] = a[p,q] * b[q]
}
"""


class MyccCase(unittest.TestCase):
    """A folder with a file of two layers. `MYCC` is the program."""

    MYCC = None

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)
        self.te = self.folder / "two-layers.te"
        self.te.write_text(TWO)

    def mycc(self, *words, **options):
        return subprocess.run([self.MYCC, *map(str, words)], capture_output=True, text=True, check=False, **options)

    def succeeds(self, *words, **options):
        result = self.mycc(*words, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        return result.stdout

    def fails(self, status, message, *words, **options):
        result = self.mycc(*words, **options)
        self.assertEqual(result.returncode, status, result)
        self.assertRegex(result.stderr, r"\Amycc: [^\n]*\n\Z")
        self.assertIn(message, result.stderr)
        return result.stdout

    def refuses(self, problems, *words, **options):
        """Ends with 1 after listing the problems of the text, each with its line and a mark."""
        result = self.mycc(*words, **options)
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(re.findall(r"^(\S+: error: [^;\n]*)", result.stderr, re.M), problems)
        self.assertEqual(len(re.findall(r"^      \| *\^~*$", result.stderr, re.M)), len(problems))
        self.assertRegex(result.stderr, rf"\nmycc: {re.escape(str(self.te))}: {len(problems)} errors?\n\Z")

    def on_a_terminal(self, *words, **environment):
        """The output of the command on a terminal of 24 lines."""
        read, write = pty.openpty()
        env = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment}
        with subprocess.Popen([self.MYCC, *map(str, words)], stdout=write, stderr=write, env=env) as process:
            os.close(write)
            shown = b""
            try:
                while piece := os.read(read, 4096):
                    shown += piece
            except OSError:  # how Linux tells that the other end is closed
                pass
        os.close(read)
        self.assertEqual(process.returncode, 1)
        return shown.decode()

    def compiled(self):
        self.succeeds("compile", self.te, "-o", self.folder / "out")
        return self.folder / "out/two_layers.so"
