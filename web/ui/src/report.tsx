// A job's report: one file without a server behind it. Its data stands in the page, as mycc_tune/job_report.cc writes it.
import { render, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Candidate, FailureKind, JobDetail } from "./api";
import { Convergence } from "./convergence";
import { formatCount, formatRatio, formatSeconds, formatSpan, formatTime, shortTarget, words } from "./format";
import { Badge, Choice, CopyButton, Notice, Table } from "./parts";
import { CandidateScatter } from "./scatter";
import "./style.css";
import { ThemeButton } from "./theme_button";
import { Fastest, Summary, Tasks } from "./views/job";

interface DecisionValue {
  value: string;
  candidates: number;
  failed: number;
  best_seconds: number | null;
  best_without_seconds: number | null;
}
interface Decision {
  task: number;
  decision: string;
  chosen: string;
  without: number | null;
  values: DecisionValue[];
}
interface Refusal {
  reason: string;
  points: number;
}
interface Generation {
  task: number;
  generation: number;
  elapsed_seconds: number;
  candidates: number;
  measured: number;
  failures: Record<string, number>;
  best_seconds: number | null;
  refused: number;
  refusals: Refusal[];
}
interface Finalist {
  task: number;
  id: number;
  seconds: number;
  ci_low_seconds: number;
  ci_high_seconds: number;
  rank_seconds: number;
  sketch: string;
}
interface DeviceInfo {
  worker?: string;
  device?: string;
  host?: string;
  model?: string;
  driver?: string;
  [key: string]: unknown;
}
interface Report extends JobDetail {
  version: string;
  candidates: Candidate[];
  decisions: Decision[];
  failures: FailureKind[];
  generations: Generation[];
  final: Finalist[];
  devices: DeviceInfo[];
}

const seconds = (value: number | null | undefined) => formatSeconds(value ?? undefined);
const sum = <Row,>(rows: Row[], of: (row: Row) => number) => rows.reduce((total, row) => total + of(row), 0);
const isShown = (task: number | null) => (row: { task: number }) => task === null || row.task === task;

function Panel({ id, title, hint, children }: { id: string; title: string; hint?: string; children: ComponentChildren }) {
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {hint ? <span class="hint">{hint}</span> : null}
      </header>
      {children}
    </section>
  );
}

function Decisions({ decisions, nameOf }: { decisions: Decision[]; nameOf: (task: number) => string }) {
  const [open, setOpen] = useState<string | null>(null);
  const keyOf = (decision: Decision) => `${decision.task} ${decision.decision}`;
  const chosen = decisions.find((decision) => keyOf(decision) === open);
  const several = new Set(decisions.map(({ task }) => task)).size > 1;
  return (
    <Panel id="decisions" title="What each decision was worth" hint="the fastest candidate without the best one's value, over the best (–: the best has no such decision); a decision's name shows all of its values">
      <Table
        label="Decisions"
        rows={decisions}
        keyOf={keyOf}
        empty="No decision took two values."
        isSelected={(decision) => keyOf(decision) === open}
        columns={[
          ...(several ? [{ name: "Task", cell: (decision: Decision) => nameOf(decision.task) }] : []),
          {
            name: "Decision",
            wide: true,
            cell: (decision) => (
              <button type="button" class="link code" aria-expanded={keyOf(decision) === open} onClick={() => setOpen(keyOf(decision) === open ? null : keyOf(decision))}>
                {decision.decision}
              </button>
            ),
          },
          { name: "Best has", number: true, cell: (decision) => decision.chosen || "–" },
          { name: "Without it", number: true, cell: (decision) => <strong>{formatRatio(decision.without ?? undefined)}</strong> },
          { name: "Values", number: true, cell: (decision) => decision.values.length, minor: true },
          { name: "Candidates", number: true, cell: (decision) => formatCount(sum(decision.values, (value) => value.candidates)), minor: true },
        ]}
      />
      {chosen ? (
        <>
          <h3>
            {chosen.decision}
            {several ? ` of ${nameOf(chosen.task)}` : ""}
          </h3>
          <Table
            label={`Values of ${chosen.decision}`}
            rows={chosen.values}
            keyOf={(value) => value.value}
            empty=""
            isSelected={(value) => value.value === chosen.chosen}
            columns={[
              { name: "Value", number: true, cell: (value) => value.value },
              { name: "Best with it", number: true, cell: (value) => seconds(value.best_seconds) },
              { name: "Best without it", number: true, cell: (value) => seconds(value.best_without_seconds) },
              { name: "Candidates", number: true, cell: (value) => formatCount(value.candidates) },
              { name: "Failed", number: true, cell: (value) => formatCount(value.failed) },
            ]}
          />
        </>
      ) : null}
    </Panel>
  );
}

function Failures({ kinds }: { kinds: FailureKind[] }) {
  return (
    <Panel id="failures" title="Failures by kind" hint="with the newest of each">
      {kinds.length === 0 ? <p class="empty">Nothing failed.</p> : null}
      {kinds.map(({ status, kind, count, newest }) => (
        <article class="kind" key={`${status} ${kind}`}>
          <header>
            <strong class="count">{formatCount(count)}</strong>
            <Badge state={status} tone="bad" />
            <h3>{newest.error.split("\n")[0] || "no words"}</h3>
          </header>
          <p class="hint">
            newest: record {newest.id}, {newest.workload_name} on {newest.worker || "no worker"} {newest.device}
          </p>
          {newest.error.includes("\n") ? (
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
      ))}
    </Panel>
  );
}

function refusalsOf(generations: Generation[]): Refusal[] {
  const points = new Map<string, number>();
  for (const { refusals } of generations) {
    for (const refusal of refusals) points.set(refusal.reason, (points.get(refusal.reason) ?? 0) + refusal.points);
  }
  return [...points].map(([reason, points]) => ({ reason, points })).sort((a, b) => b.points - a.points || (a.reason < b.reason ? -1 : 1));
}

function Generations({ generations, nameOf }: { generations: Generation[]; nameOf: (task: number) => string }) {
  const [shown, setShown] = useState<"reasons" | "generations">("reasons");
  const several = new Set(generations.map(({ task }) => task)).size > 1;
  const failures = ({ failures }: Generation) => Object.entries(failures).map(([status, count]) => `${count} ${words(status)}`).join(", ") || "–";
  const first = ({ refusals }: Generation) => refusals.map(({ points, reason }) => `${formatCount(points)} ${reason}`).join("; ") || "–";
  return (
    <section class="panel" aria-labelledby="generations">
      <header>
        <h2 id="generations">Points that died</h2>
        <span class="hint">
          {formatCount(sum(generations, ({ refused }) => refused))} points of the spaces were refused before they were measured
        </span>
        <Choice
          label="By"
          options={[
            ["reasons", "reasons"],
            ["generations", "generations"],
          ]}
          value={shown}
          onChange={setShown}
        />
      </header>
      {shown === "reasons" ? (
        <Table
          label="Reasons"
          rows={refusalsOf(generations)}
          keyOf={({ reason }) => reason}
          empty="No point was refused, or the log is of a build that did not count them."
          columns={[
            { name: "Points", number: true, cell: ({ points }) => formatCount(points) },
            { name: "Why they were refused", wide: true, cell: ({ reason }) => <span class="message">{reason}</span> },
          ]}
        />
      ) : (
        <Table
          label="Generations"
          rows={generations}
          keyOf={({ task, generation }) => `${task}/${generation}`}
          empty="The log has no generations any more."
          columns={[
            ...(several ? [{ name: "Task", cell: ({ task }: Generation) => nameOf(task) }] : []),
            { name: "Generation", number: true, cell: ({ generation }) => generation },
            { name: "At", number: true, cell: ({ elapsed_seconds }) => formatSpan(elapsed_seconds), minor: true },
            { name: "Candidates", number: true, cell: ({ candidates }) => formatCount(candidates) },
            { name: "Best", number: true, cell: ({ best_seconds }) => seconds(best_seconds) },
            { name: "Failed", cell: failures, minor: true },
            { name: "Refused", number: true, cell: ({ refused }) => formatCount(refused) },
            { name: "Why", wide: true, cell: (generation) => <span class="message">{first(generation)}</span>, minor: true },
          ]}
        />
      )}
    </section>
  );
}

function FinalRound({ finalists, nameOf }: { finalists: Finalist[]; nameOf: (task: number) => string }) {
  if (finalists.length === 0) return null;
  return (
    <Panel id="final" title="Final round" hint="the leaders of each task, timed in turn; the first of a task won">
      <Table
        label="Final round"
        rows={finalists}
        keyOf={({ id }) => id}
        empty=""
        columns={[
          { name: "Task", cell: ({ task }) => nameOf(task) },
          { name: "Time", number: true, cell: ({ seconds }) => <strong>{formatSeconds(seconds)}</strong> },
          {
            name: "Interval",
            number: true,
            cell: (finalist) => `${formatSeconds(finalist.ci_low_seconds)} to ${formatSeconds(finalist.ci_high_seconds)}`,
            minor: true,
          },
          { name: "Ranks by", number: true, cell: ({ rank_seconds }) => formatSeconds(rank_seconds), minor: true },
          { name: "Record", number: true, cell: ({ id }) => id },
          { name: "Schedule", wide: true, cell: ({ sketch }) => <code>{sketch}</code>, minor: true },
        ]}
      />
    </Panel>
  );
}

const plain = (value: unknown) => (typeof value === "number" ? value.toLocaleString("en") : String(value));

function Devices({ report }: { report: Report }) {
  const workOf = (device: DeviceInfo) => (report.job.devices ?? []).find((work) => work.worker === device.worker && work.device === device.device);
  return (
    <Panel id="devices" title="Devices that measured">
      {report.devices.map((device) => {
        const work = workOf(device);
        const facts = Object.entries(device).filter(([name, value]) => !["worker", "device", "model"].includes(name) && typeof value !== "object");
        return (
          <article class="kind" key={`${device.worker} ${device.device}`}>
            <header>
              <h3>
                {device.worker} {device.device}
              </h3>
              <span>{device.model}</span>
              {work ? (
                <span class="hint">
                  {formatCount(work.trials)} trials, ran {formatSpan(work.run_seconds ?? 0)}
                </span>
              ) : null}
            </header>
            <p class="hint">{facts.map(([name, value]) => `${words(name)} ${plain(value)}`).join(", ")}</p>
          </article>
        );
      })}
    </Panel>
  );
}

function Chosen({ candidate, onClose }: { candidate: Candidate; onClose: () => void }) {
  const command = `mycc-tune log show ${candidate.id}`;
  return (
    <section class="panel" aria-labelledby="chosen">
      <header>
        <h2 id="chosen">Record {candidate.id}</h2>
        <Badge state={candidate.status} />
        <strong>{candidate.seconds ? formatSeconds(candidate.seconds) : ""}</strong>
        <span class="hint">{candidate.trial}</span>
        <button type="button" class="small" onClick={onClose}>
          Close
        </button>
      </header>
      <p>
        <code>{[candidate.sketch ?? "", ...Object.entries(candidate.decisions ?? {}).map(([name, value]) => `${name}=${value}`)].join(" ")}</code>
      </p>
      <div class="reproduction">
        <code tabIndex={0}>{command}</code>
        <CopyButton text={command} label="Copy the command" />
      </div>
    </section>
  );
}

function View({ report }: { report: Report }) {
  const { job } = report;
  const [task, setTask] = useState<number | null>(null);
  const [chosen, setChosen] = useState<Candidate | null>(null);
  const tasks = job.tasks ?? [];
  const nameOf = (number: number) => tasks[number]?.workload_name || `task ${number}`;
  const candidates = useMemo(() => report.candidates.filter((candidate) => task === null || candidate.task === task), [task]);
  return (
    <>
      <header class="top">
        <span class="name">mycc-tune</span>
        <span class="live hint">report by version {report.version}</span>
        <ThemeButton />
      </header>
      <main>
        <div class="title">
          <h1>{job.name || job.job}</h1>
          <Badge state={job.state ?? "waiting"} />
          <span class="hint">
            <code>{job.job}</code> <CopyButton text={job.job} label="Copy the job's id" />
          </span>
          {job.owner ? <span class="hint">by {job.owner}</span> : null}
          {job.created_unix_micros ? <span class="hint">begun {formatTime(job.created_unix_micros)}</span> : null}
        </div>
        <p class="hint target">{job.target || [...new Set(tasks.map((row) => shortTarget(row.target)))].join(", ")}</p>
        {job.message ? <Notice tone={job.state === "failed" ? "bad" : "quiet"}>{job.message}</Notice> : null}
        <Summary job={job} />
        <div class="pair">
          <Convergence detail={report} task={task} />
          <Tasks tasks={tasks} selected={task} onSelect={setTask} />
        </div>
        <CandidateScatter candidates={candidates} total={candidates.length} onChoose={setChosen} />
        {chosen ? <Chosen candidate={chosen} onClose={() => setChosen(null)} /> : null}
        <FinalRound finalists={report.final.filter(isShown(task))} nameOf={nameOf} />
        <Decisions decisions={report.decisions.filter(isShown(task))} nameOf={nameOf} />
        <Fastest candidates={candidates} onChoose={setChosen} />
        <Failures kinds={report.failures} />
        <Generations generations={report.generations.filter(isShown(task))} nameOf={nameOf} />
        <Devices report={report} />
      </main>
    </>
  );
}

const data = document.getElementById("report-data");
const place = document.getElementById("app");
if (data && place) {
  const report = JSON.parse(data.textContent ?? "") as Report;
  document.title = `${report.job.name || report.job.job}: mycc-tune report`;
  render(<View report={report} />, place);
}
