// Failures by kind, each with the line that reproduces its newest one.
import { useState } from "preact/hooks";
import type { FailureKind } from "../api";
import { formatAgo, formatCount, shortJob } from "../format";
import { useLive } from "../live";
import { Badge, CopyButton, Waiting } from "../parts";
import { linkTo } from "../route";
import { TraceDialog } from "../trace";

function Kind({ kind, onShow }: { kind: FailureKind; onShow: (id: number) => void }) {
  const { newest } = kind;
  const [first = "", ...rest] = newest.error.split("\n");
  return (
    <article class="kind">
      <header>
        <strong class="count">{formatCount(kind.count)}</strong>
        <Badge state={kind.status} tone="bad" />
        <h3>{first || "no words"}</h3>
      </header>
      <p class="hint">
        newest {formatAgo(newest.recorded_unix_micros)}: <a href={linkTo("jobs", newest.job)}>{newest.workload_name || shortJob(newest.job)}</a> on{" "}
        {newest.worker || "no worker"} {newest.device}{" "}
        <button type="button" class="small" onClick={() => onShow(newest.id)}>
          Trace
        </button>
      </p>
      {rest.length > 0 ? (
        <details>
          <summary>all of its error</summary>
          <pre class="error">{newest.error}</pre>
        </details>
      ) : null}
      {newest.reproduction ? (
        <div class="reproduction">
          <code tabIndex={0}>{newest.reproduction}</code>
          <CopyButton text={newest.reproduction} label="Copy the reproduction" />
        </div>
      ) : null}
    </article>
  );
}

export function FailuresView({ job }: { job: string }) {
  const { data, error } = useLive<{ failures: number; kinds: FailureKind[] }>(`failures${job ? `?job=${encodeURIComponent(job)}` : ""}`, 5);
  const [record, setRecord] = useState<number | null>(null);
  if (!data) return <Waiting error={error} />;
  return (
    <section class="panel" aria-labelledby="failures">
      <header>
        <h2 id="failures">Failures</h2>
        <span class="hint">
          the newest {formatCount(data.failures)}
          {job ? (
            <>
              {" "}
              of <a href={linkTo("jobs", job)}>{shortJob(job)}</a>, <a href={linkTo("failures")}>of all</a>
            </>
          ) : null}
          , by kind
        </span>
      </header>
      {data.kinds.length === 0 ? <p class="empty">Nothing failed.</p> : null}
      {data.kinds.map((kind) => (
        <Kind key={`${kind.status} ${kind.kind}`} kind={kind} onShow={setRecord} />
      ))}
      {record === null ? null : <TraceDialog id={record} onClose={() => setRecord(null)} />}
    </section>
  );
}
