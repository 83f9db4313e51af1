// Small parts that all views use.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { words } from "./format";

const tones: Record<string, string> = {
  running: "busy",
  busy: "busy",
  held: "busy",
  done: "good",
  ok: "good",
  idle: "quiet",
  waiting: "quiet",
  granting: "quiet",
  committing: "quiet",
  cancelled: "quiet",
  failed: "bad",
  draining: "warn",
};

export function Badge({ state, tone }: { state: string; tone?: string }) {
  return <span class={`badge ${tone ?? tones[state] ?? "bad"}`}>{words(state)}</span>;
}

export function Notice({ tone, children }: { tone: "bad" | "warn" | "quiet"; children: ComponentChildren }) {
  return (
    <p class={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </p>
  );
}

// What a view shows before there is an answer, or beside the last one.
export function Waiting({ error }: { error: string | null }) {
  return error ? <Notice tone="bad">{error}</Notice> : <p class="empty">Loading…</p>;
}

export function Figure({ label, value, detail, tone }: { label: string; value: string; detail?: string; tone?: string }) {
  return (
    <div class={`figure ${tone ?? ""}`}>
      <dt>{label}</dt>
      <dd>
        {value}
        {detail ? <small> {detail}</small> : null}
      </dd>
    </div>
  );
}

export function Progress({ share, label }: { share: number; label: string }) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, share)));
  return (
    <span class="progress" role="progressbar" aria-label={label} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" class="small" aria-label={label} onClick={() => void copy()}>
      {copied ? "Copied" : "Copy"}
    </button>
  );
}

// Browsers have a clipboard for pages on loopback or TLS alone, and may refuse it; a selected text can be copied anywhere.
async function copyText(text: string) {
  try {
    if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  } catch {
    // The browser has one, and refuses it to this page.
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ComponentChildren;
  number?: boolean;
  wide?: boolean; // takes the room that is left
  minor?: boolean; // left out on a phone
}

export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  empty,
  isSelected,
}: {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  empty: string;
  isSelected?: (row: Row) => boolean;
}) {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  const classOf = (column: Column<Row>) =>
    [column.number ? "number" : "", column.wide ? "wide" : "", column.minor ? "minor" : ""].filter(Boolean).join(" ");
  return (
    <div class="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={isSelected?.(row) ? "selected" : ""}>
              {columns.map((column) => (
                <td key={column.name} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// A choice of a few words, shown side by side.
export function Choice<Word extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly (readonly [Word, string])[];
  value: Word;
  onChange: (word: Word) => void;
}) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {options.map(([word, text]) => (
        <label key={word}>
          <input type="radio" name={label} checked={word === value} onChange={() => onChange(word)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

// A line of the recent past, for a cell of a table. Points are [time, value].
export function Sparkline({ points, label, tone, usual }: { points: [number, number][]; label: string; tone: string; usual: [number, number] }) {
  const width = 96;
  const height = 22;
  if (points.length < 2) return null;
  const times = points.map(([time]) => time);
  const values = points.map(([, value]) => value);
  const [from, to] = [times[0] ?? 0, times.at(-1) ?? 1];
  const low = Math.min(usual[0], ...values);
  const span = Math.max(usual[1], ...values) - low;
  const path = points
    .map(([time, value], i) => {
      const x = ((time - from) / (to - from || 1)) * (width - 2) + 1;
      const y = height - 2 - ((value - low) / span) * (height - 4);
      return `${i === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
  return (
    <svg class={`sparkline ${tone}`} width={width} height={height} role="img" aria-label={label}>
      <path d={path} />
    </svg>
  );
}
