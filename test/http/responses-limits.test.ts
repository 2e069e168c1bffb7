import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { upstreamControl } from '../harness/gateway.ts'
import { auditEntries, settledCredits } from '../harness/records.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript, seenRequests } from '../harness/upstream.ts'
import { callTool, framesOf, say } from './support/dlp-answers.ts'
import type { Json } from './support/response-calls.ts'
import { CORNER_WAYS, postResponse, respond, turnsScript } from './support/response-streams.ts'

/** A gateway whose responses end soon. */
let address: StartedWorker
let tenant: Tenant
const MAX_TURNS = 2
const TIME_LIMIT = 1_500

beforeAll(async () => {
  address = await startWorker({
    RESPONSE_MAX_TURNS: String(MAX_TURNS),
    RESPONSE_TIME_LIMIT_MS: String(TIME_LIMIT),
  })
  tenant = await createTenant(address)
}, 60_000)
afterAll(() => address?.stop())

const TOOL = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }
/** A model that calls it all the same is answered by the gateway, which makes one turn after the other. */
const REFUSED_CALL = { tools: [TOOL], tool_choice: 'none' }

const callRows = async (owner: Tenant) =>
  (await auditEntries(address, owner)).filter(({ kind }) => kind === 'call').toReversed()

describe.concurrent.each(CORNER_WAYS)('a response (%s)', (_, { upstream, model, stream }) => {
  const respondAs = (owner: Tenant, body: Json) => respond(owner.key, { model, stream, ...body }, address)

  it('ends after its last turn', async () => {
    const script = await turnsScript(upstream, [[say('Hm. '), callTool('f', {})]], address)
    const { response } = await respondAs(tenant, { input: script, ...REFUSED_CALL })
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_turns' },
      output_text: 'Hm. '.repeat(MAX_TURNS),
    })
    expect(await seenRequests(address, script)).toHaveLength(MAX_TURNS)
  })

  it('ends when its time is over, in the middle of a turn', async () => {
    const signal = uniqueName('never')
    const frames = framesOf(upstream, [say('First words')], undefined, false)
    const script = await registerScript(address, [{ sse: frames }, { waitForSignal: signal }, { end: true }])
    const begun = Date.now()
    const { response } = await respondAs(tenant, { input: script })
    expect(Date.now() - begun).toBeGreaterThanOrEqual(TIME_LIMIT)
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_time' },
      output: [{ type: 'message', status: 'incomplete', content: [{ text: 'First words' }] }],
    })
    await vi.waitFor(async () => expect((await upstreamControl(address).waiting())[signal] ?? 0).toBe(0))
  })

  it('settles each turn by itself', async () => {
    const owner = await createTenant(address)
    const script = await turnsScript(upstream, [[callTool('f', {})], [say('Done.')]], address)
    const { response } = await respondAs(owner, { input: script, ...REFUSED_CALL })
    expect(response.output_text).toBe('Done.')
    // Each turn is 3 tokens in and 5 out.
    expect(response.usage).toMatchObject({ input_tokens: 6, output_tokens: 10, total_tokens: 16 })
    const { balance } = await settledCredits(address, owner)
    const rows = await callRows(owner)
    expect(rows).toHaveLength(2)
    expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(1)
    expect(new Set(rows.map(({ id }) => id)).size).toBe(2)
    for (const row of rows) {
      expect(row).toMatchObject({ surface: 'responses', status: 200, model })
      expect(row.credits_settled).toBe(3 + 5 * 5)
      expect(row.record.usage).toMatchObject({ input: 3, output: 5 })
    }
    expect(balance).toBe(1_000_000_000 - 2 * 28)
  })

  it('ends when its credits do not last for another turn', async () => {
    const script = await turnsScript(upstream, [[say('Hm.'), callTool('f', {})]], address)
    const body = { input: script, max_output_tokens: 90, ...REFUSED_CALL }
    const poor = await createTenant(address, { credits: 1 })
    const refused = await postResponse(poor.key, { model, stream, ...body }, address)
    expect(refused.status).toBe(429)
    expect(refused.headers).toMatchObject({ 'x-headgate-limit': 'credits', 'x-should-retry': 'false' })
    // Exactly what the first turn has to have: the second one, which tells more, needs more.
    const needed = Number(/can cost up to (\d+) /.exec(refused.text)?.[1])
    const owner = await createTenant(address, { credits: needed })
    const { response } = await respondAs(owner, body)
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'insufficient_credits' },
      error: null,
      output_text: 'Hm.',
      usage: { input_tokens: 3, output_tokens: 5 },
    })
    expect(await settledCredits(address, owner)).toMatchObject({ balance: needed - 28, reserved: 0 })
    const rows = await callRows(owner)
    expect(rows.sort((left, right) => Number(left.status) - Number(right.status))).toMatchObject([
      { status: 200, credits_settled: 28 },
      // The turn that could not be paid for is on record as well.
      { status: 429, credits_settled: 0 },
    ])
  })
})
