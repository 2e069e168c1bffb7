import { describe, expect, it } from 'vitest'
import { costOf, NO_USAGE, type Prices } from '../../../src/calls/usage.ts'
import { chargeBasis } from '../../../src/gateway/calls/charge-basis.ts'
import { answerCharge, type ChargeBasis } from '../../../src/gateway/calls/charges.ts'
import { withContainerTime } from '../../../src/gateway/calls/container-time.ts'
import { routesFor } from '../../../src/gateway/catalogue/call-routes.ts'
import type { CatalogueModel } from '../../../src/gateway/catalogue/model-catalogue.ts'
import { OPERATIONS } from '../../../src/gateway/protocols/operations.ts'
import { usageOfMessages } from '../../../src/gateway/protocols/reported-usage.ts'
import { requestEdits } from '../../../src/gateway/protocols/request-edits.ts'
import type { Provider } from '../../../src/gateway/providers/provider.ts'
import type { Usage } from '../../../src/ledger/audit-record.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

type Json = Record<string, unknown>
type Protocol = 'chat_completions' | 'completions' | 'messages'

const PRICES: Prices = {
  input: 3_000_000,
  output: 15_000_000,
  cacheRead: 300_000,
  cacheWrite5Minutes: 3_750_000,
  cacheWrite1Hour: 6_000_000,
}
const PRICED: Prices = {
  ...PRICES,
  units: {
    web_search: 10_000_000_000,
    container_minutes: 833_333_334,
    audio_input: 40_000_000,
    audio_output: 80_000_000,
    image_output: 60_000_000,
    search_sources: 25_000_000_000,
  },
  classes: { 'service_tier=priority': 200, 'speed=fast': 600, 'inference_geo=us': 110 },
  longContext: { above: 20_000, inputPercent: 200, outputPercent: 150 },
}
const KINDS: Record<Protocol, Provider['kind']> = {
  chat_completions: 'openai-compatible',
  completions: 'openai-compatible',
  messages: 'anthropic',
}

function modelOf(
  protocol: Protocol,
  more: Partial<CatalogueModel> = {},
  allowsUnpriced = false,
): CatalogueModel {
  const provider: Provider = {
    id: protocol,
    name: protocol,
    kind: KINDS[protocol],
    baseUrl: 'https://example.com',
    credential: { parts: { secret: 's' }, secrets: ['s'] },
    allowsUnpriced,
  }
  return {
    id: 'm',
    ownedBy: 'o',
    created: 0,
    contextWindow: 30_000,
    maxOutputTokens: 4_000,
    prices: PRICED,
    capabilities: ['completions'],
    routes: [{ provider, upstreamModel: 'm' }],
    ...more,
  }
}

function basisOf(
  protocol: Protocol,
  members: Json,
  headers: Record<string, string> = {},
  model = modelOf(protocol),
) {
  const texts =
    protocol === 'completions' ? { prompt: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] }
  const limit = protocol === 'messages' ? { max_tokens: 100 } : {}
  const body = new TextEncoder().encode(JSON.stringify({ model: 'm', ...texts, ...limit, ...members }))
  const outline = drained(OPERATIONS[protocol].protocol.outline(body))
  return { body, ...chargeBasis(outline, model, protocol, routesFor(model, protocol), new Headers(headers)) }
}

/** Maximum that a provider may bill for a request, from its documentation and not from the gateway's code. */
interface Worst {
  input: number
  output: number
  units: Record<string, number>
  /** Tokens of the results of tools at the provider, of which each is read by all later rounds. */
  results: number[]
}

/** All reads of a context: of the request, and after each round of tools again. */
function readsOf({ input, output, results }: Worst, window: number): number {
  let context = input
  let total = input
  for (const [round, tokens] of results.entries()) {
    context = Math.min(window, context + tokens + (round === 0 ? output : 0))
    total += context
  }
  return total
}

/** A member or header, with its effect on the worst case. */
interface Lever {
  protocols: readonly Protocol[]
  members?: Json
  headers?: Record<string, string>
  raises(worst: Worst, window: number): void
}

const ALL = ['chat_completions', 'completions', 'messages'] as const
const CHAT = ['chat_completions'] as const
const MESSAGES = ['messages'] as const
const LEVERS: readonly Lever[] = [
  { protocols: CHAT, members: { max_tokens: 3 }, raises: () => {} },
  {
    protocols: ['chat_completions', 'completions'],
    members: { max_completion_tokens: 9_000 },
    raises(worst) {
      worst.output = Math.max(worst.output, 9_000)
    },
  },
  {
    protocols: CHAT,
    members: { max_new_tokens: 7_000 },
    raises(worst) {
      worst.output = Math.max(worst.output, 7_000)
    },
  },
  {
    protocols: CHAT,
    members: { reasoning: { max_tokens: 12_000 } },
    raises(worst) {
      worst.output += 12_000
    },
  },
  {
    protocols: MESSAGES,
    members: { thinking: { type: 'enabled', budget_tokens: 12_000 } },
    headers: { 'anthropic-beta': 'interleaved-thinking-2025-05-14' },
    raises(worst) {
      worst.output += 12_000
    },
  },
  {
    protocols: MESSAGES,
    headers: { 'provider-beta': 'prompt-caching-2024-07-31, context-1m-2025-08-07' },
    members: { system: 'x'.repeat(100_000) },
    raises(worst) {
      worst.input += 100_000
    },
  },
  {
    protocols: MESSAGES,
    members: {
      messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] }],
    },
    raises(worst, window) {
      worst.input = window
    },
  },
  {
    protocols: MESSAGES,
    members: { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }] },
    raises(worst) {
      worst.results = Array(3).fill(25_000)
      worst.units.web_search = 3
    },
  },
  {
    protocols: MESSAGES,
    members: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    raises(worst) {
      worst.results = Array(5).fill(25_000)
      worst.units.web_search = 5
    },
  },
  {
    protocols: MESSAGES,
    members: { mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'm' }] },
    raises(worst, window) {
      worst.results = Array(10).fill(window)
    },
  },
  {
    protocols: MESSAGES,
    members: { container: 'c' },
    raises(worst, window) {
      worst.input = Math.max(worst.input, window)
      worst.units.container_minutes = 60
    },
  },
  { protocols: ALL, members: { service_tier: 'priority' }, raises: () => {} },
  { protocols: ALL, members: { speed: 'fast' }, raises: () => {} },
  { protocols: ALL, members: { inference_geo: 'us' }, raises: () => {} },
  {
    protocols: CHAT,
    members: { modalities: ['text', 'audio'], audio: { voice: 'v', format: 'mp3' } },
    raises(worst) {
      worst.units.audio_output = 1
    },
  },
  {
    protocols: CHAT,
    members: { modalities: ['image'] },
    raises(worst) {
      worst.units.image_output = 1
    },
  },
]
const FACTORS: ReadonlyArray<[Protocol, Json, number]> = [
  ['chat_completions', { n: 5 }, 5],
  ['chat_completions', { best_of: 4 }, 4],
  ['completions', { best_of: 7, n: 2 }, 7],
  ['completions', { prompt: ['a', 'b', 'c'] }, 3],
]

/** The dearest usage of the worst case, by trying every class of input and output. */
function dearest({ input, output, units }: Worst, prices: Prices): number {
  const { audio_output, image_output, ...fees } = units
  const inputs = (['input', 'cacheRead', 'cacheWrite5Minutes', 'cacheWrite1Hour'] as const).map((name) => ({
    [name]: input,
  }))
  const outputs: Array<Partial<Usage>> = [{ output }]
  if (audio_output) outputs.push({ units: { ...fees, audio_output: output } })
  if (image_output) outputs.push({ units: { ...fees, image_output: output } })
  const none: Usage = {
    input: 0,
    cacheRead: 0,
    cacheWrite5Minutes: 0,
    cacheWrite1Hour: 0,
    output: 0,
    reasoning: 0,
  }
  const costs = inputs.flatMap((of) =>
    outputs.map((to) => costOf({ ...none, units: fees, ...of, ...to }, prices)),
  )
  return Math.max(...costs)
}

function tryLevers(seed: number): { cost: number; reserve: number } {
  const random = new SeededRandom(seed)
  const protocol = ALL[random.below(3)] as Protocol
  const levers = LEVERS.filter(({ protocols }) => protocols.includes(protocol) && random.chance(0.4))
  const [, factorMembers, factor] = FACTORS.filter(([of]) => of === protocol && random.chance(0.5))[0] ?? [
    0,
    {},
    1,
  ]
  const members = Object.assign({}, factorMembers, ...levers.map((lever) => lever.members ?? {}))
  const headers = Object.assign({}, ...levers.map((lever) => lever.headers ?? {}))
  const { body, basis } = basisOf(protocol, members, headers)
  const limited = protocol === 'messages' ? 100 : members.max_tokens
  const window = headers['provider-beta'] ? 1_000_000 : 30_000
  const worst: Worst = { input: 0, output: limited ?? 4_000, units: {}, results: [] }
  for (const lever of levers) lever.raises(worst, window)
  worst.input = Math.max(worst.input, Math.min(body.length, window))
  return {
    cost: dearest({ ...worst, input: readsOf(worst, window), output: worst.output * factor }, basis.prices),
    reserve: basis.bounds.reserve,
  }
}

describe('the reservation of a call', () => {
  it('covers the worst case of every combination of members and headers', () => {
    for (let seed = 1; seed <= 3_000; seed++) {
      const { cost, reserve } = tryLevers(seed)
      expect(reserve, `seed ${seed}`).toBeGreaterThanOrEqual(cost)
    }
  })

  it('follows the window that a beta header selects, and the prices of a long context', () => {
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07' }
    const { basis } = basisOf('messages', { system: 'x'.repeat(400_000) }, headers)
    expect(basis.bounds.inputTokens).toBeGreaterThan(400_000)
    expect(basis.bounds.reserve).toBeGreaterThan(400_000 * 6 * 2)
  })

  it('multiplies the prices of selected classes', () => {
    const plain = basisOf('messages', {}).basis.prices
    const fast = basisOf('messages', { speed: 'fast', inference_geo: 'us' }).basis.prices
    expect(fast.output).toBe(plain.output * 6.6)
    expect(fast.units?.web_search).toBe(plain.units?.web_search)
  })
})

describe('tools that run at the provider', () => {
  const RESULTS: Record<string, number> = { web_search: 25_000, web_fetch: 40_000, code_execution: 10_000 }

  /** A call as a provider may run it: rounds of parallel uses, each result as large as is documented. */
  function simulate(random: SeededRandom, uses: number[], { input, output, window }: Record<string, number>) {
    const left = uses.flatMap((count, index) => Array<number>(count).fill(Object.values(RESULTS)[index] ?? 0))
    let [context, total] = [Number(input), Number(input)]
    let written = Number(output)
    for (let round = 0; round < 10 && left.length > 0; round++) {
      const together = random.chance(0.3) ? 1 + random.below(left.length) : 1
      const text = random.below(written + 1)
      written -= text
      for (let use = 0; use < together; use++) context += left.splice(random.below(left.length), 1)[0] ?? 0
      context = Math.min(Number(window), context + text)
      total += context
    }
    return total
  }

  it('never read more than is reserved, whatever their rounds are', () => {
    for (let seed = 1; seed <= 2_000; seed++) {
      const random = new SeededRandom(seed)
      const uses = [1 + random.below(12), 1 + random.below(4), 10]
      const chosen = uses.map((count) => (random.chance(0.7) ? count : 0))
      const tools = [
        { type: 'web_search_20250305', name: 's', max_uses: uses[0] },
        { type: 'web_fetch_20250910', name: 'f', max_uses: uses[1], max_content_tokens: 40_000 },
        { type: 'code_execution_20250825', name: 'c' },
      ].filter((_, index) => chosen[index])
      const window = 30_000 + random.below(1_000_000)
      const { body, basis } = basisOf(
        'messages',
        { tools },
        {},
        modelOf('messages', { contextWindow: window }),
      )
      const read = simulate(random, chosen, { input: body.length, output: 100, window })
      expect(basis.bounds.inputTokens, `seed ${seed}`).toBeGreaterThanOrEqual(read)
    }
  })

  it('cost a modest balance with a search without a limit, which gets one', () => {
    const prices = { ...PRICES, units: { web_search: 10_000_000_000 } }
    const model = modelOf('messages', { contextWindow: 1_000_000, prices })
    const reserved = (tool: Json) =>
      basisOf('messages', { max_tokens: 4_096, tools: [{ name: 't', ...tool }] }, {}, model).basis.bounds
        .reserve
    const search = { type: 'web_search_20250305' }
    expect(reserved(search)).toBeLessThan(3_000_000)
    // Some bytes more.
    expect(reserved({ ...search, max_uses: 5 }) - reserved(search)).toBeLessThan(1_000)
    expect(reserved({ ...search, max_uses: 6 }) - reserved(search)).toBeGreaterThan(100_000)
    expect(reserved({ ...search, max_uses: 1 })).toBeLessThan(reserved(search) / 4)
  })

  const limited = (tools: string) => {
    const text = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[${tools}]}`
    const { protocol } = OPERATIONS.messages
    const outline = drained(protocol.outline(new TextEncoder().encode(text)))
    const { body: edits } = drained(requestEdits(outline, protocol, { upstreamModel: 'm', capabilities: [] }))
    const { tools: sent } = JSON.parse(
      new TextDecoder().decode(joinBytes(applyEdits(outline.body, edits).pieces)),
    )
    return { sent, tools: outline.serverTools, names: outline.toolLimits.names }
  }

  it.each([
    ['without one', '{"type":"web_search_20250305","name":"s"}', 5],
    ['that is null', '{"max_uses":null,"type":"web_search_20250305","name":"s"}', 5],
    ['given twice, once as null', '{"max_uses":9,"type":"web_fetch_20250910","max_uses":null}', 9],
  ])('get a limit %s', (_, tool, most) => {
    const { sent, tools, names } = limited(tool)
    expect(sent[0].max_uses).toBe(5)
    expect(tools[0]).toMatchObject({ mostUses: most })
    expect(names).toHaveLength(1)
  })

  it.each([
    '{"type":"web_search_20250305","name":"s","max_uses":2}',
    '{"name":"own","input_schema":{"type":"object"}}',
    '{"type":"code_execution_20250825","name":"c"}',
    '{"type":"bash_20250124","name":"bash"}',
  ])('are sent as they are: %s', (tool) => {
    const { sent, names } = limited(tool)
    expect(sent).toEqual([JSON.parse(tool)])
    expect(names).toEqual([])
  })

  it('search once for each chat completion, which its usage does not state', () => {
    const search = basisOf('chat_completions', { web_search_options: {} }).basis
    const { usage, cost } = answerCharge(search, { ...NO_USAGE, input: 1 }, 0)
    expect(usage).toMatchObject({ units: { web_search: 1 } })
    expect(cost).toBe(10_000 + costOf({ ...NO_USAGE, input: 1 }, search.prices))
    const routes = [...modelOf('chat_completions').routes, ...modelOf('messages').routes]
    const both = basisOf('chat_completions', { web_search_options: {} }, {}, modelOf('messages', { routes }))
    expect(both.basis.fixedUnits).toBeUndefined()
  })

  it('of chat completions get no limit', () => {
    const { protocol } = OPERATIONS.chat_completions
    const tools = [{ type: 'web_search', name: 's' }]
    const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], tools }
    const outline = drained(protocol.outline(new TextEncoder().encode(JSON.stringify(body))))
    expect(outline.toolLimits.edits).toEqual([])
    expect(outline.serverTools).toMatchObject([{ mostUses: null }])
  })
})

describe('a cheaper price class', () => {
  const prices = { ...PRICED, classes: { 'service_tier=flex': 50, 'service_tier=auto': 200 } }

  it('halves the prices where every route takes it, and needs no price', () => {
    const flex = { service_tier: 'flex' }
    const chat = modelOf('chat_completions', { prices })
    expect(basisOf('chat_completions', flex, {}, chat).basis.prices.output).toBe(PRICES.output / 2)
    expect(basisOf('chat_completions', flex).basis.prices).toEqual(PRICED)
    // Translation to messages drops the member.
    const both = { ...chat, routes: [...chat.routes, ...modelOf('messages').routes] }
    expect(basisOf('chat_completions', flex, {}, both).basis.prices).toEqual(prices)
    // So does that to Gemini.
    const [native] = chat.routes
    if (!native) throw new Error('no route')
    const gemini = {
      ...chat,
      routes: [{ ...native, provider: { ...native.provider, kind: 'gemini' as const } }],
    }
    expect(basisOf('chat_completions', flex, {}, gemini).basis.prices).toEqual(prices)
  })

  it('may be a dearer one of the account', () => {
    const auto = basisOf(
      'chat_completions',
      { service_tier: 'auto' },
      {},
      modelOf('chat_completions', { prices }),
    )
    expect(auto.basis.prices.output).toBe(PRICES.output * 2)
  })
})

describe('the container of a call that runs code', () => {
  const tool = { type: 'code_execution_20250825', name: 'code_execution' }
  const used = (basis: ChargeBasis, milliseconds: number) =>
    withContainerTime(basis, answerCharge(basis, { ...NO_USAGE, input: 10 }, 0), milliseconds)
  const charged = (...more: Json[]) => basisOf('messages', { tools: [tool, ...more] }).basis

  it.each([
    [0, 5],
    [5 * 60_000, 5],
    [5 * 60_000 + 1, 6],
    [90 * 60_000, 90],
  ])('is paid by the minute, at least five: %i ms', (milliseconds, minutes) => {
    const { usage, cost } = used(charged(), milliseconds)
    expect(usage?.units).toEqual({ container_minutes: minutes })
    expect(cost).toBe(Math.ceil(30 + (minutes * 833_333_334) / 1_000_000))
  })

  it('is not counted by the uses of the tool', () => {
    const reported = { input_tokens: 10, output_tokens: 0, server_tool_use: { code_execution_requests: 3 } }
    const usage = usageOfMessages(reported, null)
    expect(answerCharge(charged(), usage, 0).usage?.units).toEqual({ container_minutes: 5 })
  })

  it('is free with the tools that search and fetch, from their version of 2026 on', () => {
    const search = (date: string) => ({ type: `web_search_${date}`, name: 'web_search' })
    expect(used(charged(search('20260209')), 0).usage?.units).toBeUndefined()
    expect(used(charged(search('20250305')), 0).usage?.units).toEqual({ container_minutes: 5 })
  })
})

describe('a selection without a price', () => {
  const plain = (protocol: Protocol, allows = false) => modelOf(protocol, { prices: PRICES }, allows)
  const refused: ReadonlyArray<[string, Protocol, Json, Record<string, string>]> = [
    ['service_tier', 'chat_completions', { service_tier: 'priority' }, {}],
    ['speed', 'messages', { speed: 'fast' }, {}],
    ['inference_geo', 'messages', { inference_geo: 'us' }, {}],
    ['container', 'messages', { container: 'c' }, {}],
    ['tools (web_search)', 'messages', { tools: [{ type: 'web_search_20260209', name: 'w' }] }, {}],
    ['tools (code_execution)', 'messages', { tools: [{ type: 'code_execution_20250825', name: 'c' }] }, {}],
    ['web_search_options', 'chat_completions', { web_search_options: {} }, {}],
    ['modalities', 'chat_completions', { modalities: ['text', 'audio'] }, {}],
    ['anthropic-beta', 'messages', {}, { 'anthropic-beta': 'context-1m-2025-08-07' }],
  ]
  it.each(refused)('is refused by its name: %s', (member, protocol, members, headers) => {
    const refusal = () => basisOf(protocol, members, headers, plain(protocol))
    expect(refusal).toThrow(`${member}: the model m has no price for `)
    const { basis, routes } = basisOf(protocol, members, headers, plain(protocol, true))
    expect(routes).toHaveLength(1)
    expect(basis.unpriced).toHaveLength(1)
  })

  it.each([
    ['chat_completions', { service_tier: 'auto' }],
    ['chat_completions', { service_tier: 'default', modalities: ['text'], audio: null }],
    ['messages', { service_tier: 'standard_only', speed: 'standard', inference_geo: null, container: null }],
    [
      'messages',
      {
        tools: [
          { type: 'bash_20250124', name: 'bash' },
          { name: 'own', input_schema: {} },
        ],
      },
    ],
    ['messages', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
  ] as const)('is none of %s with %j', (protocol, members) => {
    expect(basisOf(protocol, members, {}, plain(protocol)).basis.unpriced).toBeUndefined()
  })
})
