"""The mycc command as a user meets it: what it prints, what it writes, and with which status it ends. python3 mycc_cli_test.py MYCC"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mycc_case  # noqa: E402
from mycc_case import TWO  # noqa: E402
from npy_files import write_npy  # noqa: E402

SANITIZED = os.environ.get("MYCC_SANITIZE", "")


class MyccTest(mycc_case.MyccCase):
    # Wrong calls.

    def test_version(self):
        self.assertRegex(self.succeeds("--version"), r"\Amycc \d+\.\d+\.\d+\n\Z")

    def test_misuse(self):
        self.fails(2, "a command is required; expected one of compile, run, bench")
        self.fails(2, "unknown command `compose`; expected one of compile, run, bench, explain, tasks, completion (did you mean compile?)", "compose", self.te)
        self.fails(2, "--frobnicate", "compile", self.te, "--frobnicate")
        self.fails(2, "FILE", "compile")
        self.fails(2, "--threads", "bench", "x.so", "--threads", "none")
        self.fails(2, "--trace", "compile", self.te, "--trace", "t", "--tuning-log", "l")

    def test_help(self):
        self.assertIn("compile", self.succeeds("--help"))
        self.assertIn("--strict", self.succeeds("compile", "--help"))

    def test_unknown_target(self):
        self.fails(2, "--target:", "compile", self.te, "--target", "zx81")
        self.fails(2, "(did you mean haswell?)", "compile", self.te, "--target", "hasswell")
        self.fails(2, "`cuda:one`; expected cuda:0", "compile", self.te, "--target", "cuda:one")

    def test_a_gpu_that_is_not_there(self):
        self.fails(1, "cuda", "compile", self.te, "--target", "cuda:99")

    def test_what_is_reserved_is_answered_not_yet(self):
        self.fails(2, "not yet asked over the network; expected --tuning-log", "compile", self.te, "--tuning-server", "127.0.0.1:50917")
        self.te.write_text("workload f[N in 1..512](x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }")
        self.refuses([f"{self.te}:1:11: error: symbolic extents such as [N in 1..512] are not yet supported"], "compile", self.te)

    def test_module_that_is_no_identifier(self):
        self.fails(2, "--name: `a-b` is no C identifier", "compile", self.te, "--name", "a-b")

    def test_a_model_that_is_none(self):
        self.fails(1, "/none", "compile", self.te, "--model", self.folder / "none")
        self.fails(1, f"{self.te}: this is no cost model; expected a file of `mycc-tune log model export`", "compile", self.te, "--model", self.te)
        self.fails(2, "--model", "compile", self.te, "--model", "m", "--trace", "t")

    def test_xgboost_is_loaded_for_a_model_alone(self):
        result = self.mycc("compile", self.te, "-o", self.folder / "out", env={**os.environ, "LD_DEBUG": "libs"})
        self.assertEqual(result.returncode, 0)
        self.assertTrue("libsqlite3" in result.stderr, "what is loaded is listed")
        self.assertFalse("xgboost" in result.stderr)

    def test_trace_for_several_workloads(self):
        self.fails(2, "has 3 workloads", "compile", self.te, "--trace", self.te)

    def test_emit(self):
        self.fails(2, "--emit: `cobol`; expected one of ir, llvm, asm, cuda, ptx", "explain", self.te, "--emit", "cobol")
        self.fails(2, "expected ir, llvm or asm for a CPU", "explain", self.te, "--emit", "cuda")
        self.fails(2, "expected ir, cuda or ptx for a GPU", "explain", self.te, "--emit", "asm", "--target", "h200")

    def test_debug_variables_that_mean_nothing(self):
        for variable, value, message in (("MYCC_DEBUG", "6", "MYCC_DEBUG: `6`; expected a level from 0 to 5"),
                                         ("MYCC_DEBUG", "much", "expected a level from 0 to 5"),
                                         ("MYCC_PRINT_AFTER", "lunch", "no pass `lunch`; expected one of graph.inline_constants, "),
                                         ("MYCC_PRINT_AFTER", "lunch", "graph.merge_products, lower_blocks, unfuse_loops, "),
                                         ("MYCC_TIME_PASSES", "yes", "MYCC_TIME_PASSES: `yes`; expected 0 or 1")):
            self.fails(2, message, "tasks", self.te, env={**os.environ, variable: value})

    # Files that are not there, or are not what they claim to be.

    def test_missing_file(self):
        self.fails(1, "nowhere.te", "compile", self.folder / "nowhere.te")
        self.fails(1, "nowhere.so", "run", self.folder / "nowhere.so")

    def test_syntax_error_has_its_place(self):
        self.te.write_text("workload f(x: f32[4]) -> (y: f32[4]) {\n  y[i] = x[i] +\n}\n")
        self.refuses([f"{self.te}:3:1: error: unexpected `}}`"], "compile", self.te)

    def test_all_errors_of_a_file_are_told(self):
        self.te.write_text("workload f(x: float32[4]) -> (y: f32[4]) {\n  y[i] = x[i]\n}\n"
                           "workload g(x: f32[4]) -> (y: f32[4], z: f32[4]) {\n  y[i] = relu(x[i])\n  z[i] = x[i+1]\n}\n")
        self.refuses([f"{self.te}:1:15: error: unexpected `float32`", f"{self.te}:5:10: error: unknown function `relu`",
                      f"{self.te}:6:12: error: index `i + 1` of `x` (dimension 0) ranges over 1..4"], "tasks", self.te)
        self.assertIn("      = hint: `relu` is written max(x, 0.0)\n", self.mycc("tasks", self.te).stderr)

    def test_more_errors_than_are_shown(self):
        self.te.write_text("workload f(x: f32[4]) -> (y: f32[4]) {\n" + "".join(f"t{i}[i]: f32[4] = q{i}[i]\n" for i in range(30)) + "}\n")
        result = self.mycc("tasks", self.te)
        self.assertEqual(result.stderr.count(": error: "), 20)
        self.assertTrue(result.stderr.endswith(f"mycc: {self.te}: 31 errors; the first 20 are shown\n"), result.stderr)

    # Colour.

    def test_a_terminal_gets_colours(self):
        self.te.write_text("workload f(x: f32[4]) -> (y: f32[4]) {\n  y[i] = q[i]\n}\n")
        self.assertIn("\x1b[1;31merror:\x1b[0m unknown tensor `q`", self.on_a_terminal("tasks", self.te))
        self.assertNotIn("\x1b", self.on_a_terminal("tasks", self.te, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_a_terminal("tasks", self.te, TERM="dumb"))
        self.assertNotIn("\x1b", self.on_a_terminal("tasks", self.te, "--color", "never"))
        self.assertIn("\x1b[1;31merror:", self.on_a_terminal("tasks", self.te, "--color=always", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.mycc("tasks", self.te).stderr)
        self.assertIn("\x1b[1;31mmycc:", self.mycc("--color", "always", "tasks", self.te).stderr)
        self.fails(2, "--color", "tasks", self.te, "--color", "often")

    def test_empty_file(self):
        self.te.write_text("")
        self.refuses([f"{self.te}:1:1: error: the text ends here"], "compile", self.te)

    def test_a_model_under_another_name(self):
        model = self.folder / "model.pb"
        model.write_bytes(b"\x08\x08:\x00\x12\x01")
        self.fails(1, "is no text; expected workloads (.te), or a model under a name that ends in .onnx", "tasks", model)

    def test_logs_that_are_none(self):
        self.fails(1, "no.db", "compile", self.te, "--tuning-log", self.folder / "no.db")
        self.fails(1, "two-layers.te", "compile", self.te, "--tuning-log", self.te)
        self.assertEqual(self.te.read_text(), TWO)

    def test_library_that_is_none(self):
        self.fails(1, "is no library compiled by mycc", "run", self.te)
        libc = subprocess.run(["ldd", self.MYCC], capture_output=True, text=True, check=True).stdout.split("libc.so.6 => ")[1].split()[0]
        self.fails(1, "is no library compiled by mycc", "run", libc)

    def test_malformed_trace(self):
        self.te.write_text(TWO[:TWO.index("# count 2")].split("\n\n")[1])
        trace = self.folder / "t.trace"
        trace.write_text("v1\nfrobnicate(t0.a0)\n")
        self.fails(1, f"{trace}: 2:1", "compile", self.te, "--trace", trace, "-o", self.folder)

    def test_files_without_end_are_refused_at_once(self):
        # Little memory: nobody reads more than what such a file may hold. A sanitizer's shadow alone is larger.
        limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))
        huge = self.folder / "huge.te"
        with huge.open("w") as file:
            file.truncate(3 << 30)
        for file in ("/dev/zero", huge):
            message = f"`{file}` is too large; expected at most 64 MiB"
            self.fails(1, message, "compile", file, "-o", self.folder, preexec_fn=limit)
            self.fails(1, message, "tasks", file, preexec_fn=limit)
        library = self.compiled()
        self.fails(1, "`/dev/zero`: no .npy file", "run", library, "--function", "total", "--input", "v=/dev/zero", preexec_fn=limit)
        self.te.write_text("workload total(v: f32[6]) -> (s: f32[]) {\n  s[] = sum[i:6](v[i])\n}\n")
        self.fails(1, "`/dev/zero` is too large", "compile", self.te, "--trace", "/dev/zero", "-o", self.folder, preexec_fn=limit)
        write_npy(self.folder / "v.npy", "<f4", (1 << 30, 7), b"")
        self.fails(1, "holds <f4 [1073741824,7]; argument `v` expects", "run", library, "--function", "total", "--input",
                   f"v={self.folder / 'v.npy'}", preexec_fn=limit)

    def test_library_that_is_cut_short(self):
        whole = self.compiled().read_bytes()
        cut = self.folder / "cut.so"
        for share in (0.1, 0.3, 0.5, 0.7):
            cut.write_bytes(whole[:int(share * len(whole))])
            self.fails(1, "is no library compiled by mycc: the file is cut short", "run", cut)

    def test_byte_order_mark(self):
        self.te.write_bytes(b"\xef\xbb\xbf" + TWO.encode())
        self.succeeds("tasks", self.te)

    def test_a_misused_command_names_its_own_help(self):
        self.fails(2, "; see mycc compile --help", "compile", self.te, "--frobnicate")
        self.fails(2, "; see mycc run --help", "run")
        self.fails(2, "; see mycc --help", "compose")

    def test_seeds_are_whole_numbers(self):
        for command in ("run", "bench"):
            self.fails(2, "--seed: `-1`; expected a whole number, 0 or more", command, "x.so", "--seed", "-1")

    # Folders and disks.

    def test_tasks_go_where_they_were_asked(self):
        link = self.folder / "link.te"
        link.symlink_to("target.te")
        self.succeeds("tasks", self.te, "-o", link)
        text = (self.folder / "target.te").read_text()
        self.assertTrue(link.is_symlink() and text.startswith("# count 5\nworkload scale"))
        for output in ("-", "/dev/stdout"):
            self.assertEqual(self.succeeds("tasks", self.te, "-o", output), text)
            self.fails(2, "--json: expected no -o", "tasks", self.te, "-o", output, "--json")
        self.succeeds("tasks", self.te, "-o", "/dev/null")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.succeeds("tasks", self.te, "-o", fifo)
        self.assertEqual(os.read(reader, 1 << 16).decode(), text)
        os.close(reader)

    def test_a_library_behind_a_link_is_replaced_there(self):
        (self.folder / "out").mkdir()
        (self.folder / "out/two_layers.so").symlink_to(self.folder / "installed.so")
        self.compiled()
        self.assertTrue((self.folder / "out/two_layers.so").is_symlink())
        self.succeeds("run", self.folder / "installed.so", "--function", "total")

    def test_output_folder_is_a_file(self):
        self.fails(1, "two-layers.te", "compile", self.te, "-o", self.te)
        self.fails(1, "cannot", "compile", self.te, "-o", "/proc/1/nowhere")

    def test_no_space(self):
        out = self.folder / "out"
        # Files cannot grow beyond this; a full disk stops writing in the same way.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        self.fails(1, "cannot", "compile", self.te, "-o", out, preexec_fn=limit)
        self.assertEqual([path.name for path in out.glob("*") if path.stat().st_size > 1000 or "part" in path.name], [])

    def test_artifact_is_replaced_whole_or_stays(self):
        out = self.compiled().parent
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        self.te.write_text(TWO.replace("v[i])", "v[i] * 2.0)"))
        # Room for the header, not for the library.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (12000, 12000))
        self.fails(1, "cannot write", "compile", self.te, "-o", out, preexec_fn=limit)
        self.assertEqual({path.name: path.read_bytes() for path in out.iterdir()}, before)

    def test_full_standard_output(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([self.MYCC, "tasks", self.te], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("mycc: cannot write", result.stderr)

    # The program's purpose.

    def test_compile_writes_a_library_and_says_why(self):
        table = self.succeeds("compile", self.te, "-o", self.folder / "new/out")
        self.assertRegex(table, r"(?m)^scale +miss +- +- +no tuning log was named$")
        names = sorted(path.name for path in (self.folder / "new/out").iterdir())
        self.assertEqual(names, ["dlpack.h", "two_layers.h", "two_layers.json", "two_layers.so"])

    def test_strict_writes_nothing(self):
        self.fails(1, "scale (miss), total (miss), scale_again (miss)", "compile", self.te, "--strict", "-o", self.folder / "out")
        self.assertFalse((self.folder / "out").exists())

    def test_same_input_same_bytes(self):
        first = self.compiled().read_bytes()
        self.assertEqual(self.compiled().read_bytes(), first)

    def test_trace_is_used(self):
        self.te.write_text("workload total(v: f32[6]) -> (s: f32[]) {\n  s[] = sum[i:6](v[i])\n}\n")
        trace = self.folder / "t.trace"
        trace.write_text("v1\nsplit(t1.r0, [3, 2])\n")
        self.assertRegex(self.succeeds("compile", self.te, "--trace", trace, "-o", self.folder), r"(?m)^total +trace ")
        function = json.loads((self.folder / "two_layers.json").read_text())["functions"][0]
        self.assertEqual((function["reason"], function["trace"]), ("trace", trace.read_text()))

    def test_compile_reports_in_json(self):
        lines = self.succeeds("compile", self.te, "-o", self.folder / "out", "--json").splitlines()
        self.assertEqual(len(lines), 1)
        report = json.loads(lines[0])
        self.assertEqual(report["module"], "two_layers")
        self.assertEqual([pathlib.Path(file).exists() for file in report["files"]], [True] * 4)
        self.assertEqual([row["name"] for row in report["functions"]], ["two_layers_scale", "two_layers_total", "two_layers_scale_again"])
        self.assertEqual({key: report["functions"][1][key] for key in ("workload_name", "reason", "record", "expected_seconds")},
                         {"workload_name": "total", "reason": "miss", "record": None, "expected_seconds": None})
        self.assertEqual(report["warnings"], [])
        strict = json.loads(self.fails(1, "--strict", "compile", self.te, "-o", self.folder / "none", "--json", "--strict"))
        self.assertEqual((strict["files"], (self.folder / "none").exists()), ([], False))

    def test_quiet_prints_nothing(self):
        self.assertEqual(self.succeeds("compile", self.te, "-o", self.folder / "out", "--quiet"), "")
        self.assertTrue((self.folder / "out/two_layers.so").exists())
        self.fails(2, "--quiet", "compile", self.te, "--quiet", "--json")

    def test_reasons_have_colours(self):
        self.assertIn("\x1b[33mmiss\x1b[0m", self.succeeds("compile", self.te, "-o", self.folder / "out", "--color", "always"))

    def test_tasks(self):
        table = self.succeeds("tasks", self.te, "-o", self.folder / "tasks.te")
        self.assertRegex(table, r"(?m)^scale +5 +0\.0000 ")
        self.assertIn("2 distinct workloads, 6 in all", table)
        rows = [json.loads(line) for line in self.succeeds("tasks", self.folder / "tasks.te", "--json").splitlines()]
        self.assertEqual([(row["workload_name"], row["count"], row["flops"]) for row in rows], [("scale", 5, 32), ("total", 1, 6)])

    def test_explain(self):
        nest = self.succeeds("explain", self.te)
        self.assertIn("# total: miss, default of rule `row` (no tuning log was named)", nest)
        self.assertIn("for ", nest)
        self.assertRegex(nest, r"(?m)^# code: \d+ of \d+ vector registers, \d+ B of stack frame, \d+ B of vectors spilled$")
        self.assertRegex(nest, r"(?m)^# share of peak: not known without a measured time")
        self.assertIn("define", self.succeeds("explain", self.te, "--emit", "llvm"))
        self.assertIn("scale_body", self.succeeds("explain", self.te, "--emit", "asm"))
        self.assertRegex(self.succeeds("explain", self.te, "--emit", "ir"), "(?m)^# t0 is .*, t1.* is ")

    def test_explain_says_why_products_are_apart(self):
        text = """workload attention(q: f32[64,16], k: f32[64,16], v: f32[64,16]) -> (o: f32[64,16]) {
  s[i,j]: f32[64,64] = sum[d:16](q[i,d] * k[j,d])
  m[i]: f32[64] = max[j:64](s[i,j])
  e[i,j]: f32[64,64] = exp(s[i,j] - m[i])
  l[i]: f32[64] = sum[j:64](e[i,j])
  t[i,d]: f32[64,16] = sum[j:64](e[i,j] * v[j,d])
  o[i,d] = t[i,d] / l[i]
}
"""
        attention = self.folder / "attention.te"
        attention.write_text(text)
        self.assertNotIn("not in one pass", self.succeeds("explain", attention, "--target", "haswell", "--emit", "ir"))
        on_gpu = self.succeeds("explain", attention, "--target", "h200")
        self.assertIn("# not in one pass: the products take f32 by f32 and f32 by f32; expected f16 or bf16 for all four, and sums in f32", on_gpu)
        attention.write_text(text.replace("- m[i]", "- max(m[i], 0.0)"))
        self.assertRegex(self.succeeds("explain", attention, "--target", "host"), "(?m)^# not in one pass: step .* max has no known correction; expected ")
        self.assertNotIn("not in one pass", self.succeeds("explain", self.te))

    def test_explain_compares_records_of_a_log(self):
        self.fails(2, "FILE is required", "explain")
        self.fails(2, "--diff: two records and --tuning-log with their log are expected, and no FILE", "explain", "--diff", 1, 2)
        self.fails(2, "--diff", "explain", "--diff", 1)
        for words in (("--emit", "ir"), ("--target", "h200"), ("--trace", self.te)):
            self.fails(2, "excludes", "explain", "--diff", 1, 2, "--tuning-log", "l", *words)

    def test_a_gpu_that_is_compiled_for(self):
        self.assertRegex(self.succeeds("explain", self.te, "--target", "h200"),
                         r"(?m)^# kernel 1: \d+ registers, 0 B spilled, \d+ of 232448 B shared, \d+ threads x \d+ blocks$")
        self.assertRegex(self.succeeds("explain", self.te, "--target", "h200"), r"(?m)^# counts 1: .* us: DRAM .* MB in .*; limited by [a-zA-Z ]+$")
        self.assertIn("__global__", self.succeeds("explain", self.te, "--target", "h200", "--emit", "cuda"))
        self.assertIn(".target sm_90a", self.succeeds("explain", self.te, "--target", "h200", "--emit", "ptx"))
        self.succeeds("compile", self.te, "--target", "a100", "-o", self.folder / "gpu")
        header = (self.folder / "gpu/two_layers.h").read_text()
        self.assertIn("in the memory of a CUDA device", header)
        self.assertIn("captured into a CUDA graph", header)
        description = json.loads((self.folder / "gpu/two_layers.json").read_text())
        self.assertIn("arch=sm_80", description["target"])

    def test_slow_code_is_a_warning(self):
        self.te.write_text("workload gemm(x: f32[1024,1024], w: f32[1024,1024]) -> (y: f32[1024,1024]) {\n  y[i,j] = sum[k:1024](x[i,k] * w[k,j])\n}\n")
        words = ("compile", self.te, "--target", "h200", "-o", self.folder / "gpu")
        self.succeeds(*words)
        trace = json.loads((self.folder / "gpu/two_layers.json").read_text())["functions"][0]["trace"]
        crowded = self.folder / "crowded.trace"
        crowded.write_text(trace + "min_blocks_per_sm(t2.a0.0, 8)\n")  # few registers are left for each
        for extra in ((), ("--quiet",)):
            result = self.mycc(*words, "--trace", crowded, *extra)
            self.assertEqual(result.returncode, 0, result)
            self.assertRegex(result.stderr, r"\Amycc: warning: two_layers_gemm_0: a thread spills \d+ bytes [^\n]*\n\Z")
            self.assertNotIn("warning", result.stdout)

    def test_nvrtc_that_is_not_there(self):
        environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "CUDA_HOME", "LD_LIBRARY_PATH")}
        words = ("compile", self.te, "--target", "h200", "-o", self.folder / "gpu")
        if self.mycc(*words, env=environment).returncode == 0:
            self.skipTest("this machine has NVRTC where the loader looks")
        self.fails(1, "libnvrtc.so.13 was not found", *words, env=environment)
        self.assertFalse((self.folder / "gpu/two_layers.so").exists())
        self.succeeds("explain", self.te, "--target", "h200", "--emit", "cuda", env=environment)

    def test_debug_variables_only_print(self):
        self.te.write_text(TWO[:TWO.index("workload total")])
        plain = self.compiled().read_bytes()

        def says(variable, value):
            result = self.mycc("compile", self.te, "-o", self.folder / "out", env={**os.environ, variable: value})
            self.assertEqual(result.returncode, 0, result)
            self.assertEqual((self.folder / "out/two_layers.so").read_bytes(), plain)
            return result.stderr

        for level, added in (("1", "scale: miss, default of rule `"), ("2", "scale: candidate: default of rule `"), ("3", "\nsketch "),
                             ("4", "\nscale_body:"), ("5", "// w after simplify")):
            self.assertIn(added, says("MYCC_DEBUG", level))
        for empty in ("", "0"):
            self.assertEqual(says("MYCC_DEBUG", empty), "")
        self.assertNotIn("candidate", says("MYCC_DEBUG", "1"))
        self.assertNotIn("scale_body", says("MYCC_DEBUG", "3"))
        self.assertRegex(says("MYCC_PRINT_AFTER", "hoist_conditions"), r"\A// w after hoist_conditions")
        self.assertRegex(says("MYCC_TIME_PASSES", "1"), r"(?m)^simplify +\d+\.\d+ ms$")


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()
