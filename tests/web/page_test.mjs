// The page in a real browser, on a real server whose farm measures nothing: node page_test.mjs MYCC_TUNE FAKE_FARM PACKAGES SCREENSHOTS.
// Screenshots of every view are left in the last folder, for a look. Ends with status 77 where there is no browser.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openBrowser, readText, Server, sleep, until } from "./server.mjs";

const [bin, farm, packages, screenshots] = process.argv.slice(2);
mkdirSync(screenshots, { recursive: true });
const browser = await openBrowser(packages);
const views = ["jobs", "queue", "devices", "failures", "best"];

// A tab that remembers what went wrong in it, and that was never loaded anew.
async function openTab(url, size = [1280, 860]) {
  const context = await browser.createBrowserContext();
  await context.overridePermissions(new URL(url).origin, ["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  await page.setViewport({ width: size[0], height: size[1] });
  const tab = { page, errors: [], origins: new Set() };
  page.on("console", (message) => message.type() === "error" && tab.errors.push(message.text()));
  page.on("pageerror", (error) => tab.errors.push(error.message));
  page.on("request", (request) => request.url().startsWith("http") && tab.origins.add(new URL(request.url()).origin));
  await page.goto(url, { waitUntil: "load" });
  await page.evaluate(() => (window.sameDocument = true));
  tab.goTo = (hash) => page.evaluate((hash) => void (location.hash = `#/${hash}`), hash);
  tab.text = () => page.evaluate(() => document.body.innerText);
  tab.shows = (words) => until(`"${words}" on the page`, async () => (await tab.text()).includes(words), 30);
  tab.shoot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
  tab.label = (start) => page.$eval(`[role=img][aria-label^="${start}"]`, (chart) => chart.getAttribute("aria-label"));
  tab.close = async () => {
    assert.equal(await page.evaluate(() => window.sameDocument), true, "the page was loaded anew");
    assert.deepEqual([...tab.origins], [new URL(url).origin], "only the server is asked");
    await context.close();
  };
  return tab;
}

const server = new Server(bin, farm);
let job;

before(async () => {
  await server.serve();
  await server.work(3, 0.15);
});
after(async () => {
  await browser.close();
  await server.end();
});

test("a job appears and grows without a reload", async () => {
  const tab = await openTab(server.url);
  await tab.shows("No job yet");
  await tab.shoot("no_jobs");
  job = server.submit(120);
  await until("the job in the list", () => tab.page.$("td a"));
  await tab.page.click("td a");
  await tab.shows("Convergence");
  const trials = () => tab.page.$eval('[aria-label="The job now"]', (figures) => Number(figures.innerText.match(/Trials\s+([\d,]+)/)[1]));
  const first = await until("a result", trials);
  await until("more results", async () => (await trials()) > first);
  await until("points", async () => (await tab.label("Times of")) !== null);
  await tab.shoot("job_running");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("the scatter stands over any decision and names what is pointed at", async () => {
  const tab = await openTab(`${server.url}#/jobs/${job}`);
  const { page } = tab;
  await tab.shows("Candidates");
  await until("decisions", () => page.$eval("select[name=axis]", (select) => select.options.length > 4));
  assert.match(await tab.label("Times of"), /over order of results$/);
  const decision = await page.$$eval("select[name=axis] option", (options) => options.find((option) => option.value.startsWith("decision:")).value);
  await page.select("select[name=axis]", decision);
  assert.match(await until("the axis", async () => /over (?!order)/.test(await tab.label("Times of")) && (await tab.label("Times of"))), new RegExp(`over ${decision.slice("decision:".length)}$`));
  await page.click('::-p-xpath(//section[@aria-labelledby="candidates"]//label[span="generation"])');
  await until("groups by generation", () => page.$eval(".scatter .u-legend", (legend) => legend.innerText.includes("generation")));
  await tab.shoot("job_over_decision");
  await page.select("select[name=axis]", "order");

  // Points and the chart move as results arrive, and the chart is made anew with its axis: the job ends first, and each search asks where it is.
  await until("the end of the job", () => page.$eval(".title .badge", (badge) => badge.textContent === "done"));
  await until("the order again", async () => /over order of results$/.test(await tab.label("Times of")));
  const findPoint = async () => {
    const over = await page.$(".scatter .u-over");
    await over.evaluate((element) => element.scrollIntoView({ block: "center" }));
    const box = await over.boundingBox();
    for (let x = 10; x < box.width; x += 30) {
      for (let y = 10; y < box.height; y += 30) {
        await page.mouse.move(box.x + x, box.y + y);
        if (await page.$(".tip")) return [box.x + x, box.y + y];
      }
    }
    return null;
  };
  const at = await until("a point under the pointer", findPoint);
  assert.match(await page.$eval(".tip", (tip) => tip.innerText), /rack-\d/);
  await tab.shoot("job_tip");
  await page.mouse.click(...at);
  await until("the trace", () => page.$eval("dialog[open]", (dialog) => /\bv1\n/.test(dialog.innerText)).catch(() => false));
  await tab.shoot("trace");
  await page.keyboard.press("Escape");
  await until("the dialog closed", async () => (await page.$("dialog[open]")) === null);
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("a task's name shows the task alone", async () => {
  const tab = await openTab(`${server.url}#/jobs/${job}`);
  await tab.shows("times faster than the default schedule");
  await tab.page.focus('[aria-label="Tasks"] button.link');
  await tab.page.keyboard.press("Enter");
  await tab.shows("best time so far");
  await tab.page.click("text/Show all");
  await tab.shows("times faster than the default schedule");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("failures come with their reproduction, and it can be copied", async () => {
  const tab = await openTab(`${server.url}#/failures`);
  await tab.shows("wrong result");
  await tab.page.bringToFront();
  const shown = await tab.page.$eval(".reproduction code", (code) => code.textContent);
  assert.match(shown, /^mycc-tune measure /);
  await tab.page.click('[aria-label="Copy the reproduction"]');
  await tab.shows("Copied");
  assert.equal(await tab.page.evaluate(() => navigator.clipboard.readText()), shown);
  await tab.shoot("failures");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("devices show their state, temperature and clock", async () => {
  const tab = await openTab(`${server.url}#/devices`);
  await tab.shows("rack-2");
  await until("a temperature", async () => /\d\d °C/.test(await tab.text()), 30);
  await until("drift", async () => (await tab.page.$('[aria-label^="baseline of 3 devices"]')) !== null, 60);
  await tab.shoot("devices");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("dark and light, as the system says and as the reader chose", async () => {
  const tab = await openTab(server.url);
  const { page } = tab;
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).reduce((sum, part) => sum + Number(part), 0));
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await until("a dark page", async () => (await back()) < 150);
  await tab.shoot("jobs_dark");
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await until("a light page", async () => (await back()) > 600);
  await page.click(".theme"); // light
  await page.click(".theme"); // dark
  await until("a dark page by choice", async () => (await back()) < 150);
  await tab.goTo(`jobs/${job}`);
  await tab.shows("Candidates");
  await sleep(1);
  await tab.shoot("job_dark");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("a phone shows every view without scrolling sideways", async () => {
  const tab = await openTab(server.url, [360, 740]);
  for (const view of [...views, `jobs/${job}`]) {
    await tab.goTo(view);
    await sleep(0.7);
    const name = view.split("/").length > 1 ? "job" : view;
    await tab.shoot(`phone_${name}`);
    assert.equal(await tab.page.evaluate(() => document.documentElement.scrollWidth), 360, view);
  }
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("whatever can be used has a name, and the keyboard reaches it", async () => {
  const tab = await openTab(`${server.url}#/jobs/${job}`);
  await tab.shows("Candidates");
  const nameless = await tab.page.$$eval("button, a, input, select, [role=img], [role=progressbar]", (elements) =>
    elements
      .filter((element) => !(element.getAttribute("aria-label") || element.innerText?.trim() || element.labels?.length || element.closest("label")))
      .map((element) => element.outerHTML),
  );
  assert.deepEqual(nameless, []);
  await tab.page.keyboard.press("Tab");
  await tab.page.keyboard.press("Tab");
  assert.equal(await tab.page.evaluate(() => document.activeElement.innerText), "Jobs");
  await tab.page.keyboard.press("Tab");
  await tab.page.keyboard.press("Enter");
  await tab.shows("by job and target");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("10,000 candidates change their axis at once", async () => {
  const tab = await openTab(`${server.url}#/jobs/${job}`);
  const { page } = tab;
  await tab.shows("Candidates");
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!url.pathname.endsWith("/candidates")) return request.continue();
    const before = Number(url.searchParams.get("before") ?? 10001);
    const ids = url.searchParams.has("after") ? [] : Array.from({ length: 2500 }, (_, i) => before - 2500 + i).filter((id) => id > 0);
    const candidates = ids.map((id) => ({
      id,
      trial: `${job}/0/${id >> 4}/${id & 15}`,
      task: 0,
      generation: id >> 4,
      index: id & 15,
      status: id % 11 === 0 ? "wrong_result" : "ok",
      ...(id % 11 === 0 ? {} : { seconds: 1e-3 * (1 + ((id * 7919) % 1000) / 400) * (1 + 500 / (500 + id)) }),
      recorded_unix_micros: 1.7e15 + id * 1e5,
      worker: `rack-${id % 40}`,
      sketch: "contraction",
      decisions: { mr: 1 + (id % 8), nr: 1 << (id % 6), kc: 64 * (1 + (id % 5)) },
    }));
    return request.respond({ contentType: "application/json", body: JSON.stringify({ candidates }) });
  });
  await tab.goTo("jobs");
  await sleep(0.3);
  await tab.goTo(`jobs/${job}`);
  await until("10,000 points", async () => (await tab.label("Times of").catch(() => ""))?.includes("10000 candidates"));
  const took = await page.evaluate(async () => {
    const select = document.querySelector("select[name=axis]");
    const began = performance.now();
    select.value = "decision:nr";
    select.dispatchEvent(new Event("change", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.now() - began;
  });
  console.log(`the axis of 10,000 candidates changed in ${took.toFixed(0)} ms`);
  assert.ok(took < 3000, `${took} ms`);
  await tab.shoot("job_10000");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

test("a server with a token asks for it", async () => {
  const token = "a-token-that-nobody-guesses";
  const tokenFile = join(server.folder, "token");
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  const guarded = new Server(bin, farm, ["--token-file", tokenFile]);
  try {
    await guarded.serve();
    const status = async (path, headers = {}) => (await fetch(guarded.url + path, { headers })).status;
    assert.equal(await status("healthz"), 200);
    assert.equal(await status("readyz"), 200);
    assert.equal(await status("metrics"), 401);
    assert.equal(await status("api/v1/jobs"), 401);
    assert.equal(await status("api/v1/jobs", { Authorization: `Bearer ${token}x` }), 401);
    assert.equal(await status("api/v1/jobs", { Authorization: `Bearer ${token}` }), 200);
    const tab = await openTab(guarded.url);
    await tab.shows("Token");
    await tab.shoot("login");
    await tab.page.type("input[name=token]", "wrong");
    await tab.page.click("button[type=submit]");
    await tab.shows("the token is not one that the server knows");
    await tab.page.$eval("input[name=token]", (input) => input.select());
    await tab.page.type("input[name=token]", token);
    await tab.page.click("button[type=submit]");
    await tab.shows("No job yet");
    assert.ok(tab.errors.every((error) => error.includes("401")), tab.errors.join("\n"));
    await tab.close();
  } finally {
    await guarded.end();
  }
});

test("credentials of mycc-tune auth open it over TLS, and a new certificate is taken up without a restart", async () => {
  const folder = join(server.folder, "credentials");
  const auth = (...words) => {
    const done = spawnSync(bin, ["auth", ...words, "--dir", folder], { encoding: "utf8" });
    assert.equal(done.status, 0, done.stderr);
    return done.stdout;
  };
  auth("init");
  auth("add", "ann", "--role", "read", "--token");
  auth("add", "rig", "--role", "work", "--token");
  const guarded = new Server(bin, farm, ["--credentials", folder]);
  try {
    await guarded.serve();
    assert.match(guarded.url, /^https:/);
    const ca = readText(join(folder, "ca.pem"));
    const ask = (path, token) =>
      new Promise((done, fail) => {
        const headers = token ? { Authorization: `Bearer ${token}` } : {};
        get(guarded.url + path, { ca, headers, agent: false }, (answer) => {
          const certificate = answer.socket.getPeerCertificate().fingerprint256;
          answer.resume().on("end", () => done({ status: answer.statusCode, certificate }));
        }).on("error", fail);
      });
    const tokenOf = (name) => readText(join(folder, name, "token")).trim();
    const first = await ask("api/v1/jobs", tokenOf("ann"));
    assert.equal(first.status, 200);
    assert.equal((await ask("api/v1/jobs")).status, 401);
    assert.equal((await ask("api/v1/jobs", tokenOf("rig"))).status, 403);
    auth("rotate", "server");
    await until("the new certificate", async () => (await ask("healthz").catch(() => first)).certificate !== first.certificate, 20);
    auth("revoke", "ann");
    await until("the refusal", async () => (await ask("api/v1/jobs", tokenOf("ann")).catch(() => first)).status === 403, 20);
  } finally {
    await guarded.end();
  }
});
