"""The relocatable archive: unpacked somewhere, with an empty environment, its programs compile and tune, and only glibc is the host's.
python3 archive_test.py CPACK CPACK_CONFIG"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

CPACK = CONFIG = None

WORKLOAD = """workload scale(x: f32[64,80], w: const f32[80]) -> (y: f32[64,80]) {
  y[i,j] = exp(x[i,j]) * w[j]
}
"""
# The loader and glibc's libraries, as Debian 12 and its successors name them; linux-vdso is the kernel's.
GLIBC = re.compile(r"(ld-linux-x86-64\.so\.2|lib(c|m|mvec|dl|rt|pthread)\.so\.\d+|linux-vdso\.so\.1)$")


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


class ArchiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        subprocess.run([CPACK, "--config", CONFIG, "-G", "TZST", "-B", folder / "packed", "-D", "CPACK_COMPONENTS_ALL=programs;tests;benchmarks"],
                       check=True, stdout=subprocess.DEVNULL)
        (archive,) = (folder / "packed").glob("*.tar.zst")
        (folder / "un packed").mkdir()
        subprocess.run([pathlib.Path(CPACK).with_name("cmake"), "-E", "tar", "xf", archive], check=True, cwd=folder / "un packed")
        (cls.root,) = (folder / "un packed").iterdir()
        cls.work = folder / "work"
        cls.work.mkdir()
        (cls.work / "scale.te").write_text(WORKLOAD)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_program(self, name, *words, **options):
        return subprocess.run([self.root / "bin" / name, *words], capture_output=True, text=True, cwd=self.work, env={}, check=False,
                              **options)

    def test_holds_programs_libraries_and_words(self):
        self.assertEqual(sorted(path.name for path in self.root.iterdir()),
                         ["LICENSE", "README.md", "bin", "deploy", "docs", "examples", "lib", "licenses", "python", "share", "tests"])
        self.assertEqual(sorted(path.name for path in (self.root / "bin").iterdir()), ["cpu_peaks", "mycc", "mycc-tune", "peers_cpu", "time_artifact"])
        for package in ("libgrpc29", "libstdc++6", "libxgboost0", "libdnnl2", "libopenblas0-openmp"):
            self.assertIn("opyright", (self.root / "licenses" / package).read_text())

    def test_shells_complete_the_commands(self):
        for name, word in (("bash-completion/completions/mycc", "--strict"), ("zsh/site-functions/_mycc-tune", "#compdef mycc-tune"),
                           ("fish/vendor_completions.d/mycc.fish", "complete -c mycc ")):
            self.assertIn(word, (self.root / "share" / name).read_text())
        offered = subprocess.run(["bash", "-c", f"source '{self.root}/share/bash-completion/completions/mycc'; COMP_WORDS=(mycc comp); COMP_CWORD=1; "
                                  "_mycc_complete; echo ${COMPREPLY[@]}"], capture_output=True, text=True, check=True)
        self.assertEqual(offered.stdout, "compile completion\n")

    def test_only_glibc_is_the_hosts(self):
        files = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink() and is_elf(path)]
        self.assertGreater(len(files), 10)
        for path in files:
            if path.parent.name == "lib":
                self.assertIsNone(GLIBC.match(path.name), path.name)
                continue
            needs = subprocess.run(["ldd", path], capture_output=True, text=True, env={"PATH": os.defpath}, check=True).stdout
            for line in needs.splitlines():
                name, _, found = line.strip().partition(" => ")
                with self.subTest(program=path.name, library=name):
                    inside = found and pathlib.Path(found.split(" (")[0]).resolve().is_relative_to(self.root.resolve())
                    self.assertTrue(inside or GLIBC.match(pathlib.Path(name.split(" (")[0]).name), line)

    def test_ctest_finds_the_tests_of_devices(self):
        ctest = pathlib.Path(CPACK).with_name("ctest")
        listed = subprocess.run([ctest, "--test-dir", self.root / "tests", "-L", "gpu", "-N", "-V"], capture_output=True, text=True,
                                check=True).stdout
        commands = re.findall(r"Test command: (.*)", listed)
        self.assertGreaterEqual(len(commands), 2)
        for command in commands:
            words = shlex.split(command)
            program = words[words.index("-B") + 1] if "-B" in words else words[0]
            self.assertTrue((self.root / "tests" / program).is_file(), command)

    def test_programs_are_stripped(self):
        command = ["readelf", "--section-headers", self.root / "bin/mycc"]
        sections = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertNotIn(".debug_info", sections)
        self.assertNotIn(".symtab", sections)

    def test_programs_run_with_an_empty_environment(self):
        for name in ("mycc", "mycc-tune"):
            result = self.run_program(name, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_tunes_and_compiles(self):
        tuned = self.run_program("mycc-tune", "tune", "scale.te", "--target", "host", "--trials", "2", "--log", "tuning.db", timeout=120)
        self.assertEqual((tuned.returncode, tuned.stderr), (0, ""))
        compiled = self.run_program("mycc", "compile", "scale.te", "--target", "host", "--tuning-log", "tuning.db", "--strict", "-o", "out")
        self.assertEqual((compiled.returncode, compiled.stderr), (0, ""))
        ran = self.run_program("mycc", "bench", "out/scale.so")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_benchmarks_have_all_that_they_import(self):
        here = {path.stem for path in (self.root / "tests").glob("*/*.py")}
        known = {path.stem for folder in ("onnx", "perf") for path in (pathlib.Path(__file__).parents[1] / folder).glob("*.py")}
        for script in (self.root / "tests").glob("*/*.py"):
            imported = set(re.findall(r"^ *(?:import|from) (\w+)", script.read_text(), re.MULTILINE)) & known
            with self.subTest(script.name):
                self.assertEqual(imported - here, set())
        for path in ("tests/perf/models_cpu.sh", "tests/perf/models_gpu.sh", "tests/requirements.txt", "deploy/models.sh"):
            self.assertTrue((self.root / path).exists(), path)

    def test_compares_with_libraries(self):
        result = subprocess.run(["bash", self.root / "tests/perf/cpu_vs_libraries.sh", "--set", "f32", "--only", "gemm_16x4096|softmax_4x", "--trials", "0",
                                 "--newest", "none", "--rounds", "1", "--seconds", "0.001", "--work", self.work / "compared"],
                                capture_output=True, text=True, cwd=self.work, env={"PATH": os.environ["PATH"]}, check=False, timeout=120)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertRegex(result.stdout, r"gemm_16x4096x4096 .* (onednn|openblas\.gemm) ")
        self.assertRegex(result.stdout, r"geomean_f32_contractions: \d")


if __name__ == "__main__":
    CPACK, CONFIG = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
