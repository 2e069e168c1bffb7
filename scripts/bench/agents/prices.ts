/** A list price, beyond what a plan includes. */
export interface ListPrice {
  dollars: number
  /** How many units it is for. */
  per: number
  source: string
  /** When the source was read. */
  read: string
}

const MILLION = 1_000_000
const OBJECTS = 'https://developers.cloudflare.com/durable-objects/platform/pricing/'
/** Workflows are billed as Workers are. */
const WORKERS = 'https://developers.cloudflare.com/workflows/reference/pricing/'

/** What an agent's turn is billed by. */
export const PRICES = {
  workerRequests: { dollars: 0.3, per: MILLION, source: WORKERS, read: '2026-11-23' },
  /** Milliseconds. */
  workerCpu: { dollars: 0.02, per: MILLION, source: WORKERS, read: '2026-11-23' },
  /** Alarms count as requests. */
  objectRequests: { dollars: 0.15, per: MILLION, source: OBJECTS, read: '2026-11-21' },
  /** Gigabyte-seconds: an object is billed as 0.128 GB while it is active. */
  objectDuration: { dollars: 12.5, per: MILLION, source: OBJECTS, read: '2026-11-21' },
  objectRows: { dollars: 1, per: MILLION, source: OBJECTS, read: '2026-11-21' },
  qstashMessages: {
    dollars: 1,
    per: 100_000,
    source: 'https://upstash.com/pricing/qstash',
    read: '2026-11-21',
  },
  redisCommands: {
    dollars: 0.2,
    per: 100_000,
    source: 'https://upstash.com/docs/redis/overall/billing',
    read: '2026-11-21',
  },
  /** Hours of one compute unit (1 vCPU, 4 GB). Neon bills the time that a compute is active, and no statements. */
  postgresCompute: {
    dollars: 0.106,
    per: 1,
    source: 'https://neon.com/faqs/managed-postgres-options-ten-databases-cost',
    read: '2026-11-23',
  },
} as const satisfies Record<string, ListPrice>

export type PricedUnit = keyof typeof PRICES

/** Dollars of an amount. */
export const costOf = (unit: PricedUnit, amount: number): number =>
  (PRICES[unit].dollars / PRICES[unit].per) * amount
