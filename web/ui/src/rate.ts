// How fast a counter grows, over the last half minute.
import { useRef } from "preact/hooks";

const span = 30;

// By the second; null until there are two readings.
export function useRate(count: number): number | null {
  const seen = useRef<[number, number][]>([]);
  const now = performance.now() / 1000;
  const readings = seen.current;
  const last = readings.at(-1);
  if (last && count < last[1]) readings.length = 0; // the server was started again
  if (!last || now - last[0] >= 1) readings.push([now, count]);
  while (readings.length > 2 && now - (readings[1]?.[0] ?? now) > span) readings.shift();
  const first = readings[0];
  const newest = readings.at(-1);
  if (!first || !newest || newest[0] - first[0] < 1) return null;
  return (newest[1] - first[1]) / (newest[0] - first[0]);
}
