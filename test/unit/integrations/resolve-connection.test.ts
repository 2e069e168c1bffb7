import { describe, expect, it } from 'vitest'
import type { VisibleRow } from '../../../src/integrations/connections/connections.store.ts'
import { chooseConnection } from '../../../src/integrations/connections/resolve-connection.ts'

const ME = 'me'

const row = (id: string, more: Partial<VisibleRow> = {}): VisibleRow => ({
  ...{ id, organizationId: 'organization', integrationId: 'integration', slug: 'demo' },
  ...{ ownerUserId: ME, displayName: `Account ${id}`, broker: 'local', upstreamConnectionId: `local_${id}` },
  ...{ status: 'active', hint: null, createdAt: new Date(0) },
  ...{ isPreferred: false, isDefault: false, preferredAt: null },
  ...more,
})

const shared = (id: string, more: Partial<VisibleRow> = {}) => row(id, { ownerUserId: 'somebody', ...more })
const common = (id: string, more: Partial<VisibleRow> = {}) => row(id, { ownerUserId: null, ...more })
const preferred = (at: number, more: Partial<VisibleRow> = {}): Partial<VisibleRow> => ({
  ...{ isPreferred: true, preferredAt: new Date(at) },
  ...more,
})
const asDefault = preferred(1, { isDefault: true })
const dead = { status: 'needs_reauth' } as const
const gone = { status: 'revoked' } as const

/** The outcome as one line. */
function chosen(visible: VisibleRow[], explicit: string | null = null): string {
  const resolution = chooseConnection(visible, ME, explicit)
  switch (resolution.kind) {
    case 'connection':
      return `${resolution.connection.id} ${resolution.chosenBy}${resolution.isOneOfSeveral ? ' of several' : ''}`
    case 'unusable':
      return `${resolution.connection.id} unusable`
    case 'ambiguous':
      return `ambiguous ${resolution.candidates.map(({ id }) => id).join(' ')}`
    default:
      return resolution.kind
  }
}

describe('the stages of the resolution', () => {
  it.each<[string, VisibleRow[], string | null, string]>([
    ['an explicit one', [row('a'), shared('b')], 'b', 'b explicit'],
    ['an explicit one over the default', [row('a', asDefault), row('b')], 'b', 'b explicit'],
    ['an explicit one that is not visible', [row('a')], 'x', 'unknown'],
    ['an explicit one that is dead, whatever else there is', [row('a'), row('b', dead)], 'b', 'b unusable'],
    ['the default', [row('a', asDefault), row('b')], null, 'a default'],
    ['a default of another person', [shared('a', asDefault), row('b')], null, 'a default'],
    ['the default of a set', [row('a', asDefault), row('b', preferred(9))], null, 'a default of several'],
    ['the only one of the set', [row('a', preferred(1)), row('b')], null, 'a active_set'],
    [
      'the last of the set',
      [row('a', preferred(1)), row('b', preferred(2))],
      null,
      'b active_set of several',
    ],
    ['the only own one', [row('a'), shared('b'), common('c')], null, 'a own'],
    ['several own ones', [row('a'), row('b'), shared('c')], null, 'ambiguous a b'],
    ['the only shared one', [shared('a'), common('b')], null, 'a group'],
    ['several shared ones', [shared('a'), shared('b'), common('c')], null, 'ambiguous a b'],
    ['the only one of the organization', [common('a')], null, 'a organization'],
    ['several of the organization', [common('a'), common('b')], null, 'ambiguous a b'],
    ['none', [], null, 'required'],
  ])('%s', (_name, visible, explicit, outcome) => {
    expect(chosen(visible, explicit)).toBe(outcome)
  })
})

describe('a connection that cannot be used', () => {
  it.each<[string, VisibleRow[], string]>([
    ['the default', [row('a', { ...asDefault, ...dead }), row('b', preferred(2)), shared('c')], 'a unusable'],
    [
      'a default that was revoked',
      [row('a', { ...asDefault, ...gone }), row('b'), common('c')],
      'a unusable',
    ],
    ['all of the set', [row('a', { ...preferred(1), ...dead }), shared('b')], 'a unusable'],
    ['the last of the set', [row('a', preferred(1)), row('b', { ...preferred(2), ...dead })], 'a active_set'],
    ['the own one', [row('a', dead), shared('b'), common('c')], 'a unusable'],
    ['one of two own ones', [row('a', dead), row('b'), shared('c')], 'b own'],
    ['both own ones', [row('a', dead), row('b', dead), shared('c')], 'ambiguous a b'],
    ['the shared one', [shared('a', dead), common('b')], 'a unusable'],
    [
      'one of two shared ones: no other person takes its place',
      [shared('a', dead), shared('b')],
      'ambiguous a b',
    ],
    ['the one of the organization', [common('a', dead)], 'a unusable'],
    ['one of two of the organization', [common('a', dead), common('b')], 'ambiguous a b'],
    [
      'revoked and pending ones count as none',
      [row('a', gone), row('b', { status: 'pending' }), shared('c')],
      'c group',
    ],
    ['nothing but those', [row('a', gone), common('b', { status: 'pending' })], 'required'],
  ])('%s', (_name, visible, outcome) => {
    expect(chosen(visible)).toBe(outcome)
  })

  it('is never replaced by the account of another owner, whatever the others are', () => {
    const statuses = ['active', 'needs_reauth', 'revoked', 'pending'] as const
    const owners = [ME, 'somebody', null]
    for (const ownerUserId of owners) {
      for (const first of statuses) {
        for (const second of statuses) {
          const used = row('used', { ownerUserId, status: 'active' })
          const others = owners.flatMap((owner, index) => [
            row(`x${index}`, { ownerUserId: owner, status: first }),
            row(`y${index}`, { ownerUserId: owner, status: second }),
          ])
          const before = chooseConnection([used, ...others], ME, null)
          const after = chooseConnection([{ ...used, status: 'needs_reauth' }, ...others], ME, null)
          if (before.kind !== 'connection' || before.connection.id !== 'used') continue
          if (after.kind === 'connection') expect(after.connection.ownerUserId).toBe(ME)
        }
      }
    }
  })
})
