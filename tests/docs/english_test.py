"""Comments and pages are plain English, as far as a program can tell: python3 english_test.py.

Each source file opens with a comment that says what it is for; a .cc or .c file may leave that to the header of its name. No sentence of a
comment, a docstring or a page begins with one of FIRST_WORDS, and none holds one of PHRASES.
"""

import io
import pathlib
import re
import subprocess
import tokenize
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST_WORDS = ("Of", "Who", "Whose", "Whom", "Whoever", "What", "Whatever")
PHRASES = ("so many", "of which", "that which")
# Comments inside the CUDA C++ that emitted kernels carry: changing them changes every kernel's code.
EMITTED = {"codegen/cuda/prelude.cc", "codegen/cuda/prelude_tensor_cores.cc"}

BEGINNING = re.compile(rf"(?:^|[.:!?] +|\n *\n)(?:{'|'.join(FIRST_WORDS)})\b[^\n?]*", re.MULTILINE)
QUOTED = re.compile(r"```.*?```|`[^`]*`|\"[^\"]*\"", re.DOTALL)


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True,
                            check=True)
    return [pathlib.Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]


SOURCES = tracked("*.h", "*.cc", "*.c", "*.cu", "*.proto")
SCRIPTS = tracked("*.py")
HASH_COMMENTED = tracked("*.cmake", "*CMakeLists.txt", "*.sh", ".ci/run")


def c_comments(text):
    """Each run of // lines, and each /* */, as one text."""
    runs, last = [], -2
    for number, line in enumerate(text.splitlines()):
        code, mark, comment = line.partition("//")
        if not mark or '"' in code or code.rstrip().endswith(":"):
            continue
        if code.strip() == "" and last == number - 1 and runs:
            runs[-1] += "\n" + comment.strip()
        else:
            runs.append(comment.strip())
        last = number if code.strip() == "" else -2
    return runs + [re.sub(r"\n \* ?", "\n", comment) for comment in re.findall(r"/\*(.*?)\*/", text, re.DOTALL)]


def python_comments(text):
    comments = []
    previous = tokenize.INDENT
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token.string.lstrip("# "))
        elif token.type == tokenize.STRING and token.string.startswith('"""') and previous in (tokenize.INDENT, tokenize.NEWLINE, tokenize.NL):
            comments.append(token.string.strip('"'))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type
    return comments


def hash_comments(text):
    """Each run of lines of one `#`, as one text: the comments of CMake and of the shell."""
    lines = ("\n".join(line.strip() if line.strip().startswith("#") else "" for line in text.splitlines())).split("\n\n")
    return [re.sub(r"^#!.*\n?|^# ?", "", run.strip(), flags=re.MULTILINE) for run in lines if run.strip()]


def faults_of(text):
    """What a reader would stumble over."""
    text = QUOTED.sub("it", text)
    return BEGINNING.findall(text) + [phrase for phrase in PHRASES if re.search(rf"\b{phrase}\b", text)]


class EnglishTest(unittest.TestCase):
    def test_every_file_says_what_it_is_for(self):
        for path in SOURCES:
            if path.suffix in (".cc", ".c") and path.with_suffix(".h") in SOURCES:
                continue
            with self.subTest(path=str(path)):
                self.assertRegex((ROOT / path).read_text(), r"\A(//|/\*)")
        for path in SCRIPTS:
            with self.subTest(path=str(path)):
                self.assertRegex((ROOT / path).read_text(), r'\A(#!.*\n)?("""|# )')

    def test_sentences_begin_with_their_subject(self):
        comments = [(path, comment) for path in SOURCES if str(path) not in EMITTED for comment in c_comments((ROOT / path).read_text())]
        comments += [(path, comment) for path in SCRIPTS if path.name != pathlib.Path(__file__).name
                     for comment in python_comments((ROOT / path).read_text())]
        comments += [(path, comment) for path in HASH_COMMENTED for comment in hash_comments((ROOT / path).read_text())]
        comments += [(path, (ROOT / path).read_text()) for path in tracked("*.md")]
        self.assertGreater(len(comments), 5000)
        for path, comment in comments:
            with self.subTest(path=str(path)):
                self.assertEqual(faults_of(comment), [])

    def test_faults_are_found(self):
        for text in ("Of two, the newer one.", "It is kept. Who waits is told.", "A note:\n\nWhatever comes.", "There are so many of it.",
                     "Tables, of which each is written once."):
            with self.subTest(text=text):
                self.assertNotEqual(faults_of(text), [])
        for text in ("Says what is wrong.", "`Of` is a word.", "The office.", 'Says "What is it?".'):
            with self.subTest(text=text):
                self.assertEqual(faults_of(text), [])


if __name__ == "__main__":
    unittest.main()
