import { expect, vi } from 'vitest'
import { query } from '../../harness/gateway.ts'
import type { GatewayAddress } from '../../harness/start-gateway.ts'
import type { Tenant } from '../../harness/tenant.ts'
import type { Random } from './random.ts'

/** Trials of each fault: `npm run test:faults -- --response-fault-runs 1000`. */
export const RUNS = Number(process.env.RESPONSE_FAULT_RUNS || 200)
/** Each repeats everything with other random numbers. */
export const RESPONSE_SEEDS = Array.from(
  { length: Number(process.env.RESPONSE_FAULT_SEEDS || 1) },
  (_, index) => index + 1,
)

const CANNED = 'This is the scripted answer, with an é and a 🦉.'
const MODELS = ['scripted-chat', 'scripted-messages']

/** An answer of the scripted upstream. */
export interface Scripted {
  model: string
  input: string
  /** The complete text of the model. */
  text: string
}

/** An answer of random length and speed, and in random pieces. @param most milliseconds that it may take. */
export function someAnswer(random: Random, most: number): Scripted {
  const model = random.pick(MODELS)
  if (random.chance(0.2)) {
    const script = random.pick(['canned', 'split-frames', 'crlf', 'unknown-fields'])
    return { model, input: `script:${script}`, text: CANNED }
  }
  const tokens = random.integer(1, 60)
  const delay = random.integer(0, Math.min(40, Math.floor(most / tokens)))
  return { model, input: `script:long-stream tokens=${tokens} delay=${delay}`, text: ' word'.repeat(tokens) }
}

/** Begins an answer and ends it when the signal is released. */
export const heldAnswer = (random: Random, signal: string): Scripted => ({
  model: random.pick(MODELS),
  input: `script:${random.pick(['stall', 'stall', 'slow-headers'])} signal=${signal}`,
  text: CANNED,
})

/**
 * Runs tasks with limited concurrency.
 * @throws the first failure, when all started tasks have ended; no task starts after it.
 */
export async function inParallel<Result>(
  count: number,
  atOnce: number,
  work: (index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const failures: unknown[] = []
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count && failures.length === 0; index = next++) {
      try {
        results[index] = await work(index)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  if (failures.length > 0) throw failures[0]
  return results
}

export interface ResponseRow extends Record<string, unknown> {
  id: string
  status: string
  conversation_id: string | null
}

/** All responses of an organization once none is in progress and no conversation is held, as Postgres has them. */
export function endedRows(address: GatewayAddress, tenant: Tenant): Promise<ResponseRow[]> {
  return vi.waitFor(
    async () => {
      const rows = (await query(
        address,
        'select id, status, conversation_id from responses where organization_id = $1 order by created_at',
        [tenant.organizationId],
      )) as ResponseRow[]
      const held = await query(
        address,
        'select id, writer from conversations where organization_id = $1 and writer is not null',
        [tenant.organizationId],
      )
      const open = rows.filter(({ status }) => status === 'in_progress')
      expect({ open: open.map(({ id }) => id), held }).toEqual({ open: [], held: [] })
      return rows
    },
    { timeout: 45_000, interval: 200 },
  )
}
