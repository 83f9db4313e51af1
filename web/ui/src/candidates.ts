// The newest candidates of a job, which grow as results come.
import { useEffect, useRef, useState } from "preact/hooks";
import { fetchApi, type Candidate } from "./api";
import { reportFailure, usePolling } from "./live";

const aPage = 2500;
export const mostCandidates = 10000;

interface Page {
  candidates: Candidate[];
}

async function readNewest(base: string, signal: AbortSignal): Promise<Candidate[]> {
  let found: Candidate[] = [];
  while (found.length < mostCandidates) {
    const before = found[0] ? `&before=${found[0].id}` : "";
    const { candidates } = await fetchApi<Page>(`${base}limit=${aPage}${before}`, signal);
    found = [...candidates, ...found];
    if (candidates.length < aPage) break;
  }
  return found;
}

async function readLater(base: string, known: Candidate[], signal: AbortSignal): Promise<Candidate[]> {
  let found = known;
  while (true) {
    const last = found.at(-1)?.id ?? 0;
    const { candidates } = await fetchApi<Page>(`${base}limit=${aPage}&after=${last}`, signal);
    if (candidates.length > 0) found = [...found, ...candidates].slice(-mostCandidates);
    if (candidates.length < aPage) return found;
  }
}

export function useCandidates(job: string, task: number | null): { candidates: Candidate[]; error: string | null } {
  const base = `jobs/${encodeURIComponent(job)}/candidates?${task === null ? "" : `task=${task}&`}`;
  const [state, setState] = useState<{ base: string; candidates: Candidate[]; error: string | null }>({ base, candidates: [], error: null });
  const known = useRef<Candidate[] | null>(null);
  useEffect(() => {
    known.current = null;
  }, [base]);
  usePolling(base, 2, async (signal) => {
    try {
      const last = known.current;
      const candidates = last ? await readLater(base, last, signal) : await readNewest(base, signal);
      if (candidates === last || signal.aborted) return;
      known.current = candidates;
      setState({ base, candidates, error: null });
    } catch (error) {
      if (!signal.aborted) setState({ base, candidates: known.current ?? [], error: reportFailure(error) });
    }
  });
  return state.base === base ? state : { candidates: [], error: null };
}
