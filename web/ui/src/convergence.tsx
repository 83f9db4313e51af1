// How the best time of a job's tasks fell, against trials or against time. One task is shown in seconds; several are shown as how much faster
// each has become than its default schedule, so that they compare.
import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { BestPoint, JobDetail, TaskConvergence } from "./api";
import { axis, Chart, followZoom, logAxis, seriesColour } from "./chart";
import { formatRatio, formatSeconds, formatSpan } from "./format";
import { Choice } from "./parts";
import { steppedPaths } from "./stepped";

type Against = "trials" | "time";

// More lines than this are no picture: the tasks with the most trials are shown.
const mostLines = 8;

// The first candidates may be very slow: what is this much worse than the best is cut off.
const far = 2.5;

interface Line {
  name: string;
  points: [number, number][];
}

function lineOf(name: string, task: TaskConvergence, scale: number, against: Against, begin: number): Line {
  const at = ([trial, micros]: BestPoint) => (against === "trials" ? trial : Math.max(0, (micros - begin) / 1e6));
  const points = task.points.map((point): [number, number] => [at(point), scale > 0 ? scale / point[2] : point[2]]);
  const last = points.at(-1);
  const end = against === "trials" ? task.trials : Math.max(0, (task.last_unix_micros - begin) / 1e6);
  if (last && end > last[0]) points.push([end, last[1]]);
  return { name, points };
}

// Lines with places of their own, on one axis.
export function align(lines: Line[]): uPlot.AlignedData {
  const places = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    const at = new Map(line.points);
    let last: number | null = null;
    const end = line.points.at(-1)?.[0] ?? -1;
    return places.map((x) => {
      last = at.get(x) ?? last;
      return x <= end ? last : null;
    });
  });
  return [places, ...columns] as uPlot.AlignedData;
}

export function Convergence({ detail, task }: { detail: JobDetail; task: number | null }) {
  const [against, setAgainst] = useState<Against>("trials");
  const tasks = detail.job.tasks ?? [];
  const begin = detail.job.created_unix_micros ?? 0;
  const lines = useMemo(() => {
    const shown = detail.convergence
      .map((convergence, number) => ({ convergence, number }))
      .filter(({ convergence, number }) => convergence.points.length > 0 && (task === null || task === number))
      .sort((a, b) => b.convergence.trials - a.convergence.trials)
      .slice(0, mostLines)
      .sort((a, b) => a.number - b.number);
    const isOne = shown.length === 1;
    return shown.map(({ convergence, number }) => {
      const first = tasks[number]?.first_seconds || convergence.points[0]?.[2] || 0;
      return lineOf(tasks[number]?.workload_name ?? `task ${number}`, convergence, isOne ? 0 : first, against, begin);
    });
  }, [detail, task, against]);
  const data = useMemo(() => align(lines), [lines]);
  const isOne = lines.length === 1;
  const key = [against, isOne, ...lines.map((line) => line.name)].join();
  const value = isOne ? formatSeconds : formatRatio;

  const options = (): Omit<uPlot.Options, "width" | "height"> => ({
    plugins: [followZoom],
    scales: { x: { time: false }, y: { distr: 3, log: 10, range: (_plot, min, max) => (isOne ? [min * 0.96, Math.min(max, min * far) * 1.04] : [Math.max(min, max / far) * 0.96, max * 1.04]) } },
    legend: { live: true },
    cursor: { points: { size: 7 }, drag: { x: true, y: false } },
    axes: [
      axis((splits) => splits.map((split) => (against === "trials" ? String(split) : formatSpan(split))), { size: 30 }),
      logAxis(value),
    ],
    series: [
      { label: against, value: (_plot, x) => (x == null ? "" : against === "trials" ? `${x}` : formatSpan(x)) },
      ...lines.map((line, i) => ({
        label: line.name,
        stroke: seriesColour(i),
        width: 2,
        paths: steppedPaths,
        points: { show: false },
        value: (_plot: uPlot, y: number | null) => (y == null ? "–" : value(y)),
      })),
    ],
  });

  return (
    <section class="panel" aria-labelledby="convergence">
      <header>
        <h2 id="convergence">Convergence</h2>
        <span class="hint">{isOne ? "best time so far" : "times faster than the default schedule"}</span>
        <Choice
          label="Against"
          options={[
            ["trials", "trials"],
            ["time", "time"],
          ]}
          value={against}
          onChange={setAgainst}
        />
      </header>
      {lines.length === 0 ? (
        <p class="empty">No valid result yet.</p>
      ) : (
        <Chart label={`Best times of ${lines.length} tasks against ${against}`} height={240} chartKey={key} options={options} data={data} />
      )}
    </section>
  );
}
