// What tests of the page share: a real server with a farm that measures nothing, and a real browser.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const skipped = 77;
const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const target = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";
const workloads = `workload gemm(a: f32[256,128], b: f32[192,128]) -> (c: f32[256,192]) {
  s[i,j]: f32[256,192] = sum[k:128](a[i,k] * b[j,k])
  c[i,j] = max(s[i,j], 0.0)
}

workload scale(x: f32[96,80]) -> (y: f32[96,80]) {
  y[i,j] = x[i,j] * 2.0
}
`;

export const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

// Calls `look` until it returns something, for `seconds` at most.
export async function until(what, look, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    const found = await look();
    if (found) return found;
    await sleep(0.1);
  }
  throw new Error(`${what}: not within ${seconds} s`);
}

export class Server {
  constructor(bin, farm, options = []) {
    this.bin = bin;
    this.farm = farm;
    this.folder = mkdtempSync(join(tmpdir(), "mycc-web-"));
    this.address = `unix:${this.folder}/s.sock`;
    this.processes = [];
    writeFileSync(join(this.folder, "work.te"), workloads);
    this.options = options;
  }
  start(program, ...words) {
    const process = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
    const started = { process, said: "" };
    for (const stream of [process.stdout, process.stderr]) stream.on("data", (text) => (started.said += text));
    this.processes.push(started);
    return started;
  }
  async serve() {
    const words = ["serve", "--log", join(this.folder, "log.db"), "--listen", this.address, "--http", "127.0.0.1:0", ...this.options];
    const server = this.start(this.bin, ...words);
    const found = await until("the server's address", () => server.said.match(/web page at (\S+)/));
    this.url = found[1];
  }
  async work(workers, seconds) {
    const farm = this.start(this.farm, this.address, String(workers), String(seconds));
    await until("the farm", () => farm.said.includes("farm of"));
  }
  submit(trials, name = "work") {
    if (name !== "work") writeFileSync(join(this.folder, `${name}.te`), workloads);
    const words = ["tune", join(this.folder, `${name}.te`), "--server", this.address, "--trials", String(trials), "--target", target, "--detach"];
    const done = spawnSync(this.bin, words, { encoding: "utf8" });
    if (done.status !== 0) throw new Error(done.stderr);
    return done.stdout.match(/job (j[0-9a-f]+)/)[1];
  }
  async end() {
    for (const { process } of this.processes.reverse()) {
      if (process.exitCode !== null) continue;
      const ended = new Promise((done) => process.once("exit", done));
      process.kill("SIGTERM");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

// Ends the test as skipped where there is no browser, or the page's packages are not there.
export async function openBrowser(packages) {
  const program = browsers.find(existsSync);
  if (!program) {
    console.log("skipped: there is no Chromium; deploy/packages.sh installs it");
    process.exit(skipped);
  }
  const puppeteer = createRequire(join(packages, "package.json"))("puppeteer-core");
  return puppeteer.launch({
    executablePath: program,
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
  });
}

export const readText = (path) => readFileSync(path, "utf8");
