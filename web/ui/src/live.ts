// Answers of the server that renew themselves while the tab is looked at.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, fetchApi, saveToken } from "./api";

export interface Live<T> {
  data: T | null;
  error: string | null;
}

// Called when the server asks for a token.
let onUnauthorized: () => void = () => undefined;
export function listenForLogin(listener: () => void) {
  onUnauthorized = listener;
}

export function reportFailure(error: unknown): string {
  if (error instanceof ApiError && error.status === 401) {
    saveToken(null);
    onUnauthorized();
  }
  return error instanceof Error ? error.message : String(error);
}

// Calls `read` now and then again `seconds` after each answer, while the tab is visible, until the component goes or `key` changes.
export function usePolling(key: string, seconds: number, read: (signal: AbortSignal) => Promise<void>) {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const abort = new AbortController();
    let timer: number | undefined;
    let reading = false;
    const turn = async () => {
      window.clearTimeout(timer);
      if (reading || document.hidden) return;
      reading = true;
      await latest.current(abort.signal);
      reading = false;
      if (!abort.signal.aborted) timer = window.setTimeout(turn, seconds * 1000);
    };
    const onVisible = () => void turn();
    document.addEventListener("visibilitychange", onVisible);
    void turn();
    return () => {
      abort.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [key, seconds]);
}

// The answer at a path. The last one stays while the server does not answer.
export function useLive<T>(path: string, seconds = 2): Live<T> {
  const [live, setLive] = useState<Live<T> & { path: string }>({ data: null, error: null, path });
  usePolling(path, seconds, async (signal) => {
    try {
      const data = await fetchApi<T>(path, signal);
      setLive({ data, error: null, path });
    } catch (error) {
      if (signal.aborted) return;
      const said = reportFailure(error);
      setLive((last) => ({ data: last.path === path ? last.data : null, error: said, path }));
    }
  });
  return live.path === path ? live : { data: null, error: null };
}
