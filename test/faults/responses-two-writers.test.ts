import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { upstreamControl } from '../harness/gateway.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { type CallResult, errorOf } from '../harness/model-calls.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { uniqueName } from '../harness/tenant.ts'
import { Random } from './support/random.ts'
import { askJson, read, type ToldResponse } from './support/response-readers.ts'
import { endedRows, inParallel, RESPONSE_SEEDS, RUNS } from './support/response-trials.ts'

const WRITERS = 4
const CONVERSATIONS = 5
const CANNED = 'This is the scripted answer, with an é and a 🦉.'

let gateway: StartedGateway
beforeAll(async () => {
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    variables: { LEDGER_FLUSH_MS: '100', LIMITS_TIMEOUT_MS: '20000' },
  })
})
afterAll(() => gateway?.stop())

interface Writing {
  name: string
  result: CallResult
  /** The response, if the request was admitted. */
  response: ToldResponse | null
}

interface Item {
  id: string
  content: Array<{ text: string }>
}

async function write(key: string, script: string, place: object): Promise<Writing> {
  const name = uniqueName('said')
  const body = { model: 'scripted-chat', input: `${name} ${script}`, ...place }
  const result = await read(gateway, { key, method: 'POST', path: '/v1/responses', body }).result
  if (result.status !== 200) {
    expect(result).toMatchObject({ status: 400, end: 'complete' })
    expect(errorOf(result)).toMatchObject({ type: 'invalid_request_error', code: 'conversation_locked' })
    return { name, result, response: null }
  }
  const response = JSON.parse(result.text) as ToldResponse
  expect(response).toMatchObject({ status: 'completed', output_text: CANNED })
  return { name, result, response }
}

/** A conversation, and everything that was tried in it. */
class Conversation {
  readonly writings: Writing[] = []
  readonly #key: string
  readonly #id: string
  #last: string

  constructor(key: string, first: Writing) {
    this.#key = key
    this.#id = first.response?.conversation?.id ?? ''
    this.#last = first.response?.id ?? ''
    this.writings.push(first)
  }

  /** Several write at once. The one that is admitted is held at the upstream until all others have been refused. */
  async holdOne(): Promise<void> {
    const signal = uniqueName('writers')
    const control = upstreamControl(gateway)
    const previous = { previous_response_id: this.#last }
    const undecided = new Set<number>()
    const all = Array.from({ length: WRITERS }, async (_, index) => {
      undecided.add(index)
      const place = index === 1 ? previous : { conversation: this.#id }
      const writing = await write(this.#key, `script:stall signal=${signal}`, place)
      undecided.delete(index)
      return writing
    })
    await vi.waitFor(() => expect(undecided.size).toBe(1), { timeout: 20_000, interval: 10 })
    await vi.waitFor(async () => expect((await control.waiting())[signal]).toBe(1), { timeout: 5_000 })
    await control.release(signal)
    const writings = await Promise.all(all)
    expect(writings.filter(({ response }) => response !== null)).toHaveLength(1)
    await this.#check(writings)
  }

  /** Several writers start together. The admitted one ends at once; then another may be admitted. */
  async race(random: Random): Promise<void> {
    const span = random.integer(0, 60)
    const pauses = Array.from({ length: WRITERS }, () => random.integer(0, span))
    const writings = await Promise.all(
      pauses.map(async (pause) => {
        await new Promise((resolve) => setTimeout(resolve, pause))
        return write(this.#key, 'script:canned', { conversation: this.#id })
      }),
    )
    expect(writings.some(({ response }) => response !== null)).toBe(true)
    await this.#check(writings)
  }

  /** Admitted responses are stored once, each input with its output; refused ones are not stored. */
  async #check(writings: Writing[]): Promise<void> {
    this.writings.push(...writings)
    const admitted = this.writings.filter(({ response }) => response !== null)
    for (const { response } of admitted) expect(response?.conversation?.id).toBe(this.#id)
    const texts = (await this.#items()).map(({ content }) => content[0]?.text ?? '')
    const names = texts.filter((_, index) => index % 2 === 0).map((text) => text.split(' ')[0] ?? '')
    expect(names.toSorted()).toEqual(admitted.map(({ name }) => name).toSorted())
    expect(texts.filter((_, index) => index % 2 === 1)).toEqual(names.map(() => CANNED))
    this.#last = admitted.find(({ name }) => name === names.at(-1))?.response?.id ?? ''
  }

  async #items(): Promise<Item[]> {
    const items: Item[] = []
    for (let more = true; more; ) {
      const after = items.at(-1)?.id
      const query = `order=asc&limit=100${after === undefined ? '' : `&after=${after}`}`
      const path = `/v1/conversations/${this.#id}/items?${query}`
      const page = await askJson<{ data: Item[]; has_more: boolean }>(gateway, { key: this.#key, path })
      items.push(...page.data)
      more = page.has_more
    }
    return items
  }
}

describe('several writers on a conversation', () => {
  it.each(RESPONSE_SEEDS)(
    'one is admitted at a time, and the others leave nothing (seed %i)',
    async (seed) => {
      const random = new Random(seed)
      const tenant = await createBusyTenant(gateway, 10_000_000_000)
      const rounds = Math.ceil(RUNS / CONVERSATIONS)
      const conversations = await inParallel(CONVERSATIONS, CONVERSATIONS, async () => {
        const conversation = new Conversation(tenant.key, await write(tenant.key, 'script:canned', {}))
        for (let round = 0; round < rounds; round += 1) {
          await (random.chance(0.5) ? conversation.holdOne() : conversation.race(random))
        }
        return conversation
      })
      const writings = conversations.flatMap((conversation) => conversation.writings)
      const admitted = writings.flatMap(({ response }) => (response === null ? [] : [response.id]))
      expect(writings.length - admitted.length).toBeGreaterThan(RUNS)
      const rows = await endedRows(gateway, tenant)
      expect(rows.map(({ id }) => id).toSorted()).toEqual(admitted.toSorted())
      const results = writings.map(({ result }) => result)
      const { calls } = await expectWholeLedger(gateway, tenant, results)
      expect(calls.filter(({ status }) => status === 200)).toHaveLength(admitted.length)
      expect(calls.filter(({ status, cost }) => status !== 200 && cost !== 0)).toEqual([])
    },
  )
})
