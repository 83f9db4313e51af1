// One job: its tasks, how they converge, and its candidates.
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Candidate, Job, JobDetail, Task } from "../api";
import { mostCandidates, useCandidates } from "../candidates";
import { Convergence } from "../convergence";
import { formatAgo, formatCount, formatRatio, formatSeconds, formatShare, formatSpan } from "../format";
import { useLive } from "../live";
import { Badge, CopyButton, Figure, Notice, Progress, Table, Waiting } from "../parts";
import { linkTo } from "../route";
import { CandidateScatter } from "../scatter";
import { TraceDialog } from "../trace";
import { shareOf } from "./jobs";

// Times of one moment compare: those of the final round where the default schedule was in it, else single timings.
const defaultSeconds = (task: Task) => task.default_final_seconds || task.first_seconds;
const comparedBest = (task: Task) => (task.default_final_seconds ? task.best_seconds : task.best_alone_seconds || task.best_seconds);
function speedup(task: Task): number {
  const [before, best] = [defaultSeconds(task), comparedBest(task)];
  return before && best ? before / best : 0;
}

// Weighted by nothing: each task counts alike.
function meanSpeedup(tasks: Task[]): number {
  const known = tasks.map(speedup).filter((ratio) => ratio > 0);
  return known.length === 0 ? 0 : Math.exp(known.reduce((sum, ratio) => sum + Math.log(ratio), 0) / known.length);
}

const failuresOf = (task: Task) => (task.outcomes ?? []).filter(({ status }) => status !== "ok").reduce((sum, { count }) => sum + count, 0);

export function Summary({ job }: { job: Job }) {
  const tasks = job.tasks ?? [];
  const failures = tasks.reduce((sum, task) => sum + failuresOf(task), 0);
  const trials = job.trials ?? 0;
  const faster = job.latency_seconds && job.default_latency_seconds ? job.default_latency_seconds / job.latency_seconds : meanSpeedup(tasks);
  return (
    <dl class="figures" aria-label="The job now">
      <Figure label={job.is_model ? "Model faster" : "Faster (mean)"} value={formatRatio(faster)} detail={job.latency_seconds ? formatSeconds(job.latency_seconds) : "than default"} />
      <Figure label="Trials" value={formatCount(trials)} detail={job.trials_planned ? `of ${formatCount(job.trials_planned)}` : ""} />
      <Figure label="Failed" value={trials > 0 ? formatShare(failures / trials) : "–"} detail={formatCount(failures)} />
      <Figure label="Took" value={formatSpan(job.elapsed_seconds ?? 0)} detail={job.budget_seconds ? `of ${formatSpan(job.budget_seconds)}` : ""} />
      <Figure label="Tasks timed" value={`${formatCount(job.tasks_timed)} / ${formatCount(tasks.length)}`} />
    </dl>
  );
}

function Outcomes({ task }: { task: Task }) {
  const outcomes = task.outcomes ?? [];
  const all = outcomes.reduce((sum, { count }) => sum + count, 0);
  if (all === 0) return null;
  const text = outcomes.map(({ status, count }) => `${count} ${status.replaceAll("_", " ")}`).join(", ");
  return (
    <span class="outcomes" title={text} role="img" aria-label={text}>
      {outcomes.map(({ status, count }) => (
        <span key={status} class={status === "ok" ? "good" : "bad"} style={{ flexGrow: count }} />
      ))}
    </span>
  );
}

export function Tasks({ tasks, selected, onSelect }: { tasks: Task[]; selected: number | null; onSelect: (task: number | null) => void }) {
  const rows = tasks.map((task, number) => ({ task, number }));
  return (
    <section class="panel" aria-labelledby="tasks">
      <header>
        <h2 id="tasks">Tasks</h2>
        <span class="hint">a task's name shows its candidates alone</span>
        {selected === null ? null : (
          <button type="button" class="small" onClick={() => onSelect(null)}>
            Show all
          </button>
        )}
      </header>
      <Table
        label="Tasks"
        rows={rows}
        keyOf={({ number }) => number}
        empty="The tasks are not there yet."
        isSelected={({ number }) => number === selected}
        columns={[
          {
            name: "Task",
            wide: true,
            cell: ({ task, number }) => (
              <button type="button" class="link" aria-pressed={number === selected} onClick={() => onSelect(number === selected ? null : number)}>
                {task.workload_name || `task ${number}`}
              </button>
            ),
          },
          { name: "Best", number: true, cell: ({ task }) => <strong>{formatSeconds(task.best_seconds)}</strong> },
          { name: "Default", number: true, cell: ({ task }) => formatSeconds(defaultSeconds(task)), minor: true },
          { name: "Faster", number: true, cell: ({ task }) => formatRatio(speedup(task)) },
          { name: "Trials", number: true, cell: ({ task }) => formatCount(task.trials) },
          { name: "Outcomes", cell: ({ task }) => <Outcomes task={task} />, minor: true },
          { name: "Count", number: true, cell: ({ task }) => task.count ?? 1, minor: true },
          { name: "", cell: ({ task }) => <span class="message">{task.message || (task.reused ? "known from the log" : "")}</span>, minor: true },
        ]}
      />
    </section>
  );
}

// The points of the scatter without a pointer.
export function Fastest({ candidates, onChoose }: { candidates: Candidate[]; onChoose: (candidate: Candidate) => void }) {
  const rows = useMemo(
    () =>
      candidates
        .filter((candidate) => candidate.seconds !== undefined && !candidate.final)
        .sort((a, b) => (a.seconds ?? 0) - (b.seconds ?? 0))
        .slice(0, 10),
    [candidates],
  );
  return (
    <section class="panel" aria-labelledby="fastest">
      <header>
        <h2 id="fastest">Fastest candidates</h2>
      </header>
      <Table
        label="Fastest candidates"
        rows={rows}
        keyOf={(candidate) => candidate.id}
        empty="No valid result yet."
        columns={[
          { name: "Time", number: true, cell: (candidate) => formatSeconds(candidate.seconds) },
          {
            name: "Schedule",
            wide: true,
            cell: (candidate) => (
              <button type="button" class="link code" onClick={() => onChoose(candidate)}>
                {[candidate.sketch ?? "trace", ...Object.entries(candidate.decisions ?? {}).map(([name, value]) => `${name}=${value}`)].join(" ")}
              </button>
            ),
          },
          { name: "Generation", number: true, cell: (candidate) => candidate.generation ?? "", minor: true },
          { name: "Worker", cell: (candidate) => candidate.worker, minor: true },
          { name: "When", cell: (candidate) => formatAgo(candidate.recorded_unix_micros), minor: true },
        ]}
      />
    </section>
  );
}

function DeviceShare({ job }: { job: Job }) {
  const devices = job.devices ?? [];
  if (devices.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="job-devices">
      <header>
        <h2 id="job-devices">Devices that measured for it</h2>
      </header>
      <Table
        label="Devices of the job"
        rows={devices}
        keyOf={(device) => `${device.worker} ${device.device}`}
        empty=""
        columns={[
          { name: "Worker", wide: true, cell: (device) => device.worker },
          { name: "Device", cell: (device) => device.device },
          { name: "Trials", number: true, cell: (device) => formatCount(device.trials) },
          { name: "Ran", number: true, cell: (device) => formatSpan(device.run_seconds ?? 0) },
        ]}
      />
    </section>
  );
}

// Why points of the tasks' spaces did not become candidates.
function Refusals({ job }: { job: Job }) {
  const refusals = job.refusals ?? [];
  if (refusals.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="refusals">
      <header>
        <h2 id="refusals">Points that died</h2>
        <span class="hint">refused before they were measured</span>
      </header>
      <Table
        label="Points that died"
        rows={refusals}
        keyOf={({ reason }) => reason}
        empty=""
        columns={[
          { name: "Points", number: true, cell: ({ points }) => formatCount(points) },
          { name: "Why", wide: true, cell: ({ reason }) => <span class="message">{reason}</span> },
        ]}
      />
    </section>
  );
}

export function JobView({ id }: { id: string }) {
  const { data, error } = useLive<JobDetail>(`jobs/${encodeURIComponent(id)}`);
  const [task, setTask] = useState<number | null>(null);
  const [record, setRecord] = useState<number | null>(null);
  const { candidates, error: candidatesError } = useCandidates(id, task);
  const choose = useCallback((candidate: Candidate) => setRecord(candidate.id), []);
  if (!data) return <Waiting error={error} />;
  const { job } = data;
  const tasks = job.tasks ?? [];
  const total = task === null ? (job.trials ?? 0) : (tasks[task]?.trials ?? 0);
  return (
    <>
      <div class="title">
        <h1>{job.name || job.job}</h1>
        <Badge state={job.state ?? "waiting"} />
        {job.state === "running" ? <Progress share={shareOf(job)} label="Share of the job that is done" /> : null}
        <span class="hint">
          <code>{job.job}</code> <CopyButton text={job.job} label="Copy the job's id" />
        </span>
        {job.owner ? <span class="hint">by {job.owner}</span> : null}
        <a class="hint" href={linkTo("failures", job.job)}>
          its failures
        </a>
      </div>
      <p class="hint target">{job.target}</p>
      {job.trouble ? <Notice tone="bad">{job.trouble}</Notice> : null}
      {job.message ? <Notice tone={job.state === "failed" ? "bad" : "quiet"}>{job.message}</Notice> : null}
      <Summary job={job} />
      <div class="pair">
        <Convergence detail={data} task={task} />
        <Tasks tasks={tasks} selected={task} onSelect={setTask} />
      </div>
      {candidatesError ? <Notice tone="bad">{candidatesError}</Notice> : null}
      <CandidateScatter candidates={candidates} total={candidates.length < mostCandidates ? candidates.length : total} onChoose={choose} />
      <Fastest candidates={candidates} onChoose={choose} />
      <DeviceShare job={job} />
      <Refusals job={job} />
      {record === null ? null : <TraceDialog id={record} onClose={() => setRecord(null)} />}
    </>
  );
}
