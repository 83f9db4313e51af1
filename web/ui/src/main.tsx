// The page: a bar with the state of the server, and one of the views under it.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Status } from "./api";
import { formatBytes, formatCount, formatSpan } from "./format";
import { listenForLogin, useLive } from "./live";
import { Login } from "./login";
import { Badge, Figure, Notice } from "./parts";
import { useRate } from "./rate";
import { linkTo, route } from "./route";
import { useStore } from "./store";
import "./style.css";
import { ThemeButton } from "./theme_button";
import { BestView } from "./views/best";
import { DevicesView } from "./views/devices";
import { FailuresView } from "./views/failures";
import { JobView } from "./views/job";
import { JobsView } from "./views/jobs";
import { QueueView } from "./views/queue";

const views: readonly [string, string][] = [
  ["jobs", "Jobs"],
  ["queue", "Queue"],
  ["devices", "Devices"],
  ["failures", "Failures"],
  ["best", "Best"],
];

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((a, b) => a + b, 0);

function Overview({ status }: { status: Status }) {
  const results = sum(status.results);
  const failed = results - (status.results["ok"] ?? 0);
  const rate = useRate(results);
  const devices = sum(status.devices);
  const draining = status.devices["draining"] ?? 0;
  return (
    <dl class="figures" aria-label="The server now">
      <Figure label="Jobs running" value={formatCount(status.jobs.running)} detail={status.jobs.waiting > 0 ? `${status.jobs.waiting} waiting` : ""} />
      <Figure label="Results a minute" value={rate === null ? "–" : formatCount(Math.round(rate * 60))} />
      <Figure label="Trials waiting" value={formatCount(status.trials.waiting)} detail={`${formatCount(status.trials.leased)} leased`} />
      <Figure
        label="Devices busy"
        value={`${formatCount(status.devices["busy"])} / ${formatCount(devices)}`}
        detail={draining > 0 ? `${draining} draining` : ""}
        tone={draining > 0 ? "warn" : ""}
      />
      <Figure label="Failed" value={results > 0 ? `${((100 * failed) / results).toFixed(1)} %` : "–"} detail="since the start" />
      <Figure label="Log" value={formatBytes(status.log.bytes)} detail={`${formatCount(status.log.records)} records`} tone={status.log.trouble ? "bad" : ""} />
    </dl>
  );
}

function View() {
  const { view, id } = useStore(route);
  if (view === "jobs" && id) return <JobView key={id} id={id} />;
  if (view === "jobs") return <JobsView />;
  if (view === "queue") return <QueueView />;
  if (view === "devices") return <DevicesView />;
  if (view === "failures") return <FailuresView job={id} />;
  if (view === "best") return <BestView />;
  return <Notice tone="warn">There is no view of this name.</Notice>;
}

function Page() {
  const { data: status, error } = useLive<Status>("status");
  const { view } = useStore(route);
  return (
    <>
      <header class="top">
        <a class="name" href={linkTo("jobs")}>
          mycc-tune
        </a>
        <nav aria-label="Views">
          {views.map(([word, text]) => (
            <a key={word} href={linkTo(word)} {...(word === view ? { "aria-current": "page" as const } : {})}>
              {text}
            </a>
          ))}
        </nav>
        <span class="live" title={status ? `version ${status.version}` : ""}>
          {error ? <Badge state="no answer" tone="bad" /> : status ? <Badge state="live" tone="good" /> : null}
          {status ? <span class="hint">up {formatSpan((status.now_unix_micros - status.started_unix_micros) / 1e6)}</span> : null}
        </span>
        <ThemeButton />
      </header>
      <main>
        {error ? <Notice tone="bad">{error}</Notice> : null}
        {status?.log.trouble ? <Notice tone="bad">The log cannot be written: {status.log.trouble}</Notice> : null}
        {status ? <Overview status={status} /> : null}
        <View />
      </main>
    </>
  );
}

function App() {
  const [asksForToken, setAsksForToken] = useState(false);
  useEffect(() => listenForLogin(() => setAsksForToken(true)), []);
  return asksForToken ? <Login onDone={() => setAsksForToken(false)} /> : <Page />;
}

const place = document.getElementById("app");
if (place) render(<App />, place);
