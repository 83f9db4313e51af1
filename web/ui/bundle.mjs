// Bundles the page, and the report of a job, into a C++ source: node bundle.mjs FOLDER, where FOLDER has node_modules. It writes FOLDER/assets.cc, and the files
// themselves into FOLDER/dist, for a look.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ui = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2];
const { build } = createRequire(join(folder, "package.json"))("esbuild");

const digestOf = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);

// The terms of the packages that become part of the page go with it.
const { dependencies } = JSON.parse(readFileSync(join(ui, "package.json"), "utf8"));
const terms = Object.keys(dependencies).map((name) => `${name}:\n${readFileSync(join(folder, "node_modules", name, "LICENSE"), "utf8")}`);

const bundle = (entryPoints) => build({
  absWorkingDir: ui,
  entryPoints,
  outdir: join(folder, "dist"),
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  nodePaths: [join(folder, "node_modules")],
  legalComments: "none",
  banner: { js: `/*\n${terms.join("\n")}*/` },
  write: false,
});
const bundled = await bundle({ app: "src/main.tsx" });

// The report is one file: what it needs stands in it. Nothing in a script or a style may end its element.
const report = await bundle({ report: "src/report.tsx" });
const textOf = (extension) => {
  const { text } = report.outputFiles.find((file) => file.path.endsWith(extension));
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`the report's ${extension} would end its element`);
  return text;
};
const reportPage = readFileSync(join(ui, "report.html"), "utf8")
  .replace("@STYLE@", () => textOf(".css"))
  .replace("@SCRIPT@", () => textOf(".js"));
if (reportPage.split("@REPORT_DATA@").length !== 2) throw new Error("report.html has no place for the data, or more than one");

const types = { ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8" };
const assets = [];
let page = readFileSync(join(ui, "index.html"), "utf8");
for (const file of bundled.outputFiles) {
  const extension = file.path.endsWith(".css") ? ".css" : ".js";
  const path = `/assets/app-${digestOf(file.contents)}${extension}`;
  page = page.replace(`/assets/app${extension}`, path);
  assets.push({ path, type: types[extension], bytes: Buffer.from(file.contents) });
}
assets.push({ path: "/", type: types[".html"], bytes: Buffer.from(page) });

const arrayOf = (name, bytes) => {
  const packed = gzipSync(bytes, { level: 9 });
  const lines = [];
  for (let at = 0; at < packed.length; at += 32) lines.push([...packed.subarray(at, at + 32)].join(","));
  return `const unsigned char ${name}[] = {\n${lines.join(",\n")}};`;
};
const arrays = [...assets.map(({ bytes }, i) => arrayOf(`kFile${i}`, bytes)), arrayOf("kReport", Buffer.from(reportPage))];
const rows = assets.map(({ path, type, bytes }, i) =>
  `    {"${path}", "${type}", "${digestOf(bytes)}",\n     std::string_view(reinterpret_cast<const char*>(kFile${i}), sizeof(kFile${i}))},`);
const source = `// Made by web/ui/bundle.mjs.
#include "web/assets.h"

namespace mycc {
namespace {

${arrays.join("\n")}

}  // namespace

absl::Span<const Asset> Assets() {
  static const Asset assets[] = {
${rows.join("\n")}
  };
  return assets;
}

std::string_view ReportTemplate() { return std::string_view(reinterpret_cast<const char*>(kReport), sizeof(kReport)); }

}  // namespace mycc
`;

// A file with its final name is complete.
writeFileSync(join(folder, "assets.cc.partial"), source);
renameSync(join(folder, "assets.cc.partial"), join(folder, "assets.cc"));
for (const { path, bytes } of [...assets, { path: "report.html", bytes: Buffer.from(reportPage) }]) {
  const file = join(folder, "dist", path === "/" ? "index.html" : path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}
