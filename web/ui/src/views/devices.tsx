// The devices of all workers: what they do, how their baseline drifts, how warm they are.
import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { Device, DevicePoint } from "../api";
import { axis, Chart, followZoom, seriesColour } from "../chart";
import { formatCount, formatRatio, formatSpan } from "../format";
import { useLive } from "../live";
import { Badge, Choice, Sparkline, Table, Waiting } from "../parts";

type Measure = "ratio" | "temperature" | "clock";
// `usual`: the range that is always shown, so that noise does not look like drift.
const measures: Record<Measure, { column: 1 | 2 | 3; text: string; usual: [number, number]; format: (value: number) => string }> = {
  ratio: { column: 1, text: "baseline", usual: [0.94, 1.06], format: (value) => formatRatio(value) },
  temperature: { column: 2, text: "temperature", usual: [40, 60], format: (value) => `${value.toFixed(0)} °C` },
  clock: { column: 3, text: "clock", usual: [1500, 2500], format: (value) => `${value.toFixed(0)} MHz` },
};

const keyOf = (device: Device) => `${device.worker} ${device.device}`;

const knownPoints = (history: DevicePoint[], column: 1 | 2 | 3) =>
  history.filter((point) => point[column] > 0).map((point): [number, number] => [point[0], point[column]]);

// Far from 1 in both ways: slower is throttled or shared, faster is not what records were compared with.
const ratioTone = (ratio: number | undefined) => (!ratio ? "" : ratio > 1.2 ? "bad" : ratio > 1.05 || ratio < 0.95 ? "warn" : "good");

function Drift({ devices }: { devices: Device[] }) {
  const [measure, setMeasure] = useState<Measure>("ratio");
  const { column, text, usual, format } = measures[measure];
  const lines = useMemo(
    () => devices.map((device) => ({ name: keyOf(device), points: knownPoints(device.history, column) })).filter(({ points }) => points.length > 1),
    [devices, column],
  );
  const data = useMemo(() => {
    const times = [...new Set(lines.flatMap(({ points }) => points.map(([time]) => time)))].sort((a, b) => a - b);
    const columns = lines.map(({ points }) => {
      const at = new Map(points);
      return times.map((time) => at.get(time));
    });
    return [times.map((time) => time / 1e6), ...columns] as uPlot.AlignedData;
  }, [lines]);
  const options = (): Omit<uPlot.Options, "width" | "height"> => ({
    plugins: [followZoom],
    scales: { x: { time: true }, y: { range: (_plot, min, max) => [Math.min(min, usual[0]), Math.max(max, usual[1])] } },
    cursor: { drag: { x: true, y: false } },
    axes: [
      axis((splits) => splits.map((split) => new Date(split * 1000).toLocaleTimeString("sv").slice(0, splits.length > 1 && (splits[1] ?? 0) - (splits[0] ?? 0) < 60 ? 8 : 5)), { size: 30 }),
      axis((splits) => splits.map(format), { size: 62 }),
    ],
    series: [
      { value: (_plot, time) => (time == null ? "" : new Date(time * 1000).toLocaleString("sv")) },
      ...lines.map(({ name }, i) => ({
        label: name,
        stroke: seriesColour(i),
        width: 1.5,
        spanGaps: true,
        points: { show: false },
        value: (_plot: uPlot, value: number | null) => (value == null ? "–" : format(value)),
      })),
    ],
  });
  return (
    <section class="panel" aria-labelledby="drift">
      <header>
        <h2 id="drift">Drift</h2>
        <span class="hint">{measure === "ratio" ? "time of the baseline kernel, relative to the device's usual one" : text}</span>
        <Choice
          label="Show"
          options={Object.entries(measures).map(([word, { text }]) => [word as Measure, text] as const)}
          value={measure}
          onChange={setMeasure}
        />
      </header>
      {lines.length === 0 ? (
        <p class="empty">Nothing is known of the {text} over time yet.</p>
      ) : (
        <Chart
          label={`${text} of ${lines.length} devices over time`}
          height={220}
          chartKey={[measure, ...lines.map(({ name }) => name)].join()}
          options={options}
          data={data}
        />
      )}
    </section>
  );
}

function Reading({ device, measure, value }: { device: Device; measure: Measure; value: number | undefined }) {
  const { column, text, usual, format } = measures[measure];
  const tone = measure === "ratio" ? ratioTone(value) : "";
  return (
    <span class={`reading ${tone}`}>
      <Sparkline points={knownPoints(device.history, column)} label={`${text} of ${keyOf(device)} over time`} tone={tone} usual={usual} />
      <span>{value ? format(value) : "–"}</span>
    </span>
  );
}

export function DevicesView() {
  const { data, error } = useLive<{ devices: Device[] }>("devices", 5);
  const [which, setWhich] = useState<"all" | "trouble">("all");
  if (!data) return <Waiting error={error} />;
  const isTroubled = (device: Device) =>
    Boolean(device.reason || device.trouble || device.reading?.throttle) || ratioTone(device.baseline_ratio) === "bad" || (device.refused ?? 0) > 0;
  const rows = data.devices
    .filter((device) => which === "all" || isTroubled(device))
    .sort((a, b) => keyOf(a).localeCompare(keyOf(b), "en", { numeric: true }));
  return (
    <>
      <section class="panel" aria-labelledby="devices">
        <header>
          <h2 id="devices">Devices</h2>
          <span class="hint">{formatCount(new Set(data.devices.map(({ worker }) => worker)).size)} workers</span>
          <Choice
            label="Filter"
            options={[
              ["all", "all"],
              ["trouble", "with trouble"],
            ]}
            value={which}
            onChange={setWhich}
          />
        </header>
        <Table
          label="Devices"
          rows={rows}
          keyOf={keyOf}
          empty={which === "all" ? "No worker is registered. mycc-tune worker --server ADDRESS starts one." : "No device has trouble."}
          columns={[
            {
              name: "Device",
              wide: true,
              cell: (device) => (
                <>
                  <strong>{device.worker}</strong> {device.device}
                  <small class="model">{device.info?.model ?? ""}</small>
                  {device.trouble || device.reason ? <span class="message bad">{device.trouble || device.reason}</span> : null}
                </>
              ),
            },
            { name: "State", cell: (device) => <Badge state={device.state ?? "idle"} /> },
            { name: "Baseline", number: true, cell: (device) => <Reading device={device} measure="ratio" value={device.baseline_ratio} /> },
            {
              name: "Temperature",
              number: true,
              cell: (device) => <Reading device={device} measure="temperature" value={device.reading?.temperature_celsius} />,
            },
            { name: "Clock", number: true, cell: (device) => (device.reading?.clock_mhz ? `${formatCount(device.reading.clock_mhz)} MHz` : "–"), minor: true },
            { name: "Power", number: true, cell: (device) => (device.reading?.power_watts ? `${device.reading.power_watts.toFixed(0)} W` : "–"), minor: true },
            { name: "Held back", cell: (device) => device.reading?.throttle ?? "", minor: true },
            { name: "Trials", number: true, cell: (device) => formatCount(device.trials) },
            { name: "Leases", number: true, cell: (device) => formatCount(device.leases), minor: true },
            { name: "Refused", number: true, cell: (device) => device.refused || "", minor: true },
            { name: "Heard", number: true, cell: (device) => `${formatSpan(device.silent_seconds ?? 0)} ago`, minor: true },
          ]}
        />
      </section>
      <Drift devices={rows.slice(0, 16)} />
    </>
  );
}
