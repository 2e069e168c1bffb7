import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { type Answer, send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { bearer, type Tenant } from '../harness/tenant.ts'
import { addPolicy } from '../http/support/dlp.ts'

const PROMPT_BYTES = 20_000_000
const PROMPTS_AT_ONCE = [1, 3]
/** The other organization calls until the prompts are answered, and at least so often. */
const LEAST_CALLS = 100
/** A late call may be delayed by so much, and by so many times what it takes without prompts: other work counts in both. */
const MOST_DELAY_MS = 50
const MOST_RATIO = 2

const POLICY = {
  name: 'everything',
  directions: ['request', 'response'],
  rules: ['email', 'card', 'secret'].map((detector) => ({ detector, action: 'redact' })),
}

let gateway: StartedGateway
let heavy: Tenant
let other: Tenant
beforeAll(async () => {
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    // The value of a deployment: a busy event loop must not count as an absent Redis.
    variables: { LIMITS_TIMEOUT_MS: '300' },
  })
  heavy = await createBusyTenant(gateway, 1_000_000_000_000)
  other = await createBusyTenant(gateway, 1_000_000_000_000)
  await addPolicy(heavy, POLICY, gateway)
})
afterAll(() => gateway?.stop())

const post = ({ key }: Tenant, content: string): Promise<Answer> =>
  send(`${gateway.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: bearer(key),
    body: JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content }] }),
  })

const prompts: Array<[string, string]> = [
  ['of words', 'Lorem ipsum dolor sit amet. '.repeat(PROMPT_BYTES / 28)],
  ['of one word', 'a'.repeat(PROMPT_BYTES)],
  ['of percent encoding', '%41'.repeat(PROMPT_BYTES / 3)],
  ['of base64', Buffer.alloc((PROMPT_BYTES / 4) * 3, 'Lorem ipsum dolor ').toString('base64')],
]

/** Milliseconds that calls took, in order. */
interface Waits {
  calls: number
  median: number
  late: number
  longest: number
}

/** Calls of the other organization, one after another, until `isOver`. */
async function otherCalls(isOver: () => boolean): Promise<Waits> {
  const waits: number[] = []
  while (!isOver() || waits.length < LEAST_CALLS) {
    const begun = performance.now()
    expect((await post(other, 'Hello')).status).toBe(200)
    waits.push(performance.now() - begun)
  }
  waits.sort((left, right) => left - right)
  const at = (part: number) => Math.round(waits[Math.floor((waits.length - 1) * part)] ?? 0)
  return { calls: waits.length, median: at(0.5), late: at(0.99), longest: at(1) }
}

const told = ({ calls, median, late, longest }: Waits) =>
  `${calls} calls, p50 ${median} ms, p99 ${late} ms, max ${longest} ms`

/** Without a prompt, as other work on the machine leaves it; the longest of some runs. */
async function withoutPrompts(): Promise<Waits> {
  return otherCalls(() => true)
}

it.each(prompts)(
  'prompts of 20 MB %s refuse and delay no call of another organization',
  async (name, content) => {
    await otherCalls(() => true)
    for (const count of PROMPTS_AT_ONCE) {
      const before = await withoutPrompts()
      let isOver = false
      const large = Promise.all(Array.from({ length: count }, () => post(heavy, content))).finally(() => {
        isOver = true
      })
      const during = await otherCalls(() => isOver)
      const after = await withoutPrompts()
      for (const { status } of await large) expect([200, 429]).toContain(status)
      const late = Math.max(before.late, after.late)
      console.log(`${name}, ${count} at once: ${told(during)}; without: p50 ${before.median}, p99 ${late}`)
      expect(during.late).toBeLessThan(MOST_DELAY_MS + MOST_RATIO * late)
    }
  },
)
