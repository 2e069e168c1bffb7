import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  admit,
  type CallRequest,
  checkLimits,
  extend,
  refusalOutcome,
  refuse,
  settle,
} from '../../../src/calls/governed-call.ts'
import { modelTarget } from '../../../src/calls/target.ts'
import { callOutcome } from '../../../src/ledger/audit-record.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { MemoryLedger, RETRY_AFTER_SECONDS, someOpening } from '../ledger/memory-ledger.ts'
import { somePrincipal } from './fixtures.ts'

let ledger: MemoryLedger
let deps: { clock: () => number; ledgerOf: MemoryLedger['of'] }
let logged: string[]

beforeEach(() => {
  ledger = new MemoryLedger()
  deps = { clock: () => 5_000, ledgerOf: ledger.of }
  logged = []
  for (const level of ['log', 'warn', 'error'] as const) {
    vi.spyOn(console, level).mockImplementation((line) => void logged.push(String(line)))
  }
})
afterEach(() => void vi.restoreAllMocks())

const { organizationId, modelId: _model, ...identity } = someOpening({ at: 1_000 })
const principal = somePrincipal({ organizationId, organizationLimitPerMinute: 3, userLimitPerMinute: 2 })

const asking = (values: Partial<CallRequest> = {}): CallRequest => ({
  identity,
  rights: { principal, catalogueEpoch: 1, learned: null },
  target: modelTarget('some-model'),
  reserve: 100,
  leaseMilliseconds: 60_000,
  estimate: null,
  counted: true,
  advice: 'Lower max_tokens',
  ...values,
})
const called = (callId: string, values: Partial<CallRequest> = {}) =>
  asking({ identity: { ...identity, callId }, ...values })
const someError = new ApiError('invalid_request', 'no', { code: 'model_not_found' })

describe('admit', () => {
  it('gives an open call, as plain data', async () => {
    const admitted = await admit(deps, asking())
    const opening = { ...identity, organizationId, shard: 0, modelId: 'some-model' }
    expect(admitted).toEqual({ kind: 'admitted', call: { opening, reserve: 100 } })
    expect(JSON.parse(JSON.stringify(admitted))).toEqual(admitted)
    expect(ledger.opened).toEqual([
      {
        opening,
        reserve: 100,
        leaseMilliseconds: 60_000,
        estimate: null,
        epochs: { organization: 1, catalogue: 1 },
        learned: null,
        limits: { userId: principal.userId, organizationPerMinute: 3, userPerMinute: 2, shards: 1 },
      },
    ])
  })

  it.each(['its lease', 'its holder'])('opens another call for one that %s has settled', async (by) => {
    await admit(deps, asking())
    if (by === 'its lease') ledger.lapse(identity.callId)
    else await ledger.close(identity.callId, callOutcome(identity, 0, { status: 200 }))
    const again = await admit(deps, asking())
    const callId = expect.stringMatching(/^call_/)
    expect(again).toMatchObject({ kind: 'admitted', call: { opening: { ...identity, callId } } })
    expect(ledger.opened.map(({ opening }) => opening.callId)).toEqual([identity.callId, callId])
    expect(ledger.opened[1]?.opening.callId).not.toBe(identity.callId)
  })

  it('names no model for a target that is none, and for none', async () => {
    const integration = { kind: 'integration', id: 'i_t', slug: 'i', tool: 't', connectionId: null } as const
    await admit(deps, called('a', { target: integration }))
    await admit(deps, called('b', { target: null }))
    expect(ledger.opened.map(({ opening }) => opening.modelId)).toEqual([null, null])
  })

  it('refuses a call that could cost more than there is, and says how to make it fit', async () => {
    ledger.available = 99
    const refused = await admit(deps, asking())
    expect(refused).toMatchObject({
      kind: 'refused',
      error: { status: 429, retryAfterSeconds: 60, shouldRetry: false, limit: 'credits' },
    })
    const { message } = (refused as { error: ApiError }).error
    expect(message).toBe(
      'Your organization does not have enough credits: this call can cost up to 100 micro-credits, and 99 micro-credits can be spent. ' +
        'Lower max_tokens, or add credits. This is not a rate limit: repeating the call does not help.',
    )
    expect(ledger.recorded).toMatchObject([
      { outcome: { status: 429, errorCode: 'rate_limited', cost: 0, durationMilliseconds: 4_000 } },
    ])
    expect(ledger.available).toBe(99)
  })

  it('without any credits advises only to add some, and states no negative amount', async () => {
    ledger.available = -5
    const refused = await admit(deps, asking())
    expect((refused as { error: ApiError }).error.message).toContain(
      ' 0 micro-credits can be spent. Add credits.',
    )
  })

  it.each([
    ['user', 2, "Your user's rate limit of 2 calls a minute is reached. Try again in 7 seconds."],
    [
      'organization',
      9,
      "Your organization's rate limit of 3 calls a minute is reached. Try again in 7 seconds.",
    ],
  ])(
    'refuses a call beyond the limit of the %s, says whose it is, and records it uncounted',
    async (scope, perUser, message) => {
      const rights = {
        principal: { ...principal, userLimitPerMinute: perUser },
        catalogueEpoch: 1,
        learned: null,
      }
      const admitted = Math.min(perUser, 3)
      for (let count = 0; count < admitted; count++) await admit(deps, called(`${count}`, { rights }))
      const refused = await admit(deps, called('last', { rights }))
      expect(refused).toMatchObject({
        kind: 'refused',
        error: { status: 429, message, retryAfterSeconds: RETRY_AFTER_SECONDS, limit: scope },
      })
      expect(ledger.opened).toHaveLength(admitted)
      expect(ledger.recorded.map(({ opening, outcome }) => [opening.callId, outcome.status])).toEqual([
        ['last', 429],
      ])
      // A further turn of a response is not counted.
      expect(await admit(deps, called('turn', { rights, counted: false }))).toMatchObject({
        kind: 'admitted',
      })
    },
  )

  it('waits a second at least, in whole seconds', async () => {
    for (const [given, told] of [
      [0, 1],
      [-3, 1],
      [1.2, 2],
    ] as const) {
      vi.spyOn(ledger, 'admit').mockResolvedValue({
        kind: 'limited',
        scope: 'user',
        retryAfterSeconds: given,
      })
      expect(await admit(deps, asking())).toMatchObject({ error: { retryAfterSeconds: told } })
    }
  })

  it.each([
    { organization: 2, catalogue: 1 },
    { organization: null, catalogue: 1 },
    { organization: 1, catalogue: 7 },
    { organization: 1, catalogue: null },
  ])('tells what is stale and records nothing: %j', async (epochs) => {
    Object.assign(ledger.epochs, epochs)
    expect(await admit(deps, asking())).toEqual({ kind: 'stale', ...epochs })
    expect([ledger.opened, ledger.recorded]).toEqual([[], []])
  })

  it('fails when the ledger cannot store it', async () => {
    ledger.away = true
    await expect(admit(deps, asking())).rejects.toThrow('cannot be reached')
  })

  it('stays a refusal when the refusal cannot be recorded', async () => {
    ledger.available = 0
    vi.spyOn(ledger, 'record').mockRejectedValue(new Error('away'))
    expect(await admit(deps, asking())).toMatchObject({ kind: 'refused', error: { status: 429 } })
    expect(logged.join()).toContain('audit_failed')
  })
})

describe('refuse', () => {
  it('records the call and counts it', async () => {
    const dlp = { policyVersion: 'v', findings: { email: 1 } }
    const target = modelTarget('m')
    for (const callId of ['a', 'b']) {
      const refused = await refuse(deps, called(callId), someError, { target, dlp })
      expect(refused).toEqual({ kind: 'refused', error: someError })
    }
    expect(ledger.recorded[0]).toEqual({
      opening: { ...identity, callId: 'a', organizationId, shard: 0, modelId: 'm' },
      outcome: callOutcome(identity, 5_000, { status: 400, errorCode: 'model_not_found', dlp }),
    })
    expect(await admit(deps, called('c'))).toMatchObject({ kind: 'refused', error: { status: 429 } })
  })

  it('is no way around a limit: its error becomes the one of the limit, and is what is recorded', async () => {
    for (const callId of ['a', 'b']) await refuse(deps, called(callId), someError, { target: null })
    const refused = await refuse(deps, called('c'), someError, { target: null })
    expect(refused).toMatchObject({ kind: 'refused', error: { status: 429, retryAfterSeconds: 7 } })
    expect(ledger.recorded.map(({ outcome }) => outcome.errorCode)).toEqual([
      'model_not_found',
      'model_not_found',
      'rate_limited',
    ])
  })

  it('is stale where the rights are: the decision may be another one then', async () => {
    ledger.epochs.organization = 2
    const stale = await refuse(deps, asking(), someError, { target: null })
    expect(stale).toEqual({ kind: 'stale', organization: 2, catalogue: 1 })
    expect(ledger.recorded).toEqual([])
  })

  it('stays the refusal it is when the ledger is away', async () => {
    ledger.away = true
    const refused = await refuse(deps, asking(), someError, { target: null })
    expect(refused).toEqual({ kind: 'refused', error: someError })
    expect(logged.join()).toContain('audit_failed')
  })

  it('names errors without a code by their kind', () => {
    const opening = someOpening()
    const codeOf = (kind: 'internal' | 'upstream') => refusalOutcome(opening, 0, new ApiError(kind, 'm'))
    expect(codeOf('internal')).toMatchObject({ status: 500, errorCode: 'internal_error' })
    expect(codeOf('upstream')).toMatchObject({ status: 502, errorCode: 'upstream' })
  })
})

describe('checkLimits', () => {
  const { rights } = asking()

  it('tells of room, of a limit and of stale rights, and counts nothing', async () => {
    for (let count = 0; count < 5; count++) expect(await checkLimits(deps, rights)).toBeNull()
    for (const callId of ['a', 'b']) await admit(deps, called(callId))
    expect(await checkLimits(deps, rights)).toMatchObject({
      kind: 'refused',
      error: { status: 429, retryAfterSeconds: 7 },
      rateLimit: { limit: 2, remaining: 0 },
    })
    ledger.epochs.organization = null
    expect(await checkLimits(deps, rights)).toEqual({ kind: 'stale', organization: null, catalogue: 1 })
    ledger.away = true
    await expect(checkLimits(deps, rights)).rejects.toThrow('cannot be reached')
  })
})

describe('settle', () => {
  const open = async () => {
    const admitted = await admit(deps, asking())
    if (admitted.kind !== 'admitted') throw new Error(admitted.kind)
    return admitted.call
  }

  it('closes a call once, and gives back what it did not cost', async () => {
    ledger.available = 1_000
    const call = await open()
    expect(ledger.available).toBe(900)
    const outcome = callOutcome(call.opening, 9_000, { status: 200, cost: 30 })
    expect(await settle(deps, call, outcome)).toBe(true)
    await settle(deps, call, callOutcome(call.opening, 9_500, { status: 499 }))
    expect(ledger.closed).toEqual([{ callId: 'call', outcome }])
    expect(ledger.available).toBe(970)
  })

  it('never rejects, and tells that the ledger does not have it', async () => {
    const call = await open()
    ledger.away = true
    await expect(settle(deps, call, callOutcome(call.opening, 1, { status: 200 }))).resolves.toBe(false)
    const lost = {
      ...deps,
      ledgerOf: () => {
        throw new Error('no such object')
      },
    }
    await expect(settle(lost, call, callOutcome(call.opening, 1, { status: 200 }))).resolves.toBe(false)
    expect(logged.filter((line) => line.includes('ledger_close_failed'))).toHaveLength(2)
  })
})

describe('extend', () => {
  it('tells whether the call is open, and null when the ledger is away', async () => {
    const admitted = await admit(deps, asking())
    if (admitted.kind !== 'admitted') throw new Error(admitted.kind)
    expect(await extend(deps, admitted.call, 1_000, null)).toBe(true)
    ledger.lapse('call')
    expect(await extend(deps, admitted.call, 1_000, null)).toBe(false)
    ledger.away = true
    expect(await extend(deps, admitted.call, 1_000, null)).toBeNull()
  })
})
