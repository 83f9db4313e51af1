"""The completion scripts of both programs in their shells. python3 completion_test.py MYCC MYCC_TUNE

Shells that are not installed are passed over; bash always is.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = {}


def script(program, shell):
    return subprocess.run([PROGRAMS[program], "completion", shell], capture_output=True, text=True, check=True).stdout


class CompletionTest(unittest.TestCase):
    def bash(self, line, folder="/"):
        """The words that bash offers at the end of a line."""
        words = line.replace("=", " = ").split(" ")
        program = words[0]
        command = (script(program, "bash") + f"\nCOMP_WORDS=({' '.join(repr(word) for word in words)})\nCOMP_CWORD={len(words) - 1}\n"
                   f"_{program.replace('-', '_')}_complete\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"")
        ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=folder)
        self.assertEqual(ran.stderr, "")
        return ran.stdout.split()

    def test_commands(self):
        self.assertEqual(self.bash("mycc "), ["compile", "run", "bench", "explain", "tasks", "completion"])
        self.assertEqual(self.bash("mycc co"), ["compile", "completion"])
        self.assertIn("list", self.bash("mycc-tune log "))
        self.assertEqual(self.bash("mycc-tune log exp"), ["export"])

    def test_options(self):
        self.assertEqual(self.bash("mycc compile --st"), ["--strict"])
        for command in ("mycc compile", "mycc explain", "mycc tasks", "mycc-tune tune", "mycc-tune best"):
            self.assertEqual(self.bash(f"{command} --val"), ["--value"])
        self.assertEqual(self.bash("mycc-tune log list --new"), ["--newest"])
        self.assertEqual(self.bash("mycc-tune log gc --new"), [])
        self.assertEqual(self.bash("mycc compile --tuning-s"), [], "reserved options are not offered")
        self.assertEqual(self.bash("mycc tasks --col"), ["--color"])

    def test_values(self):
        self.assertEqual(self.bash("mycc explain x.te --emit "), ["ir", "llvm", "asm", "cuda", "ptx"])
        self.assertEqual(self.bash("mycc explain x.te --emit=c"), ["cuda"])
        self.assertEqual(self.bash("mycc-tune tune x.te --strategy r"), ["random"])
        self.assertIn("znver4", self.bash("mycc compile --target z"))
        self.assertEqual(self.bash("mycc run --seed "), [])
        self.assertEqual(self.bash("mycc completion "), ["bash", "zsh", "fish"])

    def test_an_option_of_two_values(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "gemm.te").touch()
            for line in ("mycc explain --diff ", "mycc explain --diff 1 "):
                self.assertEqual(self.bash(line, folder), [], line)
            self.assertEqual(self.bash("mycc explain --diff 1 2 ", folder), ["gemm.te"])
            self.assertEqual(self.bash("mycc explain --diff 1 2 --tu", folder), ["--tuning-log"])

    def test_statuses(self):
        self.assertEqual(self.bash("mycc-tune log list --status build"), ["build_error", "build_timeout"])

    def test_a_value_is_no_command(self):
        self.assertEqual(self.bash("mycc compile --name run --st"), ["--strict"])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "gemm.te").touch()
            (pathlib.Path(folder) / "out").mkdir()
            self.assertEqual(sorted(self.bash("mycc compile ", folder)), ["gemm.te", "out"])
            self.assertEqual(self.bash("mycc compile -o ", folder), ["out"])
            self.assertEqual(self.bash("mycc compile --trace=g", folder), ["gemm.te"])

    def test_every_word_of_the_help_is_offered(self):
        for program, path in PROGRAMS.items():
            listed = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
            commands = [line.split()[0] for line in listed.split("Subcommands:\n")[1].splitlines() if line.strip()]
            self.assertEqual(self.bash(f"{program} "), commands)

    def test_other_shells_take_their_scripts(self):
        for shell, flags in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            for program in PROGRAMS:
                text = script(program, shell)
                self.assertIn("--strict" if shell == "zsh" and program == "mycc" else "log" if program == "mycc-tune" else "strict", text)
                if shutil.which(shell) is None:
                    continue
                with tempfile.NamedTemporaryFile("w", suffix=f".{shell}") as file:
                    file.write(text)
                    file.flush()
                    ran = subprocess.run([shell, *flags, file.name], capture_output=True, text=True, check=False)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""), (shell, program))

    @unittest.skipIf(shutil.which("fish") is None, "fish is not installed")
    def test_fish_completes(self):
        for line, expected in (("mycc comp", "compile"), ("mycc compile --stri", "--strict"), ("mycc-tune log exp", "export"),
                               ("mycc explain --emit pt", "ptx")):
            text = script(line.split()[0], "fish") + f"\ncomplete -C '{line}'\n"
            ran = subprocess.run(["fish", "-N", "-c", text], capture_output=True, text=True, check=True)
            self.assertEqual(ran.stdout.split()[:1], [expected], line)

    def test_a_shell_that_is_none(self):
        ran = subprocess.run([PROGRAMS["mycc"], "completion", "tcsh"], capture_output=True, text=True, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (2, "mycc: SHELL: `tcsh`; expected one of bash, zsh, fish; see mycc completion --help\n"))


if __name__ == "__main__":
    PROGRAMS = {"mycc": sys.argv.pop(1), "mycc-tune": sys.argv.pop(1)}
    unittest.main()
