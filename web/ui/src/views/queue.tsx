// Work that waits, and work that workers hold.
import type { Queue } from "../api";
import { formatCount, formatSpan, shortJob, shortTarget } from "../format";
import { useLive } from "../live";
import { Badge, Table, Waiting } from "../parts";
import { linkTo } from "../route";

export function QueueView() {
  const { data, error } = useLive<Queue>("queue");
  if (!data) return <Waiting error={error} />;
  return (
    <>
      <section class="panel" aria-labelledby="waiting">
        <header>
          <h2 id="waiting">Waiting</h2>
          <span class="hint">{formatCount(data.waiting)} trials, by job and target</span>
        </header>
        <Table
          label="Waiting trials"
          rows={data.lines}
          keyOf={(line) => `${line.job} ${line.target}`}
          empty="Nothing waits."
          columns={[
            {
              name: "Job",
              wide: true,
              cell: (line) => (
                <a href={linkTo("jobs", line.job)} title={line.job}>
                  {shortJob(line.job)}
                </a>
              ),
            },
            { name: "Target", cell: (line) => <span title={line.target}>{shortTarget(line.target)}</span> },
            { name: "Waiting", number: true, cell: (line) => formatCount(line.waiting) },
            { name: "Apart", number: true, cell: (line) => (line.apart ? <span title="suspects, and trials that failed somewhere">{line.apart}</span> : "") },
          ]}
        />
      </section>
      <section class="panel" aria-labelledby="leased">
        <header>
          <h2 id="leased">Leased</h2>
          <span class="hint">
            {formatCount(data.leased)} trials{data.leases.length < data.leased ? `, ${formatCount(data.leases.length)} of them here` : ""}
          </span>
        </header>
        <Table
          label="Leased trials"
          rows={data.leases}
          keyOf={(lease) => lease.trial}
          empty="No worker holds a trial."
          columns={[
            {
              name: "Trial",
              wide: true,
              cell: (lease) => (
                <a href={linkTo("jobs", lease.job)} title={lease.trial}>
                  {shortJob(lease.job)}
                  {lease.trial.slice(lease.job.length)}
                </a>
              ),
            },
            { name: "Worker", cell: (lease) => `${lease.worker} ${lease.device}` },
            { name: "State", cell: (lease) => <Badge state={lease.state} /> },
            { name: "Attempt", number: true, cell: (lease) => lease.attempt, minor: true },
            { name: "Runs out in", number: true, cell: (lease) => (lease.state === "held" ? formatSpan(Math.max(0, lease.expires_in_seconds)) : ""), minor: true },
          ]}
        />
      </section>
    </>
  );
}
