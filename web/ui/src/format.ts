// Numbers, times and names for people.

const three = (value: number) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

// "1.23 ms": a measured time in the unit that suits.
export function formatSeconds(seconds: number | undefined): string {
  if (!seconds || !Number.isFinite(seconds)) return "–";
  const units: [number, string][] = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ];
  const [scale, unit] = units.find(([scale]) => seconds >= scale * 0.9995) ?? [1e-9, "ns"];
  return `${three(seconds / scale)} ${unit}`;
}

// "2 h 05 min": a span of time.
export function formatSpan(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function formatAgo(unixMicros: number | undefined, now = Date.now()): string {
  if (!unixMicros) return "–";
  return `${formatSpan(Math.max(0, now / 1000 - unixMicros / 1e6))} ago`;
}

export const formatCount = (count: number | undefined) => (count ?? 0).toLocaleString("en");

export const formatRatio = (ratio: number | undefined) => (ratio && Number.isFinite(ratio) ? `${three(ratio)}×` : "–");

export const formatShare = (share: number) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 999.5 && unit + 1 < units.length) {
    bytes /= 1000;
    ++unit;
  }
  return `${unit === 0 ? bytes : three(bytes)} ${units[unit]}`;
}

export const formatTime = (unixMicros: number) => new Date(unixMicros / 1000).toLocaleString("sv");

// "wrong_result" as "wrong result".
export const words = (status: string) => status.replaceAll("_", " ");

// A job's id is long: its beginning tells it from others.
export const shortJob = (job: string) => job.slice(0, 9);

// A target without what all have: "cpu haswell", "cuda sm_90".
export function shortTarget(target: string | undefined): string {
  if (!target) return "–";
  const parts = target.split(" ");
  const named = parts.find((part) => /^(mcpu|arch|sm|name)=/.test(part));
  return [parts[1] ?? target, named?.split("=")[1]].filter(Boolean).join(" ");
}
