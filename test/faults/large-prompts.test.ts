import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { type Answer, send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { bearer, type Tenant } from '../harness/tenant.ts'
import { addPolicy } from '../http/support/dlp.ts'

const PROMPT_BYTES = 20_000_000
const PROMPTS_AT_ONCE = 3
/** The other organization calls until the prompts are answered, and at least so often. */
const LEAST_CALLS = 50

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
    // As deployed: a busy event loop must not look like an absent Redis.
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
  ['of base64', Buffer.alloc((PROMPT_BYTES / 4) * 3, 'Lorem ipsum dolor ').toString('base64')],
]

it.each(prompts)(
  'three prompts of 20 MB %s refuse no call of another organization',
  async (name, content) => {
    let isOver = false
    const large = Promise.all(Array.from({ length: PROMPTS_AT_ONCE }, () => post(heavy, content))).finally(
      () => {
        isOver = true
      },
    )
    const statuses: number[] = []
    const waits: number[] = []
    while (!isOver || statuses.length < LEAST_CALLS) {
      const begun = performance.now()
      statuses.push((await post(other, 'Hello')).status)
      waits.push(performance.now() - begun)
    }
    waits.sort((left, right) => left - right)
    const at = (part: number) => Math.round(waits[Math.floor((waits.length - 1) * part)] ?? 0)
    console.log(`${name}: ${waits.length} calls, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    for (const { status } of await large) expect([200, 429]).toContain(status)
  },
)
