// A uPlot chart as a component: it follows the width of its place and the theme. Options are made anew when `key` or the theme changes;
// otherwise new data keeps the zoom.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useStore } from "./store";
import { colour, shade } from "./theme";

export interface ChartProps {
  label: string; // for those who do not see it
  height: number;
  chartKey: string;
  options: () => Omit<uPlot.Options, "width" | "height">;
  data: uPlot.AlignedData;
}

export const seriesColours = ["series1", "series2", "series3", "series4", "series5", "series6", "series7", "series8"] as const;
export const seriesColour = (i: number) => colour(seriesColours[i % seriesColours.length] ?? "series1");

const font = "11px system-ui, sans-serif";

// An axis in the page's colours.
export function axis(values: (values: number[]) => (string | null)[], more: uPlot.Axis = {}): uPlot.Axis {
  return {
    stroke: colour("text-soft"),
    font,
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1, size: 4 },
    values: (_plot, splits) => values(splits),
    ...more,
  };
}

// Ticks of a logarithmic axis: 1, 2, 5 of each decade, and finer ones where that would be too few.
export function logTicks(min: number, max: number): number[] {
  if (!(min > 0) || !(max > min)) return [];
  const ticks: number[] = [];
  const decades = Math.log10(max / min);
  const marks = decades > 2.5 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
  if (decades < 0.35) {
    const step = Math.pow(10, Math.floor(Math.log10((max - min) / 3)));
    const nice = [1, 2, 5, 10].map((times) => times * step).find((step) => (max - min) / step <= 6) ?? 10 * step;
    for (let tick = Math.ceil(min / nice) * nice; tick <= max; tick += nice) ticks.push(tick);
    return ticks;
  }
  for (let decade = Math.floor(Math.log10(min)); decade <= Math.log10(max); ++decade) {
    for (const mark of marks) {
      const tick = mark * Math.pow(10, decade);
      if (tick >= min && tick <= max) ticks.push(tick);
    }
  }
  return ticks;
}

export const logAxis = (format: (value: number) => string): uPlot.Axis =>
  axis((splits) => splits.map(format), { size: 62, splits: (_plot, _axis, min, max) => logTicks(min, max), filter: (_plot, splits) => splits });

export function Chart({ label, height, chartKey, options, data }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const dark = useStore(shade);
  const newest = useRef(data);
  newest.current = data;

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const size = () => ({ width: Math.max(200, element.clientWidth), height });
    const made = new uPlot({ ...options(), ...size() }, newest.current, element);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth !== made.width) made.setSize(size());
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [chartKey, dark, height]);

  useEffect(() => {
    const shown = plot.current;
    if (!shown || shown.data === data) return;
    const scale = shown.scales["x"];
    const all = shown.data[0];
    const isZoomed = scale?.min !== undefined && all.length > 0 && shown.select.width === 0 && zoomed.has(shown);
    shown.setData(data, !isZoomed);
  }, [data]);

  return <div class="chart" ref={place} role="img" aria-label={label} style={{ minHeight: `${height}px` }} />;
}

// Charts that the reader has zoomed; a double click shows all again.
const zoomed = new WeakSet<uPlot>();
export const followZoom: uPlot.Plugin = {
  hooks: {
    setSelect: (plot) => {
      if (plot.select.width > 0) zoomed.add(plot);
    },
    ready: (plot) => {
      plot.over.addEventListener("dblclick", () => zoomed.delete(plot));
    },
  },
};
