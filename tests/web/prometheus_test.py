"""A real Prometheus scrapes a real server whose farm measures nothing: the target is up, the metrics have the values that the API shows, and every
expression of the dashboard and of the alerts is answered. promtool accepts the metrics, the rules and the scrape configuration.
python3 prometheus_test.py MYCC_TUNE FAKE_FARM SOURCE_DIR. Ends with status 77 where there is no Prometheus."""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

BIN, FARM, ROOT = None, None, None
TARGET = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2"
WORKLOAD = """workload gemm(a: f32[256,128], b: f32[192,128]) -> (c: f32[256,192]) {
  c[i,j] = sum[k:128](a[i,k] * b[j,k])
}
"""


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def until(what, look, seconds=60):
    end, last = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            if found := look():
                return found
        except OSError as error:
            last = error
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s; {last}")


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        address = f"unix:{cls.folder}/s.sock"
        cls.port = free_port()
        cls.url = f"http://127.0.0.1:{cls.port}/"
        cls.start("server", BIN, "serve", "--log", cls.folder / "log.db", "--listen", address, "--http", f"127.0.0.1:{cls.port}")
        until("the server", lambda: fetch(cls.url + "readyz") == "ready\n")
        cls.start("farm", FARM, address, "2", "0.05")
        (cls.folder / "work.te").write_text(WORKLOAD)
        subprocess.run([BIN, "tune", cls.folder / "work.te", "--server", address, "--trials", "24", "--target", TARGET, "-q"], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)

    @classmethod
    def start(cls, name, *command):
        with (cls.folder / f"{name}.txt").open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

        def end():
            process.terminate()
            process.wait(60)

        cls.addClassCleanup(end)

    def promtool(self, *words, text=None):
        done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_the_metrics_keep_the_conventions(self):
        self.promtool("check", "metrics", text=fetch(self.url + "metrics"))

    def test_the_files_for_operators_are_accepted(self):
        folder = ROOT / "deploy/monitoring"
        self.promtool("check", "rules", str(folder / "alerts.yml"))
        self.promtool("check", "config", "--syntax-only", str(folder / "prometheus.yml"))

    def scrape_config(self):
        """The one for operators, for this server."""
        text = (ROOT / "deploy/monitoring/prometheus.yml").read_text()
        text = text.replace("scrape_interval: 15s", "scrape_interval: 1s").replace("scheme: https", "scheme: http")
        text = text.replace("tune.example.org:50918", f"127.0.0.1:{self.port}").replace("alerts.yml", str(ROOT / "deploy/monitoring/alerts.yml"))
        return re.sub(r"    (authorization|tls_config):\n      .*\n", "", text)

    def test_prometheus_scrapes_it(self):
        (self.folder / "prometheus.yml").write_text(self.scrape_config())
        port = free_port()
        self.start("prometheus", "prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                   f"--web.listen-address=127.0.0.1:{port}")
        api = f"http://127.0.0.1:{port}/api/v1/"

        def query(expression):
            answer = json.loads(fetch(api + "query?query=" + urllib.parse.quote(expression)))
            self.assertEqual(answer["status"], "success", expression)
            return answer["data"]["result"]

        def value(expression):
            result = query(expression)
            return float(result[0]["value"][1]) if result else None

        until("the target", lambda: value('up{job="mycc-tune"}') == 1)
        status = json.loads(fetch(self.url + "api/v1/status"))
        self.assertGreaterEqual(sum(status["results"].values()), 24)
        until("the trials", lambda: value("sum(mycc_tune_trials_total)") == sum(status["results"].values()))
        self.assertEqual(value('mycc_tune_jobs{state="done"}'), 1)
        self.assertEqual(value("mycc_tune_workers"), 2)
        self.assertEqual(value("mycc_tune_log_writable"), 1)
        self.assertGreater(value("mycc_tune_commit_duration_seconds_count"), 0)
        until("a reading", lambda: (value('mycc_tune_device_temperature_celsius{worker="rack-1"}') or 0) > 30)

        dashboard = json.loads((ROOT / "deploy/monitoring/grafana-dashboard.json").read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(expressions), 20)
        variables = {"$instance": ".*", "$__rate_interval": "1m"}
        known = {sample["metric"]["__name__"] for sample in query('{job="mycc-tune"}')}
        for expression in expressions:
            for name, text in variables.items():
                expression = expression.replace(name, text)
            query(expression)
            for metric in re.findall(r"\b(?:mycc_tune|process)_\w+", expression):
                self.assertIn(metric, known, expression)
        rules = json.loads(fetch(api + "rules"))["data"]["groups"][0]["rules"]
        self.assertGreater(len(rules), 5)
        for rule in rules:
            for metric in re.findall(r"\bmycc_tune_\w+", rule["query"]):
                self.assertIn(metric, known, rule["name"])
            self.assertNotEqual(rule["health"], "err", rule)


if __name__ == "__main__":
    BIN, FARM, ROOT = (pathlib.Path(word) for word in sys.argv[1:4])
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        print("skipped: there is no Prometheus; deploy/packages.sh installs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], warnings="ignore")
