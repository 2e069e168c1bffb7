import { describe, expect, it } from 'vitest'
import { resumedEmitter } from '../../../src/responses/emitter/create-emitter.ts'
import type { EmitterOptions } from '../../../src/responses/emitter/emitter.ts'
import { sealedItems, withResults } from '../../../src/responses/emitter/output-items.ts'
import { toolRules } from '../../../src/responses/tools/tool-rules.ts'
import { responseSettings } from '../../../src/wire/responses.ts'
import { COMPLETED, Emitting, say } from './emitting.ts'
import { parsed } from './items.ts'

const KEYS = { configuration: { VAULT_KEYS: new Map(), KEY_PEPPERS: new Map() } }
const OWNER = { organizationId: 'org_1', userId: 'user_1' }

const action = { type: 'search', query: 'bees', queries: ['bees'] }
const sources = [{ type: 'url', url: 'https://a.example/' }]
const results = [{ title: 'Bees', url: 'https://a.example/', snippet: 'About bees.' }]
const RESULT = { status: 'completed' as const, members: { action: { ...action, sources }, results } }
const WHOLE = { action: { ...action, sources }, results }

const OPTIONS: Partial<EmitterOptions> = {
  nameOf: () => ({ itemType: 'web_search_call', members: {} }),
  purposeOf: () => 'hosted',
}

/** A response with one search, as its tool ended it. */
function searching(...includes: string[]): Emitting {
  const emitting = new Emitting({ ...OPTIONS, includes: new Set(includes) })
  emitting.emitter.begin()
  emitting.feed(say.call(0, 'web_search', 'call_1'), say.args(0, '{"query":"bees"}'))
  emitting.emitter.endTurn()
  return emitting
}

const storedOf = ({ emitter }: Emitting) =>
  sealedItems(KEYS, OWNER, emitter.response.output, emitter).map(({ bytes }) => parsed(bytes))

describe('a web search in a stream', () => {
  it.each([
    [[], { action }],
    [['web_search_call.results'], { action, results }],
    [['web_search_call.action.sources'], { action: { ...action, sources } }],
    [['web_search_call.results', 'web_search_call.action.sources'], WHOLE],
  ])('that includes %j has no more than that, and is stored whole', (includes, members) => {
    const emitting = searching(...includes)
    emitting.emitter.addResult('call_1', RESULT)
    emitting.emitter.end(COMPLETED)
    emitting.emitter.terminate()
    const [done] = emitting.of('output_item.done')
    const { id, ...item } = (done?.item ?? {}) as Record<string, unknown>
    expect(item).toEqual({ type: 'web_search_call', status: 'completed', call_id: 'call_1', ...members })
    expect(emitting.text.includes('About bees.')).toBe('results' in members)
    expect(storedOf(emitting)).toMatchObject([{ id, ...WHOLE }])
    expect(emitting.violations).toEqual([])
  })

  it('continues the conversation whole', () => {
    const emitting = searching()
    const before = sealedItems(KEYS, OWNER, emitting.emitter.response.output, emitting.emitter)
    emitting.emitter.addResult('call_1', RESULT)
    const [item] = withResults(before, emitting.emitter.response.output, emitting.emitter)
    expect(item && parsed(item.bytes)).toMatchObject(WHOLE)
  })

  it('that fails has its action and its error', () => {
    const emitting = searching()
    emitting.emitter.addResult('call_1', { status: 'failed', members: { action, error: 'It failed.' } })
    expect(emitting.of('output_item.done')).toMatchObject([
      { item: { status: 'failed', action, error: 'It failed.' } },
    ])
  })
})

describe('a web search after a restart', () => {
  const settings = responseSettings.parse({ model: 'm' })
  const head = { owner: OWNER } as Parameters<typeof resumedEmitter>[1]
  const resumed = (emitting: Emitting, items: ReturnType<typeof sealedItems>) => {
    const log = {
      lastSequence: emitting.emitted.length,
      payloads: () => emitting.emitted.map(({ payload }) => payload),
      append: (event: (typeof emitting.emitted)[number]) => emitting.emitted.push(event),
    } as unknown as Parameters<typeof resumedEmitter>[4]
    return resumedEmitter(KEYS, head, settings, toolRules(settings, []), log, items)
  }

  it('of an earlier turn is stored whole', () => {
    const emitting = searching()
    emitting.emitter.addResult('call_1', RESULT)
    const items = sealedItems(KEYS, OWNER, emitting.emitter.response.output, emitting.emitter)
    const emitter = resumed(emitting, items)
    const [item] = sealedItems(KEYS, OWNER, emitter.response.output, emitter)
    expect(item && parsed(item.bytes)).toMatchObject(WHOLE)
  })

  it('whose result was emitted, and whose turn was not stored again, is stored whole', () => {
    const emitting = searching()
    const items = sealedItems(KEYS, OWNER, emitting.emitter.response.output, emitting.emitter)
    emitting.emitter.addResult('call_1', RESULT)
    const count = emitting.emitted.length
    const emitter = resumed(emitting, items)
    emitter.addResult('call_1', RESULT)
    expect(emitting.emitted).toHaveLength(count)
    const [item] = withResults(items, emitter.response.output, emitter)
    expect(item && parsed(item.bytes)).toMatchObject(WHOLE)
  })
})
