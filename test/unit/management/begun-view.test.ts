import { expect, it } from 'vitest'
import { viewBegunAt, withinView } from '../../../src/admin/begun-view.ts'
import { NO_ACTOR } from '../../../src/ledger/audit-record.ts'

const BEGUN = Date.UTC(2026, 10, 20, 12)
const HOUR = 3_600_000

const ring = (...ids: string[]) => new Map(ids.map((id) => [id, Buffer.from(`pepper-of-this-test-${id}`)]))
const scope = {
  organizationId: 'organization',
  actor: { ...NO_ACTOR, userId: 'ada', session: 'session' },
  pepperRing: ring('first'),
  clock: () => BEGUN + 1,
}
const viewed = { list: 'audit', filter: { model: 'small', from: new Date(BEGUN) }, limit: 50 } as const
const next = withinView(scope, viewed, { at: 5, id: 'record' }, BEGUN)

it('goes on with the cursor of a page', () => {
  expect(viewBegunAt(scope, viewed, next)).toBe(BEGUN)
  // After the rotation of peppers as well, and from another address.
  expect(viewBegunAt({ ...scope, pepperRing: ring('second', 'first') }, viewed, next)).toBe(BEGUN)
  expect(viewBegunAt({ ...scope, actor: { ...scope.actor, ip: '192.0.2.1' } }, viewed, next)).toBe(BEGUN)
  const same = { list: 'audit', limit: 50, filter: { from: new Date(BEGUN), model: 'small' } } as const
  expect(viewBegunAt(scope, same, next)).toBe(BEGUN)
})

it('ends after an hour, however many pages there were', () => {
  const at = (ms: number) => ({ ...scope, clock: () => BEGUN + ms })
  const later = withinView(at(HOUR - 1), viewed, { at: 4, id: 'other' }, BEGUN)
  for (const position of [next, later]) {
    expect(viewBegunAt(at(HOUR - 1), viewed, position)).toBe(BEGUN)
    expect(viewBegunAt(at(HOUR), viewed, position)).toBeNull()
  }
})

it('is begun anew by anything else', () => {
  const { view } = next
  if (!view) throw new Error('no view')
  const others: Array<[string, Parameters<typeof viewBegunAt>]> = [
    ['no cursor', [scope, viewed, null]],
    ['no view', [scope, viewed, { at: next.at, id: next.id }]],
    ['another page', [scope, viewed, { ...next, at: 6 }]],
    ['another record', [scope, viewed, { ...next, id: 'other' }]],
    ['another beginning', [scope, viewed, { ...next, view: { ...view, at: BEGUN + 1 } }]],
    ['another MAC', [scope, viewed, { ...next, view: { ...view, mac: view.mac.replace(/^./, 'g') } }]],
    ['another filter', [scope, { ...viewed, filter: { model: 'small' } }, next]],
    ['more records', [scope, { ...viewed, limit: 200 }, next]],
    ['another organization', [{ ...scope, organizationId: 'other' }, viewed, next]],
    ['another session', [{ ...scope, actor: { ...scope.actor, session: 'other' } }, viewed, next]],
    ['another user', [{ ...scope, actor: { ...scope.actor, userId: 'grace' } }, viewed, next]],
    [
      'the administration token',
      [{ ...scope, actor: { ...NO_ACTOR, administrator: 'admin_token' } }, viewed, next],
    ],
    ['another pepper', [{ ...scope, pepperRing: ring('second') }, viewed, next]],
  ]
  for (const [name, given] of others) expect(viewBegunAt(...given), name).toBeNull()
})
