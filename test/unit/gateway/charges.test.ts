import { describe, expect, it } from 'vitest'
import { addUsage, costOf, NO_USAGE, type Prices, reservationFor } from '../../../src/calls/usage.ts'
import {
  abandonedCharge,
  answerCharge,
  boundsOf,
  type CallBounds,
  type Charge,
  type ChargeBasis,
  estimatedCharge,
  estimateUsage,
  inputUsage,
  type LostCharge,
  NO_CHARGE,
  streamCharge,
  withLost,
} from '../../../src/gateway/calls/charges.ts'
import { hiddenOutputOf } from '../../../src/gateway/calls/hidden-output.ts'
import type { Route } from '../../../src/gateway/catalogue/call-routes.ts'
import type { CatalogueModel } from '../../../src/gateway/catalogue/model-catalogue.ts'
import { chatCompletions, completions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import type { Usage } from '../../../src/ledger/audit-record.ts'
import { drained } from '../../../src/lib/slices.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

const PRICES: Prices = {
  input: 3_000_000,
  output: 15_000_000,
  cacheRead: 300_000,
  cacheWrite5Minutes: 3_750_000,
  cacheWrite1Hour: 6_000_000,
}
const MODEL: CatalogueModel = {
  id: 'm',
  ownedBy: 'o',
  created: 0,
  contextWindow: 100_000,
  maxOutputTokens: 8_000,
  prices: PRICES,
  capabilities: [],
  routes: [],
}

const estimate = (requestBytes: number, textBytes: number, bounds: CallBounds) =>
  estimateUsage({ requestBytes, bounds }, textBytes)

describe('costOf', () => {
  it('charges each class at its price, output once with its reasoning', () => {
    const usage = {
      input: 1e6,
      cacheRead: 1e6,
      cacheWrite5Minutes: 1e6,
      cacheWrite1Hour: 1e6,
      output: 1e6,
      reasoning: 1e6,
    }
    expect(costOf(usage, PRICES)).toBe(3_000_000 + 300_000 + 3_750_000 + 6_000_000 + 15_000_000)
    expect(costOf(NO_USAGE, PRICES)).toBe(0)
  })

  it('rounds up once, over all classes', () => {
    const cheap: Prices = { input: 1, output: 1, cacheRead: 1, cacheWrite5Minutes: 1, cacheWrite1Hour: 1 }
    expect(costOf({ ...NO_USAGE, input: 1 }, cheap)).toBe(1)
    expect(costOf({ ...NO_USAGE, input: 400_000, output: 400_000 }, cheap)).toBe(1)
    expect(costOf({ ...NO_USAGE, input: 500_000, output: 500_000 }, cheap)).toBe(1)
    expect(costOf({ ...NO_USAGE, input: 500_000, output: 500_001 }, cheap)).toBe(2)
  })

  it('is a whole number, whatever the figures', () => {
    for (let seed = 1; seed <= 500; seed++) {
      const random = new SeededRandom(seed)
      const usage = randomUsage(random, 2_000_000)
      const cost = costOf(usage, randomPrices(random))
      expect(Number.isSafeInteger(cost) && cost >= 0, `seed ${seed}`).toBe(true)
    }
  })
})

function randomUsage(random: SeededRandom, input: number): Usage {
  const parts = [random.fraction(), random.fraction(), random.fraction(), random.fraction()]
  const sum = parts.reduce((total, part) => total + part, 0)
  const [plain = 0, cacheRead = 0, five = 0, hour = 0] = parts.map((part) => Math.floor((part / sum) * input))
  return {
    input: plain,
    cacheRead,
    cacheWrite5Minutes: five,
    cacheWrite1Hour: hour,
    output: random.below(8001),
    reasoning: 0,
  }
}

const randomPrices = (random: SeededRandom): Prices => ({
  input: random.below(80_000_000),
  output: random.below(80_000_000),
  cacheRead: random.below(80_000_000),
  cacheWrite5Minutes: random.below(80_000_000),
  cacheWrite1Hour: random.below(80_000_000),
})

describe('the reservation', () => {
  const outlineOf = (protocol: Protocol, body: object) =>
    drained(protocol.outline(new TextEncoder().encode(JSON.stringify(body))))
  const USER = [{ role: 'user', content: 'hi' }]
  const chat = (members: object) => outlineOf(chatCompletions, { model: 'm', messages: USER, ...members })
  /** In tokens: at prices of one micro-credit for a token of input and a thousand for one of output. */
  const COUNTING = { input: 1e6, output: 1e9, cacheRead: 1e6, cacheWrite5Minutes: 1e6, cacheWrite1Hour: 1e6 }
  const counted = (outline: ReturnType<typeof chat>, model: Partial<CatalogueModel> = {}) => {
    const total = boundsOf(outline, { ...MODEL, prices: COUNTING, contextWindow: 900, ...model }).reserve
    return { input: total % 1000, output: Math.floor(total / 1000) }
  }

  it('covers the cost of every usage within its bounds', () => {
    for (let seed = 1; seed <= 2000; seed++) {
      const random = new SeededRandom(seed)
      const prices = randomPrices(random)
      const input = random.below(200_000)
      const usage = randomUsage(random, input)
      expect(reservationFor(input, usage.output, prices), `seed ${seed}`).toBeGreaterThanOrEqual(
        costOf(usage, prices),
      )
    }
  })

  it('is exact where all input is of the dearest class', () => {
    expect(reservationFor(1_000_000, 1_000_000, PRICES)).toBe(6_000_000 + 15_000_000)
    expect(reservationFor(0, 1, { ...PRICES, output: 1 })).toBe(1)
    expect(reservationFor(0, 0, PRICES)).toBe(0)
  })

  it('takes a token for each byte of the body, at most the context window', () => {
    const body = chat({ max_tokens: 5 })
    expect(counted(body)).toEqual({ input: body.body.length, output: 5 })
    expect(counted(chat({ max_tokens: 5, user: 'u'.repeat(5000) }))).toEqual({ input: 900, output: 5 })
  })

  it('takes the output that may be generated, the requested maximum or the model’s, for each choice', () => {
    expect(counted(chat({})).output).toBe(8000)
    expect(counted(chat({ max_tokens: 9_000 })).output).toBe(9_000)
    expect(counted(chat({ max_completion_tokens: 10, n: 3 })).output).toBe(30)
    expect(counted(chat({ n: 2 })).output).toBe(16_000)
    expect(counted(outlineOf(completions, { model: 'm', prompt: 'a' })).output).toBe(8000)
    const listed = outlineOf(completions, { model: 'm', prompt: ['a', 'b', 'c'], best_of: 2, max_tokens: 4 })
    expect(counted(listed).output).toBe(24)
    expect(counted(outlineOf(messages, { model: 'm', messages: USER, max_tokens: 7 })).output).toBe(7)
  })

  it('adds tokens for an image, and the context window for a document', () => {
    const part = (type: string) => chat({ max_tokens: 1, messages: [{ role: 'user', content: [{ type }] }] })
    const image = part('image_url')
    const window = { contextWindow: 80_000 }
    const total = boundsOf(image, { ...MODEL, prices: COUNTING, ...window }).reserve
    expect(total).toBe(image.body.length + 50_000 + 1000)
    expect(boundsOf(part('file'), { ...MODEL, prices: COUNTING, ...window }).reserve).toBe(80_000 + 1000)
  })

  it('adds tokens for the preamble of tools, and the reads after each round of a tool that the provider runs', () => {
    const window = { contextWindow: 50_000 }
    const withTool = (type: string) => chat({ max_tokens: 1, tools: [{ type }] })
    const own = withTool('function')
    expect(boundsOf(own, { ...MODEL, prices: COUNTING, ...window }).inputTokens).toBe(own.body.length + 1000)
    const inputOf = (outline: Parameters<typeof boundsOf>[0]) =>
      boundsOf(outline, { ...MODEL, prices: COUNTING, ...window })
    const search = withTool('web_search')
    const first = search.body.length + 1000
    // After the first of ten rounds the results may fill the window.
    expect(inputOf(search).inputTokens).toBe(first + (first + 1 + 25_000) + 9 * 50_000)
    expect(inputOf(withTool('other')).inputTokens).toBe(withTool('other').body.length + 1000 + 10 * 50_000)
    const options = chat({ max_tokens: 1, web_search_options: {} })
    const { length } = options.body
    expect(inputOf(options).inputTokens).toBe(length + (length + 1 + 25_000) + 4 * 50_000)
  })

  it('count, when estimated, a thousand tokens for each picture and document besides, however short its link is', () => {
    const url = { url: 'https://example.com/a.png' }
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: url },
      { type: 'image_url', image_url: url },
    ]
    const bounds = boundsOf(chat({ messages: [{ role: 'user', content }] }), MODEL)
    expect(estimate(300, 0, bounds)).toEqual({ ...NO_USAGE, input: 2_100 })
    content.push({ type: 'file', file: { file_id: 'f' } } as never)
    const both = boundsOf(chat({ messages: [{ role: 'user', content }] }), MODEL)
    expect(estimate(300, 0, both)).toEqual({ ...NO_USAGE, input: 3_100 })
    expect(boundsOf(chat({}), MODEL)).not.toHaveProperty('linkedTokens')
  })

  it('stays a safe integer, whatever is requested', () => {
    const many = outlineOf(completions, {
      model: 'm',
      prompt: Array.from({ length: 5000 }, () => 'a'),
      n: 128,
    })
    const prices = { ...COUNTING, output: Number.MAX_SAFE_INTEGER }
    expect(boundsOf(many, { ...MODEL, prices }).reserve).toBe(Number.MAX_SAFE_INTEGER)
  })
})

describe('estimates', () => {
  const WIDE = { inputTokens: 1_000_000, outputTokens: 1_000_000, mostInput: 1_000_000, reserve: 0 }

  it('count a token for three bytes, rounded up, of what was sent and what came', () => {
    expect(estimate(300, 30, WIDE)).toEqual({ ...NO_USAGE, input: 100, output: 10 })
    expect(estimate(301, 31, WIDE)).toEqual({ ...NO_USAGE, input: 101, output: 11 })
    expect(estimate(0, 0, WIDE)).toEqual(NO_USAGE)
    // Claude has more tokens for the same text.
    expect(estimateUsage({ requestBytes: 301, bounds: WIDE, bytesPerToken: 2 }, 30)).toMatchObject({
      input: 151,
      output: 15,
    })
  })

  it('keep what was reported so far, and never fall below it', () => {
    const reported = { ...NO_USAGE, input: 7, cacheRead: 900, output: 50 }
    const basis = { prices: PRICES, bounds: WIDE, requestBytes: 3000, charged: true }
    const soFar = (textBytes: number) =>
      streamCharge(basis, { usage: () => ({ usage: reported, final: false }), textBytes }).usage
    expect(soFar(30)).toEqual(reported)
    expect(soFar(600)).toEqual({ ...reported, output: 200 })
  })

  it('never pass the bounds of the call', () => {
    const bounds = { inputTokens: 40, outputTokens: 5, mostInput: 40, reserve: 0 }
    expect(estimate(30_000, 30_000, bounds)).toEqual({ ...NO_USAGE, input: 40, output: 5 })
  })

  it('are charged at the model’s prices, with their provenance', () => {
    const usage = { ...NO_USAGE, output: 1_000_000 }
    const basis = { prices: PRICES, bounds: WIDE, requestBytes: 0, charged: true }
    expect(estimatedCharge(basis, usage)).toEqual({ usage, provenance: 'estimated', cost: 15_000_000 })
    expect(estimatedCharge(basis, null)).toEqual(NO_CHARGE)
    expect(NO_CHARGE).toEqual({ usage: null, provenance: null, cost: 0 })
  })
})

/** A micro-credit for each token. */
const TOKEN = {
  input: 1e6,
  output: 1e6,
  cacheRead: 1e6,
  cacheWrite5Minutes: 1e6,
  cacheWrite1Hour: 1e6,
}
const basisOf = (reserve: number, charged = true): ChargeBasis => ({
  prices: TOKEN,
  bounds: { inputTokens: 1_000, outputTokens: 1_000, mostInput: 10_000, reserve },
  requestBytes: 300,
  charged,
})
/** Of the request, by its length. */
const INPUT = 100
const inputOf = (input: number): Usage => ({ ...NO_USAGE, input })
/** Lost usage at the prices of its route; a micro-credit for each token of input where left out. */
const lostOf = (usage: Usage, prices = TOKEN): LostCharge => ({ usage, cost: costOf(usage, prices) })

describe('the charge', () => {
  it('of an answer is what was reported, else an estimate of it', () => {
    const reported = inputOf(7)
    expect(answerCharge(basisOf(0), reported, 0)).toEqual({
      usage: reported,
      provenance: 'reported',
      cost: 7,
    })
    const estimated = { usage: { ...inputOf(INPUT), output: 10 }, provenance: 'estimated', cost: INPUT + 10 }
    expect(answerCharge(basisOf(0), null, 30)).toEqual(estimated)
  })

  it('of a stream is an estimate until all is reported, over what was reported so far', () => {
    const usage = { ...inputOf(7), output: 1 }
    const meter = (final: boolean) => ({ usage: () => ({ usage, final }), textBytes: 30 })
    expect(streamCharge(basisOf(0), meter(true))).toMatchObject({ provenance: 'reported', cost: 8 })
    expect(streamCharge(basisOf(0), meter(false))).toMatchObject({ provenance: 'estimated', cost: 17 })
    expect(streamCharge(basisOf(0), meter(false))).not.toHaveProperty('flags')
    const silent = { usage: () => null, textBytes: 30 }
    expect(streamCharge(basisOf(0), silent)).toMatchObject({ provenance: 'estimated', cost: INPUT + 10 })
  })

  it('of an abandoned call that reasons is the most hidden output, within the bounds of the call', () => {
    const silent = { usage: () => null, textBytes: 30 }
    const reasons = (hiddenOutput: number) => ({ ...basisOf(0), hiddenOutput })
    expect(abandonedCharge(reasons(0), silent)).toMatchObject({ cost: INPUT + 10, provenance: 'estimated' })
    expect(abandonedCharge(reasons(500), silent)).toMatchObject({
      cost: INPUT + 510,
      provenance: 'estimated',
    })
    expect(abandonedCharge(reasons(1_000), silent)).toMatchObject({ cost: INPUT + 1_000 })
    expect(abandonedCharge(reasons(0), { ...silent, reasoned: true })).toMatchObject({ cost: INPUT + 1_000 })
    expect(abandonedCharge(reasons(500), null)).toMatchObject({ cost: INPUT + 500 })
    const usage = { ...inputOf(7), output: 2 }
    const final = { usage: () => ({ usage, final: true }), textBytes: 30 }
    expect(abandonedCharge(reasons(500), final)).toMatchObject({ cost: 9, provenance: 'reported' })
  })

  it.each([
    [{}, [], 0],
    [{}, ['reasoning'], 1_000],
    [{ reasoning_effort: 'high' }, [], 1_000],
    [{ reasoning_effort: 'none' }, ['reasoning'], 0],
    [{ thinking: { type: 'disabled' } }, ['reasoning'], 0],
    [{ thinking: { type: 'enabled', budget_tokens: 300 } }, [], 300],
  ])(
    'counts hidden output of a request with %j of a model that can %j as %i',
    (fields, capabilities, most) => {
      const outline = drained(
        chatCompletions.outline(
          new TextEncoder().encode(
            JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a' }], ...fields }),
          ),
        ),
      )
      const route = { operation: 'chat_completions' } as Route
      expect(hiddenOutputOf(outline, { ...MODEL, capabilities }, [route], 1_000)).toBe(most)
    },
  )

  it.each([
    ['low', ['reasoning'], true, 2_048],
    ['high', ['reasoning'], true, 24_576],
    ['unknown', ['reasoning'], true, 90_000],
    // The provider reads the effort itself.
    ['low', ['reasoning', 'adaptive_thinking'], true, 90_000],
    ['low', ['reasoning'], false, 90_000],
  ])(
    'counts the budget that translation makes of an effort: %s, of a model with %j',
    (effort, capabilities, isTranslated, most) => {
      const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], reasoning_effort: effort }
      const outline = drained(chatCompletions.outline(new TextEncoder().encode(JSON.stringify(body))))
      const native = { operation: 'chat_completions', translation: null } as Route
      const translation = { caller: 'chat_completions', upstream: 'messages' } as const
      const translated = { operation: 'messages', translation } as Route
      const routes = isTranslated ? [translated] : [translated, native]
      expect(hiddenOutputOf(outline, { ...MODEL, capabilities }, routes, 90_000)).toBe(most)
    },
  )

  it.each([
    ['none', ['reasoning'], 1_000],
    ['low', ['reasoning'], 1_000],
    ['low', [], 1_000],
    ['none', [], 0],
  ])(
    'counts all output of Gemini and of Converse as hidden, at the effort %s, of a model with %j',
    (effort, capabilities, most) => {
      const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], reasoning_effort: effort }
      const outline = drained(chatCompletions.outline(new TextEncoder().encode(JSON.stringify(body))))
      for (const operation of ['generate_content', 'converse'] as const) {
        const route = { operation } as Route
        expect(hiddenOutputOf(outline, { ...MODEL, capabilities }, [route], 1_000)).toBe(most)
      }
    },
  )

  it('of a usage that cannot be true is an estimate, and flagged', () => {
    const charge = (usage: Usage, textBytes: number) => answerCharge(basisOf(0), usage, textBytes)
    const flagged = { provenance: 'estimated', flags: ['implausible_usage'] }
    expect(charge(NO_USAGE, 300)).toMatchObject({ ...flagged, cost: INPUT + 100 })
    expect(charge({ ...inputOf(7), output: 2 }, 3_000)).toMatchObject({ ...flagged, cost: 7 + 1_000 })
    expect(charge({ ...inputOf(7), cacheRead: 1e9, output: 2 }, 30)).toMatchObject({
      ...flagged,
      cost: 1_000 + 2,
    })
    // What is more than the limit of the request was sent: the provider has ignored the limit.
    const beyond = { ...inputOf(7), output: 15_000 }
    expect(charge(beyond, 60_000)).toMatchObject({ provenance: 'reported', cost: 15_007 })
    expect(charge(beyond, 30)).toMatchObject({ ...flagged, cost: 1_007 })
    expect(withLost(basisOf(1e6), charge(NO_USAGE, 300), lostOf(inputOf(5)))).toMatchObject(flagged)
  })

  it('of what is free is none', () => {
    const free = basisOf(0, false)
    expect(answerCharge(free, inputOf(7), 30)).toEqual(NO_CHARGE)
    expect(inputUsage(free)).toBeNull()
  })
})

describe('attempts that gave nothing', () => {
  const known = (input: number): Charge => answerCharge(basisOf(0), inputOf(input), 0)

  it('are paid for with the answer, as an estimate', () => {
    const lost = lostOf(addUsage(inputUsage(basisOf(0)), inputOf(30)))
    expect(withLost(basisOf(1_000), known(7), lost)).toEqual({
      usage: inputOf(137),
      provenance: 'estimated',
      cost: 137,
    })
    expect(withLost(basisOf(1_000), NO_CHARGE, lost)).toMatchObject({ provenance: 'estimated', cost: 130 })
  })

  it('cost as much as their own routes, and the answer as much as its own', () => {
    const basis = { ...basisOf(1_000), pricesOfRoutes: PRICES }
    const answer = { ...known(7), cost: 21 }
    expect(withLost(basis, answer, { usage: inputOf(100), cost: 110 })).toEqual({
      usage: inputOf(107),
      provenance: 'estimated',
      cost: 131,
    })
    expect(withLost(basis, NO_CHARGE, { usage: inputOf(100), cost: 110 })).toMatchObject({ cost: 110 })
  })

  it('change nothing where there were none', () => {
    const charge = known(7)
    expect(withLost(basisOf(1_000), charge, null)).toBe(charge)
  })

  it.each([
    { used: 90, reserve: 190, cost: 190, provenance: 'estimated' },
    { used: 90, reserve: 189, cost: INPUT, provenance: 'estimated' },
    { used: 110, reserve: 150, cost: 110, provenance: 'reported' },
    // A reported usage is charged in full, also beyond the reservation.
    { used: 170, reserve: 150, cost: 170, provenance: 'reported' },
    { used: 10, reserve: 70, cost: 70, provenance: 'estimated' },
  ])('cost no more than what was put aside: %j', ({ used, reserve, cost, provenance }) => {
    const charge = withLost(basisOf(reserve), known(used), lostOf(inputOf(INPUT)))
    expect(charge).toMatchObject({ cost, provenance })
  })

  it('never lower a charge, and raise it to the reservation at most, whatever the figures', () => {
    for (let seed = 1; seed <= 2_000; seed++) {
      const random = new SeededRandom(seed)
      const prices = randomPrices(random)
      const reserve = random.below(20_000)
      const basis = { ...basisOf(reserve), prices }
      const usage = random.chance(0.1) ? null : randomUsage(random, 10_000)
      const lost = lostOf(randomUsage(random, 10_000), prices)
      const charge = usage ? answerCharge(basis, usage, 0) : NO_CHARGE
      const both = withLost(basis, charge, lost)
      expect(both.cost, `seed ${seed}`).toBeGreaterThanOrEqual(charge.cost)
      expect(both.cost, `seed ${seed}`).toBeLessThanOrEqual(Math.max(reserve, charge.cost))
      const whole = both.usage ? costOf(both.usage, prices) : 0
      expect(both.cost, `seed ${seed}`).toBe(both === charge ? whole : Math.min(whole, reserve))
    }
  })
})
