/** A list price beyond what a plan includes. */
interface ListPrice {
  dollars: number
  /** Units that it is for. */
  per: number
  source: string
}

/** When the sources were read. */
export const PRICES_READ = '2026-11-21'

const MILLION = 1_000_000
const OBJECTS = 'https://developers.cloudflare.com/durable-objects/platform/pricing/'
const BUCKETS = 'https://developers.cloudflare.com/r2/pricing/'
const WORKERS = 'https://developers.cloudflare.com/workers/platform/pricing/'

/** Every price that the bench and the documents calculate with. */
export const LIST_PRICES = {
  workerRequests: { dollars: 0.3, per: MILLION, source: WORKERS },
  /** Milliseconds of processor time. */
  workerCpu: { dollars: 0.02, per: MILLION, source: WORKERS },
  /** Calls of objects, and alarms. */
  objectRequests: { dollars: 0.15, per: MILLION, source: OBJECTS },
  /** Seconds in which an object has work: 0.128 GB, at $12.50 for a million GB-s. Waiting to hibernate is not billed. */
  objectSeconds: { dollars: 12.5 * 0.128, per: MILLION, source: OBJECTS },
  /** Rows written, overwritten and deleted, and alarms that are set. */
  objectRowsWritten: { dollars: 1, per: MILLION, source: OBJECTS },
  objectRowsRead: { dollars: 0.001, per: MILLION, source: OBJECTS },
  /** Operations of R2 of class A: put, list, begin an upload of parts. */
  bucketWrites: { dollars: 4.5, per: MILLION, source: BUCKETS },
  /** Class B: get, head. */
  bucketReads: { dollars: 0.36, per: MILLION, source: BUCKETS },
  /** Bytes of Neon's answers; what is sent to it is free, its computing a base cost by the hour. */
  postgresReceived: { dollars: 0.1, per: 1_000_000_000, source: 'https://neon.com/docs/introduction/plans' },
  queueMessages: { dollars: 1, per: 100_000, source: 'https://upstash.com/pricing/qstash' },
  redisCommands: { dollars: 0.2, per: 100_000, source: 'https://upstash.com/docs/redis/overall/billing' },
} as const satisfies Record<string, ListPrice>

export type PricedUnit = keyof typeof LIST_PRICES

/** Dollars for a number of units. */
export const dollarsOf = (unit: PricedUnit, units: number): number =>
  (LIST_PRICES[unit].dollars / LIST_PRICES[unit].per) * units
