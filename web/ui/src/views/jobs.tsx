// All jobs, the newest first.
import { useState } from "preact/hooks";
import type { Job } from "../api";
import { formatAgo, formatCount, formatRatio, formatSpan, shortJob, shortTarget } from "../format";
import { useLive } from "../live";
import { Badge, Choice, Progress, Table, Waiting } from "../parts";
import { linkTo } from "../route";

export const shareOf = (job: Job): number => {
  if (job.state === "done") return 1;
  const byTrials = job.trials_planned ? (job.trials ?? 0) / job.trials_planned : 0;
  const byTime = job.budget_seconds ? (job.elapsed_seconds ?? 0) / job.budget_seconds : 0;
  return Math.max(byTrials, byTime);
};

export function Name({ job }: { job: Job }) {
  return (
    <a href={linkTo("jobs", job.job)} title={job.job}>
      {job.name || shortJob(job.job)}
    </a>
  );
}

const isOpen = (job: Job) => job.state === "running" || job.state === "waiting";

export function JobsView() {
  const { data, error } = useLive<{ jobs: Job[] }>("jobs?limit=200");
  const [which, setWhich] = useState<"all" | "open">("all");
  if (!data) return <Waiting error={error} />;
  const rows = data.jobs.filter((job) => which === "all" || isOpen(job));
  const hasOwners = rows.some((job) => job.owner);
  return (
    <section class="panel" aria-labelledby="jobs">
      <header>
        <h2 id="jobs">Jobs</h2>
        <Choice
          label="Show"
          options={[
            ["all", "all"],
            ["open", "running and waiting"],
          ]}
          value={which}
          onChange={setWhich}
        />
      </header>
      <Table
        label="Jobs"
        rows={rows}
        keyOf={(job) => job.job}
        empty={which === "all" ? "No job yet. mycc-tune tune FILE --server ADDRESS submits one." : "No job runs or waits."}
        columns={[
          { name: "Job", cell: (job) => <Name job={job} />, wide: true },
          { name: "State", cell: (job) => <Badge state={job.state ?? "waiting"} /> },
          { name: "Done", cell: (job) => <Progress share={shareOf(job)} label={`Share of ${job.name || job.job} that is done`} /> },
          {
            name: "Trials",
            number: true,
            cell: (job) => (
              <>
                {formatCount(job.trials)}
                {job.trials_planned ? <small> / {formatCount(job.trials_planned)}</small> : null}
              </>
            ),
          },
          ...(rows.some((job) => job.latency_seconds)
            ? [
                {
                  name: "Faster",
                  number: true,
                  cell: (job: Job) => (job.latency_seconds && job.default_latency_seconds ? formatRatio(job.default_latency_seconds / job.latency_seconds) : ""),
                  minor: true,
                },
              ]
            : []),
          ...(hasOwners ? [{ name: "Owner", cell: (job: Job) => job.owner ?? "", minor: true }] : []),
          ...(rows.some((job) => job.priority) ? [{ name: "Priority", number: true, cell: (job: Job) => job.priority ?? 0, minor: true }] : []),
          { name: "Target", cell: (job) => <span title={job.target}>{shortTarget(job.target)}</span>, minor: true },
          { name: "Took", number: true, cell: (job) => formatSpan(job.elapsed_seconds ?? 0), minor: true },
          { name: "Created", cell: (job) => formatAgo(job.created_unix_micros), minor: true },
          { name: "", cell: (job) => <span class="message">{job.trouble || job.message}</span>, minor: true },
        ]}
      />
    </section>
  );
}
