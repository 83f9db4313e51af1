// The server's /api/v1: types of its answers, and the call that fetches them. docs/monitoring.md describes the fields. Fields at their
// defaults are left out, so most are optional.

export interface Status {
  version: string;
  started_unix_micros: number;
  now_unix_micros: number;
  log: { name: string; bytes: number; records: number; trouble: string };
  jobs: Record<JobState, number>;
  trials: { waiting: number; leased: number };
  results: Record<string, number>;
  refused: number;
  search_crashes: number;
  devices: Record<string, number>;
}

export type JobState = "running" | "waiting" | "done" | "cancelled" | "failed";

export interface StatusCount {
  status: string;
  count: number;
}

export interface Task {
  workload_name?: string;
  workload_hash?: string;
  count?: number;
  trials?: number;
  reused?: boolean;
  best_seconds?: number;
  first_seconds?: number;
  default_final_seconds?: number;
  best_alone_seconds?: number;
  best_width?: number | string;
  outcomes?: StatusCount[];
  message?: string;
  target?: string;
  finalists?: number;
}

export interface DeviceWork {
  worker?: string;
  device?: string;
  trials?: number;
  run_seconds?: number;
}

export interface Job {
  job: string;
  name?: string;
  state?: JobState;
  message?: string;
  trouble?: string;
  target?: string;
  protocol?: string;
  owner?: string;
  priority?: number;
  elapsed_seconds?: number;
  budget_seconds?: number;
  trials?: number;
  trials_planned?: number;
  created_unix_micros?: number;
  tasks?: Task[];
  devices?: DeviceWork[];
  waiters?: number;
  is_model?: boolean;
  tasks_timed?: number;
  latency_seconds?: number;
  default_latency_seconds?: number;
  refusals?: { reason: string; points: number }[];
}

// [trial of the task, time of its record, best seconds until then]
export type BestPoint = [number, number, number];
export interface TaskConvergence {
  trials: number;
  last_unix_micros: number;
  points: BestPoint[];
}
export interface JobDetail {
  job: Job;
  convergence: TaskConvergence[];
}

export interface Candidate {
  id: number;
  trial: string;
  task?: number;
  generation?: number;
  index?: number;
  status: string;
  seconds?: number;
  final?: boolean;
  recorded_unix_micros: number;
  worker: string;
  sketch?: string;
  decisions?: Record<string, number>;
}

export interface Failure {
  id: number;
  trial: string;
  job: string;
  workload_name: string;
  target: string;
  worker: string;
  device: string;
  error: string;
  reproduction: string;
  recorded_unix_micros: number;
}
export interface FailureKind {
  status: string;
  kind: string;
  count: number;
  newest: Failure;
}

export interface Reading {
  temperature_celsius?: number;
  power_watts?: number;
  clock_mhz?: number;
  throttle?: string;
}
// [time, baseline ratio, degrees Celsius, MHz]; 0 is unknown
export type DevicePoint = [number, number, number, number];
export interface Device {
  worker: string;
  device: string;
  target?: string;
  info?: { model?: string; host?: string; driver?: string };
  state?: string;
  reason?: string;
  trouble?: string;
  leases?: number;
  trials?: number;
  baseline_ratio?: number;
  silent_seconds?: number;
  refused?: number;
  reading?: Reading;
  role?: string;
  version?: string;
  owner?: string;
  history: DevicePoint[];
}

export interface BestRecord {
  id: number;
  trial: string;
  protocol: string;
  seconds: number;
  ci_low_seconds: number;
  ci_high_seconds: number;
  pinned: boolean;
  sketch: string;
  worker: string;
  device_model: string;
  recorded_unix_micros: number;
}
export interface BestKey {
  workload_name: string;
  workload_hash: string;
  target: string;
  best: BestRecord[];
}

export interface Queue {
  waiting: number;
  leased: number;
  lines: { job: string; target: string; waiting: number; apart: number }[];
  leases: {
    trial: string;
    job: string;
    worker: string;
    device: string;
    state: string;
    attempt: number;
    expires_in_seconds: number;
  }[];
}

export interface RecordDetail {
  id: number;
  record: {
    trial: string;
    workload?: string;
    target?: string;
    trace?: string;
    result?: {
      status?: string;
      error?: string;
      reproduction?: string;
      timing?: { seconds?: number; ci_low_seconds?: number; ci_high_seconds?: number; build_seconds?: number; run_seconds?: number };
      device?: { worker?: string; device?: string; model?: string };
    };
    provenance?: { predicted_score?: number; strategy?: string };
  };
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

// The token stays with this tab.
const tokenKey = "mycc-tune-token";
export const savedToken = () => sessionStorage.getItem(tokenKey);
export function saveToken(token: string | null) {
  if (token === null) sessionStorage.removeItem(tokenKey);
  else sessionStorage.setItem(tokenKey, token);
}

export async function fetchApi<T>(path: string, signal?: AbortSignal): Promise<T> {
  const token = savedToken();
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, {
      ...(signal ? { signal } : {}),
      ...(token ? { headers: { Authorization: `Bearer ${token}` } } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The server does not answer.");
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const said = body as { error?: string } | null;
    throw new ApiError(response.status, said?.error ?? `The server answered ${response.status}.`);
  }
  return body as T;
}
