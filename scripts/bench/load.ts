import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Call } from './scenarios.ts'

/** A load on one server. */
export interface LoadPlan {
  port: number
  call: Call
  connections: number
  /** Stops after this time; calls that run then are waited for. */
  milliseconds: number
  /** Stops after this many calls, if that is sooner. */
  calls?: number
}

/** The result of a load. */
export interface LoadResult {
  calls: number
  /** Calls that failed: another status than 2xx, an answer that broke off, a connection that did. */
  failures: number
  /** Why the first of them failed; null when none did. */
  firstFailure: string | null
  milliseconds: number
  /** Milliseconds of each call to its end, and to the first byte of its body. */
  totals: number[]
  firstBytes: number[]
}

/** The bytes of the requests that calls send in turn: one, or one for each key of the call. */
export function requestsOf({ path, headers, body, keys }: Call, port: number): Buffer[] {
  const variants = keys?.map((key) => ({ ...headers, authorization: `Bearer ${key}` })) ?? [headers]
  return variants.map((variant) => {
    const lines = [
      `${methodOf(body)} ${path} HTTP/1.1`,
      `host: 127.0.0.1:${port}`,
      ...Object.entries(variant).map(([name, value]) => `${name}: ${value}`),
      ...(body === undefined ? [] : [`content-length: ${Buffer.byteLength(body)}`]),
    ]
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`)
  })
}

export const methodOf = (body: string | undefined): string => (body === undefined ? 'GET' : 'POST')

/** Runs a load in a thread of its own, so that nothing else of the bench delays what it measures. */
export function runLoad(plan: LoadPlan): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(join(import.meta.dirname, 'load-thread.ts'), { workerData: plan })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the load generator ended without a result')))
  })
}
