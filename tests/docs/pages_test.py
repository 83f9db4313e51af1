"""Runs the commands of a page as a reader pastes them: python3 pages_test.py PAGE BIN_FOLDER.

The blocks that begin with ```sh are one script, in order, in an empty folder with the repository's python/ and examples/, and BIN_FOLDER in
place of build/release/bin. A block that begins with ```text right after one of them is what it prints. Numbers, units and the width of columns
may differ, and `...` stands for anything. Searches get few trials, and servers a free port.

A block whose commands import a module that this Python lacks is left out, and the test says so.
"""

import dataclasses
import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = PROGRAMS = None

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNIT = r"(?:ns|us|ms|s|min|%|KB|MB|GB)\b"
NUMBER = re.compile(rf"\.\.\.|\d[\d.,]*(?: ?{UNIT})?")
END_OF_BLOCK = "-- end of block --"


@dataclasses.dataclass
class Step:
    """One block of commands, and what the page says that it prints."""
    commands: str
    printed: str = ""


def steps_of(text):
    steps, after_commands = [], False
    for block in BLOCK.finditer(text):
        language, content = block.groups()
        if language == "sh":
            steps.append(Step(content))
        elif language == "text" and after_commands:
            steps[-1].printed = content
        after_commands = language == "sh"
    return steps


def missing_module(commands):
    modules = re.findall(r"^import (\w+)$", commands, re.MULTILINE)
    return next((module for module in modules if module != "mycc" and importlib.util.find_spec(module) is None), None)


def hurried(commands, port):
    """The same commands with few trials, and another port, since 7070 may be taken."""
    commands = re.sub(r"--trials \d+", "--trials 4", commands)
    return re.sub(r"--budget \w+", "--budget 10s", commands).replace("7070", str(port))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


NOISE = re.compile(r"[;,] (its time is )?known to \+-\d+ % only")  # a busy host adds it to a line


def plain(line):
    """A line without the width of its columns, and as on a quiet host."""
    return re.sub(r"-{2,}", "--", NOISE.sub("", " ".join(line.split())))


def pattern_of(line):
    words, end, pattern = plain(line), 0, ""
    for number in NUMBER.finditer(words):
        pattern += re.escape(words[end:number.start()])
        pattern += ".*" if number[0] == "..." else rf"\d[\d.,e+-]*(?: ?{UNIT})?"
        end = number.end()
    return re.compile(pattern + re.escape(words[end:]))


def missing_line(printed, output):
    """The first line of `printed` that is not in `output` after those before it; None when all are."""
    lines = iter([plain(line) for line in output.splitlines()])
    for line in printed.splitlines():
        if line.strip() and line.strip() != "..." and not any(pattern_of(line).fullmatch(got) for got in lines):
            return line
    return None


class PageTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "build" / "release").mkdir(parents=True)
        (self.folder / "build" / "release" / "bin").symlink_to(PROGRAMS)
        for name in ("python", "examples"):
            (self.folder / name).symlink_to(ROOT / name)

    def test_commands_work_as_pasted(self):
        steps = steps_of(PAGE.read_text())
        self.assertTrue(steps)
        port, taken = free_port(), []
        for step in steps:
            module = missing_module(step.commands)
            if module is None:
                taken.append(step)
            else:
                print(f"left out, since this Python has no {module}:\n{step.commands}")
        # With the jobs of an interactive shell (-m), and this Python as python3.
        script = "trap 'jobs -p | xargs -r kill' EXIT\n" + "".join(f"{hurried(step.commands, port)}\necho '{END_OF_BLOCK}'\n" for step in taken)
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        result = subprocess.run(["bash", "-em", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder,
                                env={**os.environ, "PATH": path}, timeout=300, check=False)
        print(result.stdout)
        self.assertEqual(result.returncode, 0, result.stdout)
        outputs = result.stdout.split(END_OF_BLOCK)
        self.assertEqual(len(outputs), len(taken) + 1)
        for step, output in zip(taken, outputs):
            self.assertIsNone(missing_line(step.printed, output), f"the page says that this is printed:\n{step.printed}\nand it is:\n{output}")


class MatchTest(unittest.TestCase):
    """The comparison of what is printed, which must not accept everything."""

    def test_numbers_units_and_widths_may_differ(self):
        self.assertIsNone(missing_line("dense  16  1.5 ms  2x\n", "dense   4   700.2 us  1.02x\n"))

    def test_words_may_not(self):
        self.assertEqual(missing_line("dense  hit  20\n", "dense  miss  20\n"), "dense  hit  20")

    def test_order_may_not(self):
        self.assertEqual(missing_line("a\nb\n", "b\na\n"), "b")

    def test_anything(self):
        self.assertIsNone(missing_line("started job ...\n...\nend\n", "started job j12\nx\ny\nend\n"))


if __name__ == "__main__":
    PAGE, PROGRAMS = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    unittest.main()
