// The candidates of a job as a scatter of their times over a decision, or over the order of results. The nearest point's candidate is named at
// the pointer; a click shows its trace.
import { useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { Candidate } from "./api";
import { axis, Chart, followZoom, logAxis, seriesColour } from "./chart";
import { formatRatio, formatSeconds, words } from "./format";
import { Choice } from "./parts";
import { choicesOf, columnsOf, scatterOf, type ColourBy, type Scatter } from "./scatter_data";
import { colour } from "./theme";

const reach = 24; // pixels from the pointer to a point

interface Pointed {
  candidate: Candidate;
  left: number;
  top: number;
  across: number; // from 0 at the left edge to 1 at the right one
}

const statusColours: Record<string, string> = {
  ok: "good",
  "final round": "series3",
  "wrong result": "bad",
  "build error": "series2",
  "build timeout": "series7",
  "run error": "series5",
  "run timeout": "series1",
  "out of memory": "series6",
};

function colourOf(by: ColourBy, name: string, number: number, count: number): string {
  if (by === "generation") return `color-mix(in oklab, ${colour("ramp-to")} ${Math.round((100 * (number + 1)) / count)}%, ${colour("ramp-from")})`;
  if (by === "sketch") return seriesColour(number);
  return colour(statusColours[name] ?? "bad");
}

// Canvas takes no color-mix: the browser computes it.
function computed(value: string): string {
  const probe = document.createElement("span");
  probe.style.color = value;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function nearest(plot: uPlot, candidates: Candidate[], left: number, top: number): Pointed | null {
  let best: Pointed | null = null;
  let bestDistance = reach * reach;
  const x = plot.data[0];
  for (let s = 1; s < plot.data.length; ++s) {
    if (plot.series[s]?.show === false) continue;
    const column = plot.data[s] ?? [];
    for (let i = 0; i < column.length; ++i) {
      const y = column[i];
      if (y == null) continue;
      const dx = plot.valToPos(x[i] ?? 0, "x") - left;
      if (dx > reach) break;
      if (dx < -reach) continue;
      const dy = plot.valToPos(y, "y") - top;
      const distance = dx * dx + dy * dy;
      const candidate = candidates[i];
      if (distance < bestDistance && candidate) {
        bestDistance = distance;
        best = { candidate, left: left + dx, top: top + dy, across: (left + dx) / plot.over.clientWidth };
      }
    }
  }
  return best;
}

function labelsAt(scatter: Scatter, splits: number[]): (string | null)[] {
  const labels = scatter.labels;
  if (!labels) return splits.map((split) => (Number.isInteger(split) ? String(split) : null));
  return splits.map((split) => (Number.isInteger(split) ? String(labels[split] ?? "") : null));
}

export function CandidateScatter({
  candidates,
  total,
  onChoose,
}: {
  candidates: Candidate[];
  total: number;
  onChoose: (candidate: Candidate) => void;
}) {
  const choices = useMemo(() => choicesOf(candidates), [candidates]);
  const [wanted, setWanted] = useState("order");
  const [by, setBy] = useState<ColourBy>("status");
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const xWord = choices.some((choice) => choice.word === wanted) ? wanted : "order";
  const scatter = useMemo(() => scatterOf(candidates, xWord, by), [candidates, xWord, by]);
  const columns = useMemo(() => columnsOf(scatter), [scatter]);
  const data = useMemo(() => [columns.x, ...columns.columns] as uPlot.AlignedData, [columns]);
  const latest = useRef({ columns, scatter });
  latest.current = { columns, scatter };

  const options = (): Omit<uPlot.Options, "width" | "height"> => ({
    plugins: [
      followZoom,
      {
        hooks: {
          ready: (plot) => {
            const at = (event: MouseEvent) => {
              const box = plot.over.getBoundingClientRect();
              return nearest(plot, latest.current.columns.candidates, event.clientX - box.left, event.clientY - box.top);
            };
            const offset = () => ({ left: plot.over.offsetLeft, top: plot.over.offsetTop });
            plot.over.addEventListener("mousemove", (event) => {
              const found = at(event);
              setPointed(found && { ...found, left: found.left + offset().left, top: found.top + offset().top });
            });
            plot.over.addEventListener("mouseleave", () => setPointed(null));
            plot.over.addEventListener("click", (event) => {
              const found = at(event);
              if (found) onChoose(found.candidate);
            });
          },
        },
      },
    ],
    scales: {
      x: {
        time: false,
        range: (_plot, min, max) => {
          const labels = latest.current.scatter.labels;
          if (labels) return [Math.min(min, -0.4), Math.max(max, labels.length - 0.6)];
          const room = Math.max(0.5, (max - min) * 0.01);
          return [min - room, max + room];
        },
      },
      y: { distr: 3, log: 10, range: (_plot, min, max) => [min * 0.93, max * 1.07] },
    },
    cursor: { points: { show: false }, y: false, drag: { x: true, y: false } },
    legend: { live: false },
    axes: [
      axis((splits) => labelsAt(latest.current.scatter, splits), {
        size: 30,
        splits: (_plot, _axis, min, max) => ticksOf(latest.current.scatter, min, max),
      }),
      logAxis((value) => (latest.current.scatter.isRelative ? formatRatio(value) : formatSeconds(value))),
    ],
    series: [
      {},
      ...scatter.groups.map((group, i) => {
        const paint = computed(colourOf(by, group.name, i, scatter.groups.length));
        return {
          label: `${group.name} (${group.points.length})`,
          stroke: paint,
          paths: () => null,
          points: { show: true, size: columns.x.length > 3000 ? 3 : 5, fill: paint, width: 0 },
        };
      }),
    ],
  });

  const key = [xWord, by, scatter.isRelative, columns.x.length > 3000, ...scatter.groups.map((group) => group.name)].join();
  return (
    <section class="panel" aria-labelledby="candidates">
      <header>
        <h2 id="candidates">Candidates</h2>
        <span class="hint">
          {candidates.length < total ? `the newest ${candidates.length.toLocaleString("en")} of ${total.toLocaleString("en")}; ` : ""}
          {scatter.isRelative ? "times as long as the task's best, over" : "time over"}
        </span>
        <label class="select">
          <span class="offscreen">Axis</span>
          <select name="axis" value={xWord} onChange={(event) => setWanted(event.currentTarget.value)}>
            {choices.map((choice) => (
              <option key={choice.word} value={choice.word}>
                {choice.text}
              </option>
            ))}
          </select>
        </label>
        <Choice
          label="Colour"
          options={[
            ["status", "status"],
            ["generation", "generation"],
            ["sketch", "sketch"],
          ]}
          value={by}
          onChange={setBy}
        />
      </header>
      {columns.x.length === 0 ? (
        <p class="empty">No results yet.</p>
      ) : (
        <div class="scatter">
          <Chart
            label={`Times of ${columns.x.length} candidates over ${choices.find((choice) => choice.word === xWord)?.text ?? xWord}`}
            height={340}
            chartKey={key}
            options={options}
            data={data}
          />
          {pointed ? <Tip pointed={pointed} /> : null}
        </div>
      )}
      {scatter.failureY > 0 && scatter.groups.some((group) => group.points.some((point) => point.candidate.seconds === undefined)) ? (
        <p class="hint">Failures stand on the line above the slowest time.</p>
      ) : null}
    </section>
  );
}

function ticksOf(scatter: Scatter, min: number, max: number): number[] {
  const from = Math.ceil(min);
  const count = Math.floor(max) - from + 1;
  const most = scatter.labels ? 16 : 10;
  const nice = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000];
  const step = nice.find((step) => count / step <= most) ?? 100000;
  const ticks: number[] = [];
  for (let tick = Math.ceil(from / step) * step; tick <= max; tick += step) ticks.push(tick);
  return ticks;
}

function Tip({ pointed }: { pointed: Pointed }) {
  const { candidate } = pointed;
  const decisions = Object.entries(candidate.decisions ?? {});
  return (
    <div class="tip" style={{ left: `${pointed.left}px`, top: `${pointed.top}px`, transform: `translate(${-100 * pointed.across}%, calc(-100% - 10px))` }} role="status">
      <strong>{candidate.seconds ? formatSeconds(candidate.seconds) : words(candidate.status)}</strong>
      <span>
        {candidate.generation === undefined ? "" : `generation ${candidate.generation}, `}
        {candidate.worker}
      </span>
      {candidate.sketch ? <span>{candidate.sketch}</span> : null}
      {decisions.length > 0 ? <code>{decisions.map(([name, value]) => `${name}=${value}`).join(" ")}</code> : null}
      <span class="hint">click for more</span>
    </div>
  );
}
