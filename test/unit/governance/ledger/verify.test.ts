import { describe, expect, it } from 'vitest'
import type { CallOpening, CallOutcome } from '../../../../src/governance/audit-record.ts'
import {
  type ChainHead,
  GENESIS,
  linkHash,
  nextLink,
} from '../../../../src/governance/ledger/records/chain.ts'
import {
  callText,
  copiedColumns,
  openingText,
  outcomeText,
  type StoredRecord,
} from '../../../../src/governance/ledger/records/record-body.ts'
import { verifyLinks } from '../../../../src/governance/ledger/records/verify.ts'

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
