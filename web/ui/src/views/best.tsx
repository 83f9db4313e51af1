// The best schedules that the log knows, workload by workload.
import { useState } from "preact/hooks";
import type { BestKey, BestRecord } from "../api";
import { formatAgo, formatSeconds, formatShare, shortTarget } from "../format";
import { useLive } from "../live";
import { Badge, Table, Waiting } from "../parts";
import { TraceDialog } from "../trace";

interface Row {
  key: BestKey;
  record: BestRecord;
}

const width = ({ record }: Row) => (record.ci_high_seconds > 0 ? (record.ci_high_seconds - record.ci_low_seconds) / record.seconds / 2 : 0);

export function BestView() {
  const [text, setText] = useState("");
  const [pages, setPages] = useState<number[]>([]); // where earlier keys begin, for "Older"
  const [record, setRecord] = useState<number | null>(null);
  const before = pages.at(-1);
  const path = `best?limit=100${before ? `&before=${before}` : ""}${text ? `&text=${encodeURIComponent(text)}` : ""}`;
  const { data, error } = useLive<{ keys: BestKey[]; before?: number }>(path, 5);
  const rows = (data?.keys ?? []).flatMap((key) => key.best.map((record) => ({ key, record })));
  const older = data?.before;
  return (
    <section class="panel" aria-labelledby="best">
      <header>
        <h2 id="best">Best schedules</h2>
        <label class="search">
          <span class="offscreen">Search</span>
          <input
            type="search"
            placeholder="workload, target or hash"
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setPages([]);
            }}
          />
        </label>
        {pages.length > 0 ? (
          <button type="button" class="small" onClick={() => setPages(pages.slice(0, -1))}>
            Newer
          </button>
        ) : null}
        {older ? (
          <button type="button" class="small" onClick={() => setPages([...pages, older])}>
            Older
          </button>
        ) : null}
      </header>
      {data ? (
        <Table
          label="Best schedules"
          rows={rows}
          keyOf={({ record }) => `${record.id} ${record.protocol}`}
          empty="The log has no schedule that may be served."
          columns={[
            {
              name: "Workload",
              wide: true,
              cell: ({ key, record }) => (
                <>
                  <button type="button" class="link" onClick={() => setRecord(record.id)}>
                    {key.workload_name || key.workload_hash.slice(0, 12)}
                  </button>
                  <small class="model">{record.sketch}</small>
                </>
              ),
            },
            { name: "Time", number: true, cell: ({ record }) => <strong>{formatSeconds(record.seconds)}</strong> },
            { name: "±", number: true, cell: (row) => (width(row) > 0 ? formatShare(width(row)) : ""), minor: true },
            { name: "Caches", cell: ({ record }) => record.protocol },
            { name: "Target", cell: ({ key }) => <span title={key.target}>{shortTarget(key.target)}</span>, minor: true },
            { name: "", cell: ({ record }) => (record.pinned ? <Badge state="pinned" tone="quiet" /> : null) },
            { name: "Worker", cell: ({ record }) => record.worker, minor: true },
            { name: "Measured", cell: ({ record }) => formatAgo(record.recorded_unix_micros), minor: true },
          ]}
        />
      ) : (
        <Waiting error={error} />
      )}
      {record === null ? null : <TraceDialog id={record} onClose={() => setRecord(null)} />}
    </section>
  );
}
