import { describe, expect, it } from 'vitest'
import type { Route } from '../../../src/gateway/catalogue/call-routes.ts'
import {
  backoffOf,
  beginTrial,
  heardLately,
  noteAnswer,
  noteRefused,
  noteSilence,
  noteUnreachable,
  requestedWait,
} from '../../../src/gateway/upstreams/route-health.ts'
import { inOrder } from '../../../src/gateway/upstreams/route-order.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)
let made = 0

/** A route of a provider that no other test knows. */
function someRoute(provider = `provider-${made++}`, upstreamModel = 'm'): Route {
  const operation = 'chat_completions'
  const connection = {
    id: provider,
    name: provider,
    kind: 'openai-compatible',
    baseUrl: 'https://x',
    credential: { parts: {}, secrets: [] },
  }
  return { provider: connection as Route['provider'], upstreamModel, operation, translation: null }
}

const answer = (status: number, headers: Record<string, string> = {}) => new Response('', { status, headers })

describe('how long an upstream asks to wait', () => {
  it.each<[Record<string, string>, number | null]>([
    [{}, null],
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': ' 1.5 ' }, 1_500],
    [{ 'retry-after-ms': '250', 'retry-after': '1' }, 250],
    [{ 'retry-after-ms': 'soon', 'retry-after': '1' }, 1_000],
    [{ 'retry-after': new Date(NOW + 9_000).toUTCString() }, 9_000],
    [{ 'retry-after': new Date(NOW - 9_000).toUTCString() }, 0],
    [{ 'retry-after': '-5' }, null],
    [{ 'retry-after': '1e9' }, null],
    [{ 'retry-after': 'later' }, null],
    [{ 'retry-after': '' }, null],
    [{ 'retry-after': '7', 'x-should-retry': 'false' }, null],
  ])('%j: %s', (headers, milliseconds) => {
    expect(requestedWait(new Headers(headers), NOW)).toBe(milliseconds)
  })
})

describe('a route that asked to wait', () => {
  it('rests so long, and no longer than a minute', () => {
    const route = someRoute()
    expect(noteAnswer(route, answer(429, { 'retry-after': '7' }), NOW)).toBe(NOW + 7_000)
    expect(backoffOf(route, NOW + 6_999)).toEqual({ reason: 'requested', until: NOW + 7_000 })
    expect(backoffOf(route, NOW + 7_000)).toBeNull()
    noteAnswer(route, answer(503, { 'retry-after': '86400' }), NOW)
    expect(backoffOf(route, NOW + 59_999)?.until).toBe(NOW + 60_000)
  })

  it('is that route alone, until it answers without asking', () => {
    const route = someRoute()
    noteAnswer(route, answer(429, { 'retry-after': '7' }), NOW)
    expect(backoffOf(someRoute(route.provider.id, 'another'), NOW)).toBeNull()
    expect(noteAnswer(route, answer(200, { 'retry-after': '7' }), NOW)).toBeNull()
    expect(backoffOf(route, NOW)).toBeNull()
  })
})

describe('a provider that could not be reached', () => {
  it('rests with all its routes, then one call tries it while the others go on without', () => {
    const route = someRoute()
    const sibling = someRoute(route.provider.id, 'another')
    noteUnreachable(route, NOW)
    for (const each of [route, sibling]) expect(backoffOf(each, NOW + 4_999)?.reason).toBe('failed')
    const later = NOW + 5_000
    expect(backoffOf(route, later)).toBeNull()
    beginTrial(route, later)
    expect(backoffOf(sibling, later)?.reason).toBe('failed')
    noteAnswer(route, answer(400), later + 1)
    expect(backoffOf(sibling, later + 1)).toBeNull()
  })

  it.each([521, 522, 523, 525, 526, 530])('is also one that the platform answers %i for', (status) => {
    const route = someRoute()
    noteAnswer(route, answer(status), NOW)
    expect(backoffOf(route, NOW)?.reason).toBe('failed')
    expect(heardLately(route.provider, NOW)).toBe(false)
  })
})

describe('a route whose provider refused the gateway', () => {
  const renewed = (route: Route, change: object): Route => ({
    ...route,
    provider: { ...route.provider, ...change },
  })

  it('rests alone for a minute, then one call tries it while the others go on without', () => {
    const route = someRoute()
    noteRefused(route, NOW)
    expect(backoffOf(route, NOW + 59_999)?.reason).toBe('refused')
    expect(backoffOf(someRoute(route.provider.id, 'another'), NOW)).toBeNull()
    const later = NOW + 60_000
    expect(backoffOf(route, later)).toBeNull()
    beginTrial(route, later)
    expect(backoffOf(route, later + 4_999)?.reason).toBe('refused')
    expect(backoffOf(route, later + 5_000)).toBeNull()
  })

  it('rests until it serves a call: another error does not show that it accepts the credential', () => {
    const route = someRoute()
    noteRefused(route, NOW)
    noteAnswer(route, answer(429), NOW + 1)
    expect(backoffOf(route, NOW + 1)?.reason).toBe('refused')
    noteAnswer(route, answer(200), NOW + 2)
    expect(backoffOf(route, NOW + 2)).toBeNull()
  })

  it.each([
    ['credential', { credential: { parts: { secret: 'new' }, secrets: ['new'] } }],
    ['address', { baseUrl: 'https://y' }],
  ])('rests until its entry has another %s', (_, change) => {
    const route = someRoute()
    noteRefused(route, NOW)
    expect(backoffOf(renewed(route, {}), NOW)?.reason).toBe('refused')
    expect(backoffOf(renewed(route, change), NOW)).toBeNull()
  })
})

it('a route that stayed silent rests alone', () => {
  const route = someRoute()
  noteSilence(route, NOW)
  expect(backoffOf(route, NOW)?.reason).toBe('failed')
  expect(backoffOf(someRoute(route.provider.id, 'another'), NOW)).toBeNull()
  beginTrial(route, NOW + 5_000)
  expect(backoffOf(route, NOW + 5_001)?.reason).toBe('failed')
  noteAnswer(route, answer(200), NOW + 5_002)
  expect(backoffOf(route, NOW + 5_002)).toBeNull()
})

it('a provider counts as reachable for a moment after it answered', () => {
  const route = someRoute()
  expect(heardLately(route.provider, NOW)).toBe(false)
  noteAnswer(route, answer(500), NOW)
  expect(heardLately(route.provider, NOW + 999)).toBe(true)
  expect(heardLately(route.provider, NOW + 1_000)).toBe(false)
})

describe('the order of routes', () => {
  const order = (routes: Route[]) => inOrder(routes, NOW).map((each) => routes.indexOf(each))

  it('is that of the catalogue', () => {
    expect(order([someRoute(), someRoute(), someRoute()])).toEqual([0, 1, 2])
  })

  it('has those that rest at its end, the shortest wait first', () => {
    const routes = [someRoute(), someRoute(), someRoute(), someRoute(), someRoute(), someRoute()] as const
    noteRefused(routes[5], NOW)
    noteAnswer(routes[0], answer(429, { 'retry-after': '9' }), NOW)
    noteAnswer(routes[1], answer(429, { 'retry-after': '3' }), NOW)
    noteUnreachable(routes[2], NOW)
    expect(order([...routes])).toEqual([3, 4, 2, 1, 0, 5])
  })
})
