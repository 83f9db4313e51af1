"""The image of deploy/container: buildah builds it without a network, and a server, a worker and a client in it tune a kernel, as a user
without rights: python3 container_test.py CMAKE BUILD_FOLDER

The base of the image is made of this host's Debian packages. Ends with 77 where buildah or the right to use it is missing.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = BUILD = None

# Enough of Debian for the commands of the Containerfile.
BASE_PACKAGES = ("base-files", "bash", "coreutils", "dash", "libacl1", "libattr1", "libc6", "libgmp10", "libpcre2-8-0", "libselinux1", "libtinfo6")

# A whole farm in one container: /var/lib/mycc-tune is where a volume is mounted.
FARM = """
set -e
cat >dense.te <<'END'
workload dense(x: f32[32,64], w: f32[48,64]) -> (y: f32[32,48]) {
  y[i,j]: f32[32,48] = sum[k:64](x[i,k] * w[j,k])
}
END
address=unix:$PWD/farm.socket
mycc-tune serve --log farm.db --listen $address &
while [ ! -S farm.socket ]; do sleep 0.1; done
TMPDIR=/scratch XDG_CACHE_HOME=/scratch mycc-tune worker --server $address --device cpu &
mycc-tune tune dense.te --server $address --target 'v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1' --trials 6 --quiet
mycc compile dense.te --target 'v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1' --tuning-log farm.db -o out
mycc-tune doctor --device cpu --server $address --log farm.db || true
kill %2
wait %2 || [ $? = 130 ]
kill %1
wait %1
echo "the farm has ended, user $(id -u)"
"""


def missing():
    """Why the test cannot run here, or nothing."""
    absent = [program for program in ("buildah", "dpkg-query") if shutil.which(program) is None]
    if absent:
        return f"not installed: {', '.join(absent)}; deploy/packages.sh installs buildah"
    return "" if os.geteuid() == 0 else "building without containers (BUILDAH_ISOLATION=chroot) needs root"


def make_base(path):
    """A root file system of this host's packages."""
    listed = subprocess.run(["dpkg-query", "--listfiles", *BASE_PACKAGES], capture_output=True, text=True, check=True).stdout.split("\n")
    with tarfile.open(path, "w") as archive:
        for name in ("bin", "lib", "lib64", "sbin"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
        for name in sorted({os.path.join(os.path.realpath(os.path.dirname(line)), os.path.basename(line))
                            for line in listed if line and not line.startswith("/usr/share")}):
            if os.path.islink(name) or os.path.isfile(name):
                archive.add(name, recursive=False)
        for source, name in (("/usr/share/base-passwd/passwd.master", "etc/passwd"), ("/usr/share/base-passwd/group.master", "etc/group"),
                             ("/etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/ca-certificates.crt")):
            archive.add(source, name)
        for name, mode in (("proc", 0o755), ("sys", 0o755), ("dev", 0o755), ("tmp", 0o1777), ("var", 0o755), ("var/lib", 0o755), ("usr/local/bin", 0o755)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            archive.addfile(folder)


class ContainerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="container-")
        cls.addClassCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        (folder / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n')
        cls.environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "BUILDAH_ISOLATION": "chroot"}
        name = "mycc-0.0.0-test"
        cls.run_here(CMAKE, "--install", BUILD, "--component", "programs", "--strip", "--prefix", folder / "unpacked" / name)
        with tarfile.open(folder / "mycc-0.0.0-test.tar", "w") as archive:
            archive.add(folder / "unpacked" / name, name)
        shutil.rmtree(folder / "unpacked")
        make_base(folder / "base.tar")
        cls.run_here("bash", ROOT / "deploy/container/build.sh", "--archive", folder / "mycc-0.0.0-test.tar", "--base-tar", folder / "base.tar",
                     "--tag", "mycc-tune:test")
        cls.container = cls.run_here("buildah", "from", "mycc-tune:test").strip()
        # buildah mounts parts of the host below the container, which go with it.
        cls.addClassCleanup(cls.run_here, "buildah", "rm", "--all")

    @classmethod
    def run_here(cls, *command):
        result = subprocess.run([*map(str, command)], env=cls.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=400, check=False)
        if result.returncode != 0:
            raise AssertionError(f"{command[:3]}: {result.stdout[-4000:]}")
        return result.stdout

    def inside(self, *command):
        return self.run_here("buildah", "run", self.container, "--", *command)

    def test_a_farm_in_the_image(self):
        output = self.inside("bash", "-mc", FARM)
        self.assertIn("all trials are measured", output)
        self.assertIn("stopping; unfinished jobs continue with the next start", output)
        self.assertIn("the farm has ended, user 10001\n", output)
        self.assertRegex(output, r"ok +server +unix:\S+ answers")
        # The programs and the rest of the image belong to root.
        self.assertIn("Permission denied", self.inside("bash", "-c", "touch /opt/mycc/bin/new 2>&1 || true"))

    def test_configuration(self):
        configuration = json.loads(self.run_here("buildah", "inspect", "--type", "image", "mycc-tune:test"))["OCIv1"]["config"]
        self.assertEqual(configuration["User"], "10001:10001")
        self.assertEqual(configuration["Entrypoint"], ["/opt/mycc/bin/mycc-tune"])
        self.assertEqual(configuration["StopSignal"], "SIGTERM")
        self.assertIn("NVIDIA_DRIVER_CAPABILITIES=compute,utility", configuration["Env"])
        self.assertIn("Usage", self.inside("/opt/mycc/bin/mycc-tune", "--help"))

    def test_wrong_calls(self):
        for wrong in (["--archive"], ["--colour", "red"]):
            result = subprocess.run(["bash", ROOT / "deploy/container/build.sh", *wrong], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--base-tar FILE", result.stderr)


if __name__ == "__main__":
    if reason := missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    CMAKE, BUILD = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
