import { describe, expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/calls/usage.ts'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import {
  type ChainHead,
  type ChainLink,
  GENESIS,
  linkHash,
  nextLink,
} from '../../../src/ledger/records/chain.ts'
import {
  type CallRow,
  type CreditRow,
  callRowOf,
  creditRowOf,
  type RecordWithRows,
  type UsageRow,
  usageRowOf,
} from '../../../src/ledger/records/extracted-rows.ts'
import {
  type ExpectedHead,
  expectedHeads,
  findUnknown,
  verifyHead,
} from '../../../src/ledger/records/ledger-heads.ts'
import {
  callText,
  changeText,
  copiedColumns,
  openingText,
  outcomeText,
  type StoredRecord,
} from '../../../src/ledger/records/record-body.ts'
import { verifyLinks, verifyRecord } from '../../../src/ledger/records/verify.ts'

const identity = { organizationId: '8f14e45f-ceea-4d7a-9b3c-0a1b2c3d4e5f', shard: 0 }

const opening = (callId: string): CallOpening => ({
  callId,
  requestId: `req_${callId}`,
  organizationId: identity.organizationId,
  at: Date.UTC(2026, 10, 21),
  actor: { userId: 'user-1', keyId: 'key-1', administrator: null, ip: '192.0.2.1' },
  surface: 'messages',
  action: 'POST /v1/messages',
  modelId: 'test-model',
})

const outcome: CallOutcome = {
  status: 200,
  errorCode: null,
  provider: 'p',
  attempts: [],
  usage: null,
  provenance: null,
  cost: 7,
  durationMilliseconds: 3,
  request: null,
  response: null,
  dlp: null,
  connectionId: null,
  flags: [],
}

const contentOf = (callId: string, reserved: number) =>
  callText(openingText(opening(callId)), outcomeText(outcome), reserved)

function chainOf(length: number): StoredRecord[] {
  const rows: StoredRecord[] = []
  let head: ChainHead = GENESIS
  for (let index = 1; index <= length; index += 1) {
    const link = nextLink(identity, head, `call_${index}`, contentOf(`call_${index}`, 9))
    rows.push({ ...copiedColumns(JSON.parse(link.body)), ...link })
    head = link
  }
  return rows
}

/** The chain with one row replaced. */
function withRow(
  rows: StoredRecord[],
  sequence: number,
  change: (row: StoredRecord) => Partial<StoredRecord>,
): StoredRecord[] {
  return rows.map((row) => (row.sequence === sequence ? { ...row, ...change(row) } : row))
}

describe('verifyLinks', () => {
  const chain = chainOf(6)

  it('finds an intact chain intact, page by page', () => {
    const first = verifyLinks(chain.slice(0, 4), GENESIS)
    if (!first.intact) throw new Error(first.detail)
    expect(first.head.sequence).toBe(4)
    expect(verifyLinks(chain.slice(4), first.head)).toMatchObject({ intact: true, head: { sequence: 6 } })
    expect(verifyLinks([], first.head)).toEqual(first)
  })

  it('begins at sequence 1 after 64 zeros', () => {
    expect(chain[0]).toMatchObject({ sequence: 1, previousHash: '0'.repeat(64) })
    expect(verifyLinks(chain.slice(1), GENESIS)).toMatchObject({ sequence: 1, reason: 'missing' })
  })

  it('finds a changed body', () => {
    const changed = withRow(chain, 3, ({ body }) => ({ body: body.replace('"cost":7', '"cost":6') }))
    expect(verifyLinks(changed, GENESIS)).toMatchObject({ intact: false, sequence: 3, reason: 'altered' })
  })

  it('finds a changed body whose hash was made to fit, at the record after it', () => {
    const changed = withRow(chain, 3, (row) => {
      const body = row.body.replace('"cost":7', '"cost":6')
      return { body, creditsSettled: 6, hash: linkHash(row.previousHash, body) }
    })
    expect(verifyLinks(changed, GENESIS)).toMatchObject({ sequence: 4, reason: 'unlinked' })
  })

  const columns: Array<Partial<StoredRecord>> = [
    { id: 'call_9' },
    { organizationId: '00000000-0000-0000-0000-000000000000' },
    { shard: 1 },
    { kind: 'change' },
    { at: new Date(0) },
    { requestId: 'req_9' },
    { userId: 'user-2' },
    { keyId: null },
    { surface: 'responses' },
    { action: 'POST /v1/responses' },
    { modelId: 'other' },
    { status: 500 },
    { creditsSettled: 0 },
  ]
  it.each(columns)('finds a changed column: %o', (change) => {
    const [name] = Object.keys(change)
    const verification = verifyLinks(
      withRow(chain, 3, () => change),
      GENESIS,
    )
    expect(verification).toMatchObject({ intact: false, sequence: 3, reason: 'columns_differ' })
    expect(verification).toMatchObject({ detail: expect.stringContaining(String(name)) })
  })

  it('finds a deleted record', () => {
    const rows = chain.filter(({ sequence }) => sequence !== 3)
    expect(verifyLinks(rows, GENESIS)).toMatchObject({ sequence: 3, reason: 'missing' })
  })

  it('finds records that changed places, with or without their numbers', () => {
    const [first, second, third, ...rest] = chain as [
      StoredRecord,
      StoredRecord,
      StoredRecord,
      ...StoredRecord[],
    ]
    expect(verifyLinks([first, third, second, ...rest], GENESIS)).toMatchObject({ sequence: 2 })
    const renumbered = [first, { ...third, sequence: 2 }, { ...second, sequence: 3 }, ...rest]
    expect(verifyLinks(renumbered, GENESIS)).toMatchObject({ sequence: 2, reason: 'unlinked' })
  })

  it('finds a record that was put in', () => {
    const [first] = chain as [StoredRecord, ...StoredRecord[]]
    const forged = nextLink(identity, first, 'call_x', contentOf('call_x', 0))
    const row = { ...copiedColumns(JSON.parse(forged.body)), ...forged }
    expect(verifyLinks([first, row, ...chain.slice(1)], GENESIS)).toMatchObject({ sequence: 3 })
  })

  it.each(['{', 'null', '7', '{"kind":"call"}'])('finds a body that is no record: %s', (body) => {
    const changed = withRow(chain, 3, () => ({ body }))
    expect(verifyLinks(changed, GENESIS)).toMatchObject({ sequence: 3, reason: 'altered' })
    const hashed = withRow(chain, 3, ({ previousHash }) => ({ body, hash: linkHash(previousHash, body) }))
    expect(verifyLinks(hashed, GENESIS)).toMatchObject({ sequence: 3, reason: 'altered' })
  })
})

describe('verifyRecord', () => {
  const used = { ...outcome, usage: { ...NO_USAGE, input: 3, output: 5 }, provenance: 'reported' as const }
  const ofCall = (of: CallOutcome, head: ChainHead = GENESIS) =>
    nextLink(identity, head, 'call_1', callText(openingText(opening('call_1')), outcomeText(of), 9))
  const change = {
    id: 'change_1',
    requestId: 'req_1',
    organizationId: identity.organizationId,
    at: Date.UTC(2026, 10, 21),
    actor: { userId: null, keyId: null, administrator: 'admin_token', ip: null },
    action: 'credits.granted',
    resource: 'credits/grant_1',
    detail: {},
  }
  const granted = { id: 'grant_1', amount: 100, reason: 'test' }
  const ofChange = (credit: Parameters<typeof changeText>[1]) =>
    nextLink(identity, GENESIS, 'change_1', changeText(change, credit))

  /** A record with the rows that Postgres takes from it. */
  function entryOf(link: ChainLink): RecordWithRows {
    const body = JSON.parse(link.body)
    const credit = creditRowOf(body)
    const record = { ...copiedColumns(body), ...link }
    return {
      record,
      call: callRowOf(body),
      usage: usageRowOf(body),
      credits: credit ? [credit] : [],
      stated: [],
    }
  }

  it('finds the rows of every kind of record intact', () => {
    const refused = { ...outcome, usage: null, provenance: null, cost: 0 }
    const moved = { ...granted, kind: 'transfer' as const, amount: -7 }
    const links = [ofCall(used), ofCall(refused), ofChange(null), ofChange(granted), ofChange(moved)]
    for (const link of links) expect(verifyRecord(entryOf(link), GENESIS)).toEqual([])
  })

  const another = (value: unknown) =>
    value instanceof Date ? new Date(Number.NaN) : typeof value === 'number' ? value + 1 : 'another'

  it('finds every changed column of a call, of usage and of credits', () => {
    const entry = entryOf(ofCall(used))
    const { call, usage, credits } = entry
    for (const [name, value] of Object.entries(call ?? {})) {
      if (name === 'id') continue
      const changed = { ...entry, call: { ...call, [name]: another(value) } as CallRow }
      const detail = expect.stringContaining(`${name} of call_1 in calls`)
      expect(verifyRecord(changed, GENESIS)).toEqual([{ sequence: 1, reason: 'call_differs', detail }])
    }
    for (const [name, value] of Object.entries(usage ?? {})) {
      if (name === 'callId') continue
      const changed = { ...entry, usage: { ...usage, [name]: another(value) } as UsageRow }
      const detail = expect.stringContaining(`${name} of call_1 in usage_events`)
      expect(verifyRecord(changed, GENESIS)).toEqual([{ sequence: 1, reason: 'usage_differs', detail }])
    }
    for (const [name, value] of Object.entries(credits[0] ?? {})) {
      if (name === 'id' || name === 'kind') continue
      const changed = { ...entry, credits: [{ ...credits[0], [name]: another(value) } as CreditRow] }
      const detail = expect.stringContaining(`${name} of call_1 in credit_entries`)
      expect(verifyRecord(changed, GENESIS)).toEqual([{ sequence: 1, reason: 'credit_differs', detail }])
    }
  })

  it('finds rows that are missing, and rows that its record does not have', () => {
    const reasons = (entry: RecordWithRows) => verifyRecord(entry, GENESIS).map(({ reason }) => reason)
    const entry = entryOf(ofCall(used))
    expect(reasons({ ...entry, call: null })).toEqual(['call_missing'])
    const change = entryOf(ofChange(null))
    expect(reasons({ ...change, call: entry.call })).toEqual(['call_added'])
    const content = callText(openingText(opening('call_1')), outcomeText(used), 9)
    const older = nextLink(identity, GENESIS, 'call_1', content.replace(',"form":2', ''))
    expect(reasons({ ...entryOf(older), call: null })).toEqual([])
    expect(reasons({ ...entry, usage: null, credits: [] })).toEqual(['usage_missing', 'credit_missing'])
    const unused = entryOf(ofCall({ ...used, usage: null, cost: 0 }))
    expect(reasons({ ...unused, usage: entry.usage, credits: entry.credits })).toEqual([
      'usage_added',
      'credit_added',
    ])
  })

  it('judges no row by a body that was changed, and verifies a record behind a gap', () => {
    const entry = entryOf(ofCall(used))
    const record = { ...entry.record, body: entry.record.body.replace('"cost":7', '"cost":6') }
    expect(verifyRecord({ ...entry, record }, GENESIS)).toMatchObject([{ reason: 'altered' }])
    const third = entryOf(ofCall(used, { sequence: 2, hash: 'a'.repeat(64) }))
    expect(verifyRecord({ ...third, usage: null }, GENESIS)).toMatchObject([
      { sequence: 1, reason: 'missing' },
      { sequence: 3, reason: 'usage_missing' },
    ])
  })
})

describe('the heads of a ledger', () => {
  const at = (sequence: number) => ({ sequence, hash: `hash ${sequence}` })
  const chain = { shard: 0, head: at(5), flushed: at(3), pending: at(4) }

  it('name the records that have to be stored, and the one that may be', () => {
    expect(expectedHeads([chain])).toEqual([
      { shard: 0, ...at(3), isPending: false },
      { shard: 0, ...at(4), isPending: true },
    ])
    expect(expectedHeads([{ shard: 1, head: at(0), flushed: at(0), pending: null }])).toEqual([])
    const [flushed, pending] = expectedHeads([chain]) as [ExpectedHead, ExpectedHead]
    expect(verifyHead(flushed, 'hash 3')).toBeNull()
    expect(verifyHead(flushed, null)).toMatchObject({ sequence: 3, reason: 'head_differs' })
    expect(verifyHead(flushed, 'another')).toMatchObject({ sequence: 3, reason: 'head_differs' })
    expect(verifyHead(pending, null)).toBeNull()
    expect(verifyHead(pending, 'another')).toMatchObject({ sequence: 4, reason: 'head_differs' })
  })

  it('name no chain and no record that Postgres has beyond them', () => {
    const stored = (shard: number, first: number, sequence: number) => ({ shard, first, sequence })
    expect(findUnknown([stored(0, 1, 5)], [chain])).toEqual([])
    expect(findUnknown([stored(0, 0, 6), stored(2, 1, 1)], [chain])).toMatchObject([
      { shard: 0, sequence: 0, reason: 'unknown_record' },
      { shard: 0, sequence: 6, reason: 'unknown_record' },
      { shard: 2, sequence: 1, reason: 'unknown_shard' },
    ])
  })
})
