// Candidates as points of a chart: which decisions there are, where a point stands, and which group gives it its colour. Pure.
import type { Candidate } from "./api";

export type ColourBy = "status" | "generation" | "sketch";

export interface XChoice {
  word: string; // "decision:mr", "order", "generation"
  text: string;
}

const decisionWord = (name: string) => `decision:${name}`;

// The decisions that vary, by name, and the choices that there always are.
export function choicesOf(candidates: Candidate[]): XChoice[] {
  const values = new Map<string, Set<number>>();
  for (const candidate of candidates) {
    for (const [name, value] of Object.entries(candidate.decisions ?? {})) {
      const seen = values.get(name);
      if (seen) seen.add(value);
      else values.set(name, new Set([value]));
    }
  }
  const decisions = [...values]
    .filter(([, seen]) => seen.size > 1)
    .map(([name]) => ({ word: decisionWord(name), text: name }))
    .sort((a, b) => a.text.localeCompare(b.text));
  return [{ word: "order", text: "order of results" }, { word: "generation", text: "generation" }, ...decisions];
}

export interface Point {
  x: number;
  y: number;
  candidate: Candidate;
}
export interface Group {
  name: string;
  points: Point[];
}
export interface Scatter {
  groups: Group[];
  // The values of a decision stand side by side, whatever their distances: the labels of 0, 1, 2, ...
  labels: number[] | null;
  failureY: number; // the line where failures stand, above all times; 0: there are no times
  // Times of several tasks compare as multiples of each task's best.
  isRelative: boolean;
}

// Points of one value stand beside each other, always in the same way.
function spread(id: number): number {
  let bits = Math.imul(id ^ (id >>> 15), 0x2c1b3c6d);
  bits = Math.imul(bits ^ (bits >>> 12), 0x297a2d39);
  return (((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32 - 0.5) * 0.56;
}

function xOf(word: string, candidates: Candidate[]) {
  if (word === "order") return { labels: null, x: (_candidate: Candidate, i: number): number | null => i + 1 };
  if (word === "generation") {
    return { labels: null, x: (candidate: Candidate) => (candidate.generation === undefined ? null : candidate.generation + spread(candidate.id)) };
  }
  const name = word.slice(decisionWord("").length);
  const labels = [...new Set(candidates.flatMap((candidate) => candidate.decisions?.[name] ?? []))].sort((a, b) => a - b);
  const place = new Map(labels.map((label, i) => [label, i]));
  return {
    labels,
    x: (candidate: Candidate) => {
      const value = candidate.decisions?.[name];
      const at = value === undefined ? undefined : place.get(value);
      return at === undefined ? null : at + spread(candidate.id);
    },
  };
}

const generationGroups = 6;

function groupOf(by: ColourBy, lastGeneration: number): (candidate: Candidate) => string {
  if (by === "status") return (candidate) => (candidate.final ? "final round" : candidate.status.replaceAll("_", " "));
  if (by === "sketch") return (candidate) => candidate.sketch ?? "no sketch";
  const width = Math.max(1, Math.ceil((lastGeneration + 1) / generationGroups));
  return (candidate) => {
    const from = Math.floor((candidate.generation ?? 0) / width) * width;
    return width === 1 ? `generation ${from}` : `generations ${from}–${from + width - 1}`;
  };
}

function bestByTask(candidates: Candidate[]): Map<number, number> {
  const best = new Map<number, number>();
  for (const { task = -1, seconds } of candidates) {
    if (seconds !== undefined) best.set(task, Math.min(best.get(task) ?? Infinity, seconds));
  }
  return best;
}

export function scatterOf(candidates: Candidate[], xWord: string, by: ColourBy): Scatter {
  const best = bestByTask(candidates);
  const isRelative = best.size > 1;
  const heightOf = ({ task = -1, seconds }: Candidate) => (seconds === undefined || !isRelative ? seconds : seconds / (best.get(task) ?? seconds));
  const times = candidates.flatMap((candidate) => heightOf(candidate) ?? []);
  const longest = times.reduce((a, b) => Math.max(a, b), 0);
  const shortest = times.reduce((a, b) => Math.min(a, b), Infinity);
  const failureY = longest > 0 ? longest * Math.max(1.25, Math.pow(longest / shortest, 0.08)) : 0;
  const lastGeneration = candidates.reduce((last, candidate) => Math.max(last, candidate.generation ?? 0), 0);
  const { labels, x } = xOf(xWord, candidates);
  const group = groupOf(by, lastGeneration);
  const groups = new Map<string, Point[]>();
  candidates.forEach((candidate, i) => {
    const at = x(candidate, i);
    const y = heightOf(candidate) ?? failureY;
    if (at === null || y <= 0) return;
    const name = group(candidate);
    const points = groups.get(name);
    if (points) points.push({ x: at, y, candidate });
    else groups.set(name, [{ x: at, y, candidate }]);
  });
  const byName = (a: [string, unknown], b: [string, unknown]) =>
    a[0] === "ok" ? -1 : b[0] === "ok" ? 1 : a[0].localeCompare(b[0], "en", { numeric: true });
  return { groups: [...groups].sort(byName).map(([name, points]) => ({ name, points })), labels, failureY, isRelative };
}

// The groups as columns over all places, which ascend.
export function columnsOf(scatter: Scatter): { x: number[]; columns: (number | null)[][]; candidates: Candidate[] } {
  const all = scatter.groups.flatMap((group, number) => group.points.map((point) => ({ point, number }))).sort((a, b) => a.point.x - b.point.x);
  const columns = scatter.groups.map(() => new Array<number | null>(all.length).fill(null));
  all.forEach(({ point, number }, i) => {
    const column = columns[number];
    if (column) column[i] = point.y;
  });
  return { x: all.map(({ point }) => point.x), columns, candidates: all.map(({ point }) => point.candidate) };
}
