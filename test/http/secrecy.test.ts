import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { StandInName } from '../../scripts/local/stack.ts'
import { flush, settledCredits } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'
import {
  type Canaries,
  CREDENTIAL,
  call,
  createCanaries,
  makeCalls,
  needlesOf,
  note,
} from './support/canary-calls.ts'
import {
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  callWay,
  codePolicy,
  governedTenant,
  MESSAGES_TO_CHAT,
  MESSAGES_WAY,
  someCode,
  WAYS,
} from './support/dlp.ts'
import { callTool, framesOf, say, think, wholeOf } from './support/dlp-answers.ts'
import { files, haystacks } from './support/haystacks.ts'

// No key, credential or value that a policy found is kept or said anywhere. A gateway of its own: everything that it keeps is
// looked through, and its services are taken away at the end.

let address: StartedGateway
let canaries: Canaries

beforeAll(async () => {
  const times = { UPSTREAM_EVENT_TIMEOUT_MS: '500', UPSTREAM_ANSWER_TIMEOUT_MS: '500' }
  address = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    isBrief: true,
    variables: times,
  })
  canaries = await createCanaries(address)
}, 60_000)
afterAll(() => address?.stop())

function expectNowhere(places: Map<string, Buffer>): void {
  const secrets = [...needlesOf(canaries)]
  for (const [name, needle] of secrets) expect(needle.length, name).toBeGreaterThan(12)
  const found = [...places].flatMap(([place, contents]) =>
    secrets.filter(([, needle]) => contents.includes(needle)).map(([name]) => `${name} in ${place}`),
  )
  expect(found).toEqual([])
}

const script = async (steps: object): Promise<string> => {
  const name = uniqueName('dlp')
  const response = await fetch(`${address.standIns.modelUpstream}/control/scripts/${name}`, {
    method: 'PUT',
    body: JSON.stringify(steps),
  })
  if (!response.ok) throw new Error(await response.text())
  return `script:${name}`
}

const ACTIONS = ['warn', 'mask', 'redact', 'tokenise', 'block'] as const

it('no value is stored or sent anywhere, whatever the action of its policy', async () => {
  const asked: string[] = []
  const answered: string[] = []
  const fresh = (list: string[]) => {
    const code = someCode()
    list.push(code)
    return code
  }
  for (const action of ACTIONS) {
    const tenant = await governedTenant(codePolicy(action), address)
    const answering = await governedTenant(
      codePolicy(action, { directions: ['response', 'tool_arguments', 'tool_result'] }),
      address,
    )
    // Each protocol has every action; a translation or a completion has one that changes and one that ends.
    const isCorner = action === 'tokenise' || action === 'block'
    for (const way of isCorner ? WAYS : [CHAT_WAY, MESSAGES_WAY]) {
      await callWay(way, tenant, `of ${fresh(asked)}`, {}, address)
      // Both forms of each protocol; how the other ways differ, their streams show.
      const isNative = way === CHAT_WAY || way === MESSAGES_WAY
      for (const stream of isNative ? [true, false] : [true]) {
        const code = fresh(answered)
        const parts =
          way.upstream === 'completions' || way.route.name === 'completions'
            ? [say(`it is ${code}`)]
            : [think(`so ${code}`), say(`it is ${code}`), callTool('f', { code })]
        const chosen = await script({
          responses: [
            {
              streamed: [{ sse: framesOf(way.upstream, parts) }],
              whole: [{ json: wholeOf(way.upstream, parts) }],
            },
          ],
        })
        await callWay(way, answering, chosen, { stream }, address)
      }
    }
    // Errors of all kinds around a value that the upstream gets, or gets a token of.
    const code = fresh(asked)
    const failing = [
      'script:error-500',
      'script:error-401-echo',
      'script:mid-stream-error',
      'script:not-json',
    ]
    for (const text of action === 'warn' || action === 'tokenise' ? failing : []) {
      await callWay(CHAT_WAY, tenant, `${text} ${code}`, { stream: true }, address)
      await callWay(MESSAGES_WAY, tenant, `${text} ${code}`, {}, address)
    }
    await callWay(CHAT_WAY, tenant, code, { max_tokens: 'many' }, address)
    await callWay(CHAT_WAY, tenant, code, { stop: [code, 7] }, address)
    // The test endpoint of the management API is shown values, and keeps none.
    const { ask } = administrator(address)
    const policy = { ...codePolicy(action), name: undefined }
    await ask('POST', `${tenant.base}/dlp/test`, { policy, text: `a ${fresh(asked)}` })
    for (const each of [tenant, answering]) {
      await settledCredits(address, each)
      await flush(address, each)
    }
  }
  const places = await haystacks(address)
  // The upstream says and hears values itself.
  places.delete('the recording of the upstream')
  for (const name of [...places.keys()]) if (/upstream/i.test(name)) places.delete(name)
  expect([...places.keys()].some((name) => name.startsWith('Durable Objects'))).toBe(true)
  const found = [...places].flatMap(([place, contents]) =>
    [...asked, ...answered].filter((code) => contents.includes(code)).map((code) => `${code} in ${place}`),
  )
  expect(found).toEqual([])
  // The search can find: the same places hold what was found, by kind.
  expect(places.get('Postgres')?.includes('"code"')).toBe(true)
}, 60_000)

it('a text that is tried is found nowhere afterwards: no log, no record, no database', async () => {
  const tenant = await createTenant(address)
  const { ask, call } = administrator(address)
  const canary = uniqueName('canary-text')
  const kept = uniqueName('canary-term')
  const rules = [{ detector: 'email', action: 'redact' }]
  const policy = { directions: ['request', 'response'], rules }
  const text = `${canary}@example.com and ${canary}`
  const stored = await ask('POST', `${tenant.base}/dlp/policies`, {
    ...policy,
    name: uniqueName('policy'),
    dictionaries: [{ id: 'words', terms: [kept] }],
    rules: [{ custom: 'words', action: 'block' }],
  })
  const [test, dryRun] = [`${tenant.base}/dlp/test`, `${tenant.base}/dlp/dry-run`]
  const bodies: Array<[path: string, status: number, body: unknown]> = [
    [test, 200, { policy, text }],
    [test, 200, { policy_id: stored.id, text: `${kept} ${text}` }],
    [dryRun, 200, { policy, samples: [text] }],
    [test, 400, { policy, text, direction: 'sideways' }],
    [test, 422, { policy: { ...policy, rules: [{ detector: 'nope', action: 'mask' }] }, text }],
    [test, 404, { policy_id: crypto.randomUUID(), text }],
    [dryRun, 400, { policy, samples: text }],
  ]
  for (const [path, status, body] of bodies) expect((await call('POST', path, body)).status).toBe(status)
  await flush(address, tenant)
  const places = await haystacks(address)
  const holding = (needle: string) =>
    [...places].filter(([, contents]) => contents.includes(needle)).map(([place]) => place)
  expect(holding(canary)).toEqual([])
  // The search can find: a term of a policy is kept, in its row alone.
  expect(holding(kept)).toEqual(['Postgres'])
})

it('keys and credentials are found nowhere, although everything else is', async () => {
  const { tenant, answered } = canaries
  await makeCalls(canaries)
  await settledCredits(address, tenant)
  await flush(address, tenant)
  const places = await haystacks(address)
  // The search can find: these stand where the canaries must not.
  expect(places.get('Postgres')?.includes(tenant.keyId)).toBe(true)
  // Left by the key that was presented as the token of the management API.
  expect(places.get('Redis')?.includes('limit:wrong-tokens:')).toBe(true)
  expect(places.get('logs: workerd.log')?.includes('upstream_failed')).toBe(true)
  const digest = createHash('sha256').update(CREDENTIAL).digest('hex')
  expect(places.get('the recording of the upstream')?.includes(digest)).toBe(true)
  const objects = [...places].filter(([name]) => name.startsWith('Durable Objects'))
  expect(objects.some(([, contents]) => contents.includes(tenant.keyId))).toBe(true)
  expectNowhere(places)
  expect(answered.length).toBeGreaterThan(100)
  expectNowhere(new Map([['answers', Buffer.from(answered.join('\n'))]]))
}, 60_000)

/** Takes a service away, and makes calls that meet keys and the credential. */
async function callWithout(name: StandInName): Promise<void> {
  const { tenant, revoked } = canaries
  const [chat, , messages] = MODEL_ROUTES as [ModelRoute, ModelRoute, ModelRoute]
  await address.killStandIn(name)
  for (const route of [chat, messages]) {
    await call(canaries, route, 'Hello')
    await call(canaries, route, 'Hello', {}, { authorization: `Bearer ${revoked.key}` })
  }
  const { call: manage } = administrator(address)
  note(canaries, await manage('POST', `${tenant.base}/keys`, { user_id: tenant.userId, label: 'late' }))
  note(canaries, await manage('PUT', `/providers/${tenant.userId}`, { credential: CREDENTIAL }))
}

function expectUntold(): void {
  expectNowhere(files(address))
  expectNowhere(new Map([['answers', Buffer.from(canaries.answered.join('\n'))]]))
}

it('keys and credentials are not disclosed while the upstream is away', async () => {
  await callWithout('modelUpstream')
  expectUntold()
  await address.startStandIn('modelUpstream')
})

describe('when the database is away', () => {
  let warm: Tenant
  let cold: Tenant

  beforeAll(async () => {
    warm = await governedTenant(codePolicy('redact'), address)
    cold = await governedTenant(codePolicy('redact'), address)
    for (const way of [CHAT_WAY, MESSAGES_WAY, CHAT_TO_MESSAGES, MESSAGES_TO_CHAT]) {
      expect((await callWay(way, warm, 'warm', {}, address)).status).toBe(200)
    }
    await flush(address, warm)
    // Its key and the models are known, its policies were not asked for yet.
    const listed = await send(`${address.baseUrl}/v1/models`, { headers: bearer(cold.key) })
    expect(listed.status).toBe(200)
    await address.killStandIn('postgres')
  })

  it('warm calls go on under their policies: they ask it nothing', async () => {
    const code = someCode()
    for (const way of [CHAT_WAY, MESSAGES_WAY, CHAT_TO_MESSAGES, MESSAGES_TO_CHAT]) {
      const answer = await callWay(way, warm, `of ${code}`, {}, address)
      expect(answer.status).toBe(200)
      expect(answer.text).not.toContain(code)
    }
  })

  it('a call under policies that cannot be read is refused, without the reason', async () => {
    const { last } = await seenAfter(999_999_999)
    for (const way of WAYS) {
      const answer = await callWay(way, cold, someCode(), {}, address)
      expect(answer.status).toBe(500)
      const { error } = jsonOf(answer) as { error: { message: string } }
      expect(error.message).toBe('The data-loss prevention policy could not be applied.')
    }
    expect((await seenAfter(last)).requests).toEqual([])
  })

  it('keys and credentials are not disclosed, whatever else is away', async () => {
    for (const name of ['postgres', 'modelUpstream', 'redis'] as const) await callWithout(name)
    expect(files(address).get('logs: workerd.log')?.includes('request_failed')).toBe(true)
    expectUntold()
  })
})

async function seenAfter(sequence: number): Promise<{ last: number; requests: unknown[] }> {
  const response = await fetch(`${address.standIns.modelUpstream}/control/requests?after=${sequence}`)
  return (await response.json()) as { last: number; requests: unknown[] }
}
