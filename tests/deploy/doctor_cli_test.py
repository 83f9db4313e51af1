"""mycc-tune doctor beside a real server with TLS and a token: what it says of a sound installation and of broken ones, its exit status and its
JSON: python3 doctor_cli_test.py MYCC_TUNE

Ends with 77 where the program openssl is missing, which makes the certificates.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

MYCC_TUNE = None


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], capture_output=True, timeout=60, check=True)


def make_certificates(folder, days):
    """A CA, and the server's certificate for localhost that it signed."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test CA", "-days", 365,
            "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test server",
            "-keyout", folder / "server.key", "-out", folder / "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    openssl("x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial",
            "-extfile", folder / "names", "-days", days, "-out", folder / "server.pem")


class DoctorCliTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "token").write_text("a-token\n")
        (self.folder / "token").chmod(0o600)

    def serve(self, days=365):
        make_certificates(self.folder, days)
        return self.start("--tls-cert", self.folder / "server.pem", "--tls-key", self.folder / "server.key", "--token-file", self.folder / "token")

    def start(self, *options):
        server = subprocess.Popen([MYCC_TUNE, "serve", "--log", self.folder / "farm.db", "--listen", "127.0.0.1:0", *options],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        line = server.stdout.readline()
        self.assertIn("serving", line)
        return line.split()[-1]

    def examine(self, *options):
        """The exit status and the findings by the name of their check."""
        result = subprocess.run([MYCC_TUNE, "doctor", "--json", *map(str, options)], capture_output=True, text=True, timeout=60, check=False)
        findings = {}
        for line in result.stdout.splitlines():
            finding = json.loads(line)
            self.assertEqual(list(finding), ["check", "verdict", "found", "remedy"])
            findings.setdefault(finding["check"], []).append((finding["verdict"], finding["found"]))
        return result.returncode, findings

    def credentials(self):
        return "--tls-ca", self.folder / "ca.pem", "--token-file", self.folder / "token"

    def test_sound_farm(self):
        address = self.serve()
        status, findings = self.examine("--device", "cpu", "--server", address, *self.credentials(), "--log", self.folder / "farm.db",
                                        "--own-cert", self.folder / "server.pem", "--own-key", self.folder / "server.key")
        self.assertEqual(status, 0, findings)
        self.assertEqual([verdict for verdict, _ in findings["server"]], ["ok"] * 4)
        texts = " ".join(found for _, found in findings["server"])
        for words in ("(CN = test server) is valid for", f"{address} answers in", "as this program", "its clock and this host's agree"):
            self.assertIn(words, texts)
        for check in ("log", "certificate", "trust", "secrets", "confinement", "memory"):
            self.assertIn(check, findings)

    def test_credentials_of_a_farm(self):
        farm = self.folder / "farm"
        subprocess.run([MYCC_TUNE, "auth", "init", "--dir", farm, "--host", "localhost"], stdout=subprocess.DEVNULL, timeout=60, check=True)
        address = self.start("--credentials", farm)
        status, findings = self.examine("--server", address, "--credentials", farm / "admin", "--own-cert", farm / "server/cert.pem",
                                        "--own-key", farm / "server/key.pem")
        self.assertEqual(status, 0, findings)
        for check in ("credential", "trust", "secrets", "certificate", "server"):
            self.assertEqual({verdict for verdict, _ in findings[check]}, {"ok"}, findings[check])
        # A farm's certificate for another name, and a credential that others can read.
        (farm / "admin/key.pem").chmod(0o644)
        status, findings = self.examine("--server", address, "--credentials", farm / "admin", "--listen", "192.0.2.1:1",
                                        "--own-cert", farm / "server/cert.pem")
        self.assertEqual(status, 1)
        self.assertIn("fault", {verdict for verdict, _ in findings["secrets"]})
        self.assertIn("warning", {verdict for verdict, _ in findings["certificate"]})

    def test_wrong_token(self):
        address = self.serve()
        (self.folder / "token").write_text("another\n")
        status, findings = self.examine("--server", address, *self.credentials())
        self.assertEqual(status, 1)
        self.assertEqual(findings["server"][-1][0], "fault")
        self.assertIn("token is missing or wrong", findings["server"][-1][1])

    def test_certificate_that_ends_soon(self):
        address = self.serve(days=5)
        status, findings = self.examine("--server", address, *self.credentials())
        self.assertEqual(status, 0)
        self.assertEqual(findings["server"][0][0], "warning")
        self.assertRegex(findings["server"][0][1], r"\(CN = test server\) expires in [45] days")

    def test_server_that_is_away(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            status, findings = self.examine("--server", address)
        self.assertEqual(status, 1)
        self.assertEqual(findings["server"], [("fault", f"{address}: Connection refused")])

    def test_port_in_use(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            status, findings = self.examine("--listen", f"127.0.0.1:{listener.getsockname()[1]}")
        self.assertEqual(status, 1)
        self.assertIn("Address already in use", findings["listening"][0][1])

    def test_lines_for_people(self):
        environment = {**os.environ, "TMPDIR": str(self.folder / "none")}
        result = subprocess.run([MYCC_TUNE, "doctor", "--device", "cpu"], capture_output=True, text=True, timeout=60, check=False,
                                env=environment)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"(?m)^fault    scratch folder +.*/none: No such file or directory; mend it: set TMPDIR")
        self.assertRegex(result.stderr, r"\Amycc-tune: 1 fault, \d+ warnings?\n\Z")

    def test_gpu_that_is_not_there(self):
        status, findings = self.examine("--device", "cuda:99")
        self.assertEqual(status, 1)
        self.assertEqual(findings["GPU driver"][0][0], "fault")

    def test_wrong_calls(self):
        result = subprocess.run([MYCC_TUNE, "doctor", "--listen", "somewhere"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("is no address", result.stderr)


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("skipped: no program openssl; deploy/packages.sh installs it")
        sys.exit(77)
    MYCC_TUNE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
