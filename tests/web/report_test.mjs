// A job's report in a real browser, opened from its file: node report_test.mjs MYCC_TUNE FAKE_FARM PACKAGES SCREENSHOTS.
// The job's failures have texts that would run as scripts if they were let. Ends with status 77 where there is no browser.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { openBrowser, readText, Server, until } from "./server.mjs";

const [bin, farm, packages, screenshots] = process.argv.slice(2);
mkdirSync(screenshots, { recursive: true });
const browser = await openBrowser(packages);
const server = new Server(bin, farm);
let job, file;

const run = (...words) => spawnSync(bin, words, { encoding: "utf8" });

// A tab that remembers what went wrong in it, and what it asked for.
async function openReport(size = [1280, 860]) {
  const page = await browser.newPage();
  await page.setViewport({ width: size[0], height: size[1] });
  const tab = { page, errors: [], asked: [] };
  page.on("console", (message) => message.type() === "error" && tab.errors.push(message.text()));
  page.on("pageerror", (error) => tab.errors.push(error.message));
  page.on("request", (request) => tab.asked.push(request.url()));
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  tab.text = () => page.evaluate(() => document.body.innerText);
  tab.shows = (words) => until(`"${words}" in the report`, async () => (await tab.text()).includes(words), 20);
  tab.shoot = (name) => page.screenshot({ path: join(screenshots, `report_${name}.png`), fullPage: true });
  tab.label = (start) => page.$eval(`[role=img][aria-label^="${start}"]`, (chart) => chart.getAttribute("aria-label"));
  tab.rows = (label) => page.$$eval(`[aria-label="${label}"] tbody tr`, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText)));
  tab.close = async () => {
    assert.deepEqual(tab.errors, []);
    assert.ok(tab.asked.every((url) => url.startsWith("file:") || url.startsWith("data:")), tab.asked.join("\n"));
    assert.equal(await page.evaluate(() => window.injected), undefined, "a text of the log ran as a script");
    await page.close();
  };
  return tab;
}

before(async () => {
  await server.serve();
  await server.work(3, 0.02);
  job = server.submit(120);
  const state = () => JSON.parse(run("jobs", "--server", server.address, "--json").stdout.split("\n")[0]).state;
  await until("the end of the job", () => state() === "done", 120);
  file = join(server.folder, "report.html");
  const done = run("log", "report", job, "--log", join(server.folder, "log.db"), "-o", file);
  assert.equal(done.status, 0, done.stderr);
});
after(async () => {
  await browser.close();
  await server.end();
});

test("it opens from its file alone, with charts and tables", async () => {
  const tab = await openReport();
  await tab.shows("Convergence");
  assert.equal(await tab.page.title(), "work: mycc-tune report");
  assert.match(await tab.label("Best times of 2 tasks"), /against trials$/);
  assert.match(await tab.label("Times of"), /^Times of \d{3} candidates over order of results$/);
  assert.deepEqual((await tab.rows("Tasks")).map(([name]) => name), ["gemm", "scale"]);
  assert.ok((await tab.rows("Decisions")).length > 3);
  assert.ok(await tab.page.$$eval("canvas", (charts) => charts.every(({ width, height }) => width > 100 && height > 100)));
  await tab.shows("rack-0");
  await tab.shows("Final round");
  await tab.shoot("light");
  await tab.close();
});

test("the scatter stands over any decision, and a point has its record", async () => {
  const tab = await openReport();
  const { page } = tab;
  const decision = await page.$$eval("select[name=axis] option", (options) => options.find((option) => option.value.startsWith("decision:")).value);
  await page.select("select[name=axis]", decision);
  await until("the axis", async () => (await tab.label("Times of")).endsWith(`over ${decision.slice("decision:".length)}`));
  await page.click('[aria-label="Fastest candidates"] button');
  await tab.shows("mycc-tune log show ");
  await tab.shoot("over_decision");
  await tab.close();
});

test("each decision says what it was worth, value by value", async () => {
  const tab = await openReport();
  const data = JSON.parse(run("log", "report", job, "--log", join(server.folder, "log.db"), "--json").stdout);
  const first = data.decisions[0];
  await tab.page.click('[aria-label="Decisions"] button');
  const values = await tab.rows(`Values of ${first.decision}`);
  assert.deepEqual(values.map(([value]) => value), first.values.map(({ value }) => value));
  const times = first.values.map(({ best_seconds }) => best_seconds ?? Infinity);
  assert.deepEqual(times, [...times].sort((a, b) => a - b));
  const valid = data.candidates.filter((candidate) => candidate.task === first.task && candidate.seconds && !candidate.final);
  assert.equal(times[0], Math.min(...valid.map(({ seconds }) => seconds)));
  await tab.close();
});

test("failures and generations are counted, and their texts stay texts", async () => {
  const tab = await openReport();
  await tab.shows("</script><script>window.injected = true</script><!--");
  await tab.shows("wrong result");
  assert.ok(!readText(file).includes("<script>window.injected"));
  await tab.page.click('::-p-xpath(//section[@aria-labelledby="generations"]//label[span="generations"])');
  const rows = await until("the generations", async () => {
    const rows = await tab.rows("Generations");
    return rows.length > 0 && rows;
  });
  assert.equal(rows.reduce((sum, row) => sum + Number(row[3]), 0), JSON.parse(run("log", "show", job, "--log", join(server.folder, "log.db"), "--json").stdout).generations.reduce((sum, { candidates }) => sum + candidates, 0));
  await tab.close();
});

test("a task's name shows the task alone", async () => {
  const tab = await openReport();
  await tab.page.click('[aria-label="Tasks"] button.link');
  await tab.shows("best time so far");
  assert.match(await tab.label("Best times of"), /^Best times of 1 tasks/);
  await tab.close();
});

test("dark and light, as the system says and as the reader chose", async () => {
  const tab = await openReport();
  const back = () => tab.page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).reduce((sum, part) => sum + Number(part), 0));
  await tab.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await until("a dark report", async () => (await back()) < 150);
  await tab.shoot("dark");
  await tab.page.click(".theme"); // light
  await until("a light report by choice", async () => (await back()) > 600);
  await tab.page.click(".theme"); // dark
  await tab.page.click(".theme"); // as the system says
  await tab.close();
});

test("a phone shows it without scrolling sideways", async () => {
  const tab = await openReport([360, 740]);
  await tab.shows("Convergence");
  await tab.page.click('[aria-label="Decisions"] button');
  await tab.shoot("phone");
  assert.equal(await tab.page.evaluate(() => document.documentElement.scrollWidth), 360);
  await tab.close();
});
