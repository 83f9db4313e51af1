"""The chart of deploy/helm: Helm renders it, every manifest fits the schemas of Kubernetes without an unknown field, and the programs know
the options that they are given: python3 helm_test.py MYCC_TUNE

Ends with 77 where Helm or the schemas are missing.
"""

import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/mycc-tune"
HELM = shutil.which("helm") or shutil.which(ROOT / ".venv/bin/helm")
MYCC_TUNE = None
VERSIONS = ("1.27", "1.32", "1.37")
# Kinds that Kubernetes itself does not have.
FOREIGN = {"ServiceMonitor"}

SECURE = ["server.credentials.secretName=server", "workers.credentials.secretName=worker"]
SETTINGS = {
    "secure": SECURE,
    "open": ["server.insecureAllowRemote=true", "server.http.enabled=false"],
    "everything": [*SECURE, "cpuWorkers.enabled=true", "serviceMonitor.enabled=true", "gpuWorkers.gpus=4",
                   "image.digest=sha256:" + 64 * "a", "image.pullSecrets[0].name=pull", "server.persistence.storageClassName=fast",
                   "server.nodeSelector.disk=ssd", "server.podAnnotations.owner=team", "server.extraArgs[0]=--search-memory=8",
                   "workers.seccompProfile.type=RuntimeDefault", "workers.userNamespaces=true",
                   "serviceMonitor.credentials.secretName=monitor", "buildWorkers.maxUnavailable=1"],
    "server alone": [*SECURE, "gpuWorkers.enabled=false", "buildWorkers.enabled=false", "networkPolicy.enabled=false",
                     "server.disruptionBudget=false", "server.http.enabled=false"],
}


def helm(*arguments):
    return subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


@functools.cache
def template(*settings):
    return helm("template", "farm", CHART, "--namespace", "tuning", *(word for setting in settings for word in ("--set", setting)))


def rendered(settings):
    result = template(*settings)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return [document for document in yaml.safe_load_all(result.stdout) if document]


@functools.cache
def options_of(command):
    """The options that a command of mycc-tune knows."""
    result = subprocess.run([MYCC_TUNE, command, "--help"], capture_output=True, text=True, timeout=60, check=True)
    return set(re.findall(r"--[a-z0-9-]+", result.stdout))


def named(documents, kind, name=None):
    found = [each for each in documents if each["kind"] == kind and name in (None, each["metadata"]["name"])]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} of {kind} {name}")
    return found[0]


def pod_of(document):
    return document["spec"]["template"]["spec"]


def args_of(document):
    return pod_of(document)["containers"][0]["args"]


class HelmTest(unittest.TestCase):
    def test_lint(self):
        result = helm("lint", "--strict", CHART, *(word for setting in SECURE for word in ("--set", setting)))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_manifests_fit_the_schema(self):
        for name, settings in SETTINGS.items():
            for document in rendered(settings):
                for version in VERSIONS if document["kind"] not in FOREIGN else ():
                    with self.subTest(settings=name, kind=document["kind"], version=version):
                        kubernetes_validate.validate(document, version, strict=True)

    def test_schema_refuses_an_unknown_field(self):
        document = named(rendered(SECURE), "StatefulSet")
        pod_of(document)["hostNetwrk"] = True
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(document, VERSIONS[0], strict=True)

    def test_programs_know_their_options(self):
        for name, settings in SETTINGS.items():
            for document in rendered(settings):
                if document["kind"] not in ("StatefulSet", "DaemonSet", "Deployment"):
                    continue
                command, *options = args_of(document)
                known = options_of(command)
                for option in options:
                    with self.subTest(settings=name, option=option):
                        self.assertIn(option.split("=")[0], known)

    def test_an_open_server_is_asked_for_by_name(self):
        for settings in ([], SECURE[:1], SECURE[1:], [*SECURE, "server.insecureAllowRemote=true"]):
            with self.subTest(settings=settings):
                result = template(*settings)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("expected", result.stderr)

    def test_unknown_and_wrong_values_are_refused(self):
        for wrong in ("server.prot=1", "buildWorkers.replicas=0", "server.persistence.accessModes[0]=ReadWriteMany", "image.digest=latest"):
            with self.subTest(value=wrong):
                self.assertNotEqual(template(*SECURE, wrong).returncode, 0)

    def test_server(self):
        documents = rendered(SECURE)
        server = named(documents, "StatefulSet")
        self.assertEqual(server["spec"]["replicas"], 1)
        self.assertIn("--credentials=/etc/mycc-tune/credentials", args_of(server))
        container = pod_of(server)["containers"][0]
        for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            self.assertEqual(container[probe]["httpGet"], {"path": path, "port": "http", "scheme": "HTTPS"})
        self.assertEqual(named(documents, "PodDisruptionBudget", "farm-mycc-tune")["spec"]["maxUnavailable"], 0)
        self.assertEqual(server["spec"]["volumeClaimTemplates"][0]["spec"]["accessModes"], ["ReadWriteOnce"])
        without_tls = named(rendered(SETTINGS["open"]), "StatefulSet")
        self.assertIn("grpc", pod_of(without_tls)["containers"][0]["readinessProbe"])

    def test_gpu_workers(self):
        worker = named(rendered([*SECURE, "gpuWorkers.gpus=2"]), "DaemonSet", "farm-mycc-tune-gpu")
        pod = pod_of(worker)
        self.assertEqual(pod["runtimeClassName"], "nvidia")
        self.assertEqual(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], 2)
        self.assertEqual([arg for arg in args_of(worker) if "device" in arg], ["--device=cuda:0", "--device=cuda:1"])
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], 60)

    def test_no_pod_has_rights(self):
        for document in rendered(SETTINGS["everything"]):
            if document["kind"] in ("StatefulSet", "DaemonSet", "Deployment"):
                pod = pod_of(document)
                with self.subTest(name=document["metadata"]["name"]):
                    self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                    self.assertFalse(pod["automountServiceAccountToken"])
                    security = pod["containers"][0]["securityContext"]
                    self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
                    self.assertTrue(security["readOnlyRootFilesystem"])
                    self.assertFalse(security["allowPrivilegeEscalation"])
                    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
                    claims = {each["metadata"]["name"] for each in document["spec"].get("volumeClaimTemplates", [])}
                    self.assertEqual(mounted, {volume["name"] for volume in pod["volumes"]} | claims)

    def test_selectors_find_their_pods(self):
        documents = rendered(SETTINGS["everything"])
        labels = {each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
                  for each in documents if each["kind"] in ("StatefulSet", "DaemonSet", "Deployment")}

        def found(selector):
            return {name for name, has in labels.items() if selector.items() <= has.items()}

        server, workers = {"farm-mycc-tune"}, {f"farm-mycc-tune-{kind}" for kind in ("gpu", "cpu", "build")}
        self.assertEqual(found(named(documents, "Service")["spec"]["selector"]), server)
        self.assertEqual(found(named(documents, "PodDisruptionBudget", "farm-mycc-tune")["spec"]["selector"]["matchLabels"]), server)
        to_server = named(documents, "NetworkPolicy", "farm-mycc-tune-server")["spec"]
        of_workers = named(documents, "NetworkPolicy", "farm-mycc-tune-workers")["spec"]
        self.assertEqual(found(to_server["podSelector"]["matchLabels"]), server)
        self.assertEqual(found(to_server["ingress"][0]["from"][0]["podSelector"]["matchLabels"]), workers)
        self.assertEqual(found(of_workers["podSelector"]["matchLabels"]), workers)
        self.assertEqual(found(of_workers["egress"][0]["to"][0]["podSelector"]["matchLabels"]), server)
        self.assertEqual((to_server["egress"], of_workers["ingress"]), ([], []))

    def test_every_value_is_in_the_schema(self):
        def keys(values, schema, place):
            for key, value in values.items():
                self.assertIn(key, schema["properties"], place)
                if isinstance(value, dict) and "properties" in schema["properties"][key]:
                    keys(value, schema["properties"][key], f"{place}.{key}")

        keys(yaml.safe_load((CHART / "values.yaml").read_text()), json.loads((CHART / "values.schema.json").read_text()), "values")


if __name__ == "__main__":
    if HELM is None:
        print("skipped: no helm in PATH or .venv/bin; deploy/helm.sh fetches it")
        sys.exit(77)
    try:
        import kubernetes_validate
        import yaml
    except ImportError as error:
        print(f"skipped: {error}; deploy/python.sh installs it")
        sys.exit(77)
    MYCC_TUNE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
