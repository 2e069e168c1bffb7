import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { callEntries, flush } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import {
  addKey,
  addMember,
  administrator,
  bearer,
  createTenant,
  type Tenant,
  uniqueName,
} from '../harness/tenant.ts'

interface Row {
  id: string
  request_id: string
  user_id: string
  status?: number
}

interface Frame {
  id: string
  event: string
  data: { opened: Row[]; closed: Row[]; skipped: boolean; reason?: string }
}

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const api = () => administrator(gateway())
const open: Reader[] = []
afterEach(() => {
  for (const reader of open.splice(0)) reader.close()
})

/** A reader of live calls, as a browser's EventSource. */
class Reader {
  readonly #abort = new AbortController()
  readonly frames: Frame[] = []
  status = 0
  ended = false

  constructor(base: string, query = '', headers: Record<string, string> = bearer(gateway().adminToken)) {
    open.push(this)
    void this.#read(`${gateway().baseUrl}/api${base}/calls/tail${query}`, headers)
  }

  close(): void {
    this.#abort.abort()
  }

  opened = () => this.frames.flatMap(({ data }) => data.opened ?? [])
  closed = () => this.frames.flatMap(({ data }) => data.closed ?? [])
  lastId = () => this.frames.at(-1)?.id ?? ''
  async answered(): Promise<this> {
    await vi.waitFor(() => expect(this.status).toBeGreaterThan(0), { timeout: 10_000 })
    return this
  }

  async #read(url: string, headers: Record<string, string>): Promise<void> {
    try {
      const answer = await fetch(url, { headers, signal: this.#abort.signal })
      this.status = answer.status
      let text = ''
      for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const parts = (text + piece).split('\n\n')
        text = parts.pop() ?? ''
        this.frames.push(...parts.flatMap(frameOf))
      }
      this.ended = true
    } catch {
      this.ended = true
    }
  }
}

function frameOf(text: string): Frame[] {
  const lines = new Map(
    text.split('\n').map((line) => [line.split(': ')[0] ?? '', line.slice(line.indexOf(': ') + 2)]),
  )
  const data = lines.get('data')
  return data === undefined
    ? []
    : [{ id: lines.get('id') ?? '', event: lines.get('event') ?? '', data: JSON.parse(data) }]
}

async function callOf(key: string, content = 'Hello'): Promise<string> {
  const body = JSON.stringify({
    model: 'scripted-chat',
    max_tokens: 50,
    messages: [{ role: 'user', content }],
  })
  const url = `${gateway().baseUrl}/v1/chat/completions`
  const answer = await send(url, { method: 'POST', headers: bearer(key), body })
  return String(answer.headers['x-request-id'])
}

const requestsOf = (rows: Row[]) => rows.map((row) => row.request_id)
const soon = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 50 })

async function person(): Promise<{ userId: string; key: string; browser: ConsoleBrowser }> {
  const userId = await addMember(gateway(), tenant.base)
  const { key } = await addKey(gateway(), tenant.base, userId)
  return { userId, key, browser: await signedInBrowser(gateway(), tenant.base, userId) }
}

describe('live calls', () => {
  it('are told when they are admitted and when they end, as the list has them', async () => {
    const reader = await new Reader(tenant.base).answered()
    const signal = uniqueName('held')
    const call = callOf(tenant.key, `script:slow-headers signal=${signal}`)
    await soon(() => expect(reader.opened()).toHaveLength(1))
    expect(reader.closed()).toEqual([])
    await upstreamControl(gateway()).release(signal)
    const requestId = await call
    await soon(() => expect(requestsOf(reader.closed())).toEqual([requestId]))
    expect(reader.opened()[0]).toMatchObject({ id: reader.closed()[0]?.id, request_id: requestId })
    await callEntries(gateway(), tenant, 1, ({ request_id: id }) => id === requestId)
    const listed = await api().ask<{ data: Row[] }>('GET', `${tenant.base}/calls?request_id=${requestId}`)
    expect(reader.closed()).toEqual(listed.data)
  })

  it('that are open already are told first', async () => {
    const signal = uniqueName('held')
    const call = callOf(tenant.key, `script:slow-headers signal=${signal}`)
    await vi.waitFor(async () => expect((await upstreamControl(gateway()).waiting())[signal]).toBe(1))
    const reader = new Reader(tenant.base, '?seconds=0')
    await soon(() => expect(reader.ended).toBe(true))
    expect(reader.opened()).toHaveLength(1)
    expect(reader.frames.at(-1)).toMatchObject({ event: 'end', data: { reason: 'time' } })
    await upstreamControl(gateway()).release(signal)
    await call
  })

  it('that were missed are told to a reader that comes back', async () => {
    const first = await new Reader(tenant.base).answered()
    const seen = await callOf(tenant.key)
    await soon(() => expect(requestsOf(first.closed())).toContain(seen))
    const id = first.lastId()
    first.close()
    const missed = [await callOf(tenant.key), await callOf(tenant.key)]
    // What Postgres has stays in the ledger for a day.
    await callEntries(gateway(), tenant, 2, ({ request_id: of }) => missed.includes(of))
    await flush(gateway(), tenant)
    const again = new Reader(tenant.base, '', { ...bearer(gateway().adminToken), 'last-event-id': id })
    await soon(() => expect(requestsOf(again.closed())).toEqual(missed))
    const byQuery = new Reader(tenant.base, `?after=${id}&seconds=0`)
    await soon(() => expect(requestsOf(byQuery.closed())).toEqual(missed))
  })

  it('are the own ones for a member, and those that fit a filter', async () => {
    const [ada, grace] = await Promise.all([person(), person()])
    const reader = await new Reader(tenant.base, '', ada.browser.headers()).answered()
    const filtered = await new Reader(tenant.base, `?user_id=${grace.userId}&outcome=ok`).answered()
    const theirs = await callOf(grace.key)
    const own = await callOf(ada.key)
    await soon(() => expect(requestsOf(reader.closed())).toEqual([own]))
    await soon(() => expect(requestsOf(filtered.closed())).toEqual([theirs]))
    for (const row of [...reader.opened(), ...reader.closed()]) expect(row.user_id).toBe(ada.userId)
    const other = new Reader(
      tenant.base,
      `?user_id=${grace.userId}&seconds=0&after=${'0.0'}`,
      ada.browser.headers(),
    )
    await soon(() => expect(other.ended).toBe(true))
    expect([...other.opened(), ...other.closed()]).toEqual([])
  })

  it('are those of the users of a group, of whom none are of another organization', async () => {
    const [ada, grace] = await Promise.all([person(), person()])
    const other = await createTenant(gateway())
    const newGroup = async (base: string) =>
      (await api().ask<{ id: string }>('POST', `${base}/groups`, { name: uniqueName('group') })).id
    const [groupId, foreign] = await Promise.all([newGroup(tenant.base), newGroup(other.base)])
    await api().ask('PUT', `${tenant.base}/groups/${groupId}/members/${ada.userId}`)
    const query = (id: string) => `?group_id=${id}`
    const [reader, ofNone] = await Promise.all([
      new Reader(tenant.base, query(groupId)).answered(),
      new Reader(tenant.base, query(foreign)).answered(),
    ])
    await callOf(grace.key)
    const first = await callOf(ada.key)
    await soon(() => expect(requestsOf(reader.closed())).toEqual([first]))
    expect([...ofNone.opened(), ...ofNone.closed()]).toEqual([])
    // A reader of before the change ends, so that the next one has the members of now.
    await api().ask('PUT', `${tenant.base}/groups/${groupId}/members/${grace.userId}`)
    await soon(() => expect(reader.frames.at(-1)?.data).toEqual({ reason: 'rights' }))
    const again = await new Reader(tenant.base, query(groupId)).answered()
    const second = await callOf(grace.key)
    await soon(() => expect(requestsOf(again.closed())).toContain(second))
  })

  it('end for a reader whose rights change', async () => {
    const { userId, browser } = await person()
    const reader = await new Reader(tenant.base, '', browser.headers()).answered()
    await api().ask('DELETE', `${tenant.base}/users/${userId}`)
    await soon(() => expect(reader.frames.at(-1)?.data).toEqual({ reason: 'rights' }))
    expect(reader.ended).toBe(true)
    expect((await new Reader(tenant.base, '', browser.headers()).answered()).status).toBe(401)
  })

  it('are for twenty readers of an organization', async () => {
    const busy = await createTenant(gateway())
    const readers = Array.from({ length: 20 }, () => new Reader(busy.base))
    for (const reader of readers) expect((await reader.answered()).status).toBe(200)
    expect((await new Reader(busy.base).answered()).status).toBe(429)
    expect((await new Reader(tenant.base).answered()).status).toBe(200)
  })

  it.each(['x', '0', '0.x', '99.1_', '0.1 '])('after %j are refused', async (after) => {
    const reader = await new Reader(tenant.base, `?after=${encodeURIComponent(after)}`).answered()
    expect(reader.status).toBe(400)
  })

  it('of an organization with shards are of all of them', async () => {
    const sharded = await createTenant(gateway(), { organization: { ledger_shards: 4 } })
    const users = await Promise.all(Array.from({ length: 6 }, () => addMember(gateway(), sharded.base)))
    const keys = await Promise.all(users.map((user) => addKey(gateway(), sharded.base, user)))
    const reader = await new Reader(sharded.base).answered()
    const made = await Promise.all(keys.map(({ key }) => callOf(key)))
    await soon(() => expect(requestsOf(reader.closed()).sort()).toEqual(made.sort()))
    expect(reader.lastId().split('_')).toHaveLength(4)
  })
})
