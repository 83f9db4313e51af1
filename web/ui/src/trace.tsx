// One record: its trace, and what it takes to run it again.
import { useEffect, useRef, useState } from "preact/hooks";
import { fetchApi, type RecordDetail } from "./api";
import { formatSeconds } from "./format";
import { reportFailure } from "./live";
import { Badge, CopyButton, Waiting } from "./parts";

export function TraceDialog({ id, onClose }: { id: number; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [detail, setDetail] = useState<RecordDetail | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  useEffect(() => {
    const abort = new AbortController();
    setDetail(null);
    fetchApi<RecordDetail>(`records/${id}`, abort.signal)
      .then(setDetail)
      .catch((failure: unknown) => {
        if (!abort.signal.aborted) setError(reportFailure(failure));
      });
    return () => abort.abort();
  }, [id]);
  const result = detail?.record.result;
  return (
    <dialog ref={dialog} onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()} aria-label="Record">
      <header>
        <h2>{detail?.record.trial ?? `record ${id}`}</h2>
        <button type="button" class="small" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {detail && result ? (
        <>
          <p class="facts">
            <Badge state={result.status ?? "unknown"} />
            {result.timing?.seconds ? <strong>{formatSeconds(result.timing.seconds)}</strong> : null}
            {result.timing?.ci_low_seconds ? (
              <span class="hint">
                {formatSeconds(result.timing.ci_low_seconds)} to {formatSeconds(result.timing.ci_high_seconds)}
              </span>
            ) : null}
            <span>
              {result.device?.worker} {result.device?.device}
            </span>
          </p>
          {result.error ? <pre class="error">{result.error}</pre> : null}
          {result.reproduction ? <Snippet title="Reproduction" text={result.reproduction} /> : null}
          <Snippet title="Trace" text={detail.record.trace ?? ""} />
          <Snippet title="Workload" text={detail.record.workload ?? ""} />
        </>
      ) : (
        <Waiting error={error} />
      )}
    </dialog>
  );
}

export function Snippet({ title, text }: { title: string; text: string }) {
  return (
    <div class="snippet">
      <header>
        <h3>{title}</h3>
        <CopyButton text={text} label={`Copy ${title.toLowerCase()}`} />
      </header>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}
