import { afterEach, describe, expect, it, vi } from 'vitest'
import { grantCredits } from '../../../src/admin/credits.ts'
import type { ChangeScope } from '../../../src/ledger/changes/audited-change.ts'
import { OTHER_GRANT } from '../../../src/ledger/contract.ts'
import { ApiError } from '../../../src/lib/api-error.ts'

afterEach(() => void vi.restoreAllMocks())

/** The scope of a change whose Postgres has no grant yet, and whose ledger fails in the given way. */
function scopeFailingWith(error: Error): ChangeScope {
  const database = { select: () => ({ from: () => ({ where: async () => [] }) }) }
  const failing = () => Promise.reject(error)
  const ledger = { grantCredits: failing, balance: failing }
  const organization = { database, organizationId: 'organization' }
  const scope = { ...organization, ledgerOf: () => ledger, clock: () => 0, requestId: 'req', actor: {} }
  return scope as unknown as ChangeScope
}

const attempt = (error: Error) => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const values = { id: 'grant-1', amount: 5, reason: 'test' }
  return grantCredits(scopeFailingWith(error), values).catch((thrown) => thrown)
}

describe('a grant that the ledger refuses', () => {
  it('is a conflict when its id stands for another amount there, though Postgres has none yet', async () => {
    const error = await attempt(Object.assign(new RangeError(OTHER_GRANT), { remote: true }))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ kind: 'unprocessable', code: 'conflict' })
  })

  it('leaves doubt when it failed in another way', async () => {
    expect(await attempt(new Error('reset'))).toMatchObject({ kind: 'internal', details: { id: 'grant-1' } })
  })
})
