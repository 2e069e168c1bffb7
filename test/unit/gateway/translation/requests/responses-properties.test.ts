import { describe, expect, it } from 'vitest'
import { checkChat } from '../../../../../scripts/local/model-upstream/checks/chat-check.ts'
import { checkMessages } from '../../../../../scripts/local/model-upstream/checks/messages-check.ts'
import { traitsOf } from '../../../../../scripts/local/model-upstream/model-traits.ts'
import { issueRedactedData, issueSignature } from '../../../../../scripts/local/model-upstream/signatures.ts'
import { type Json, listOf, objectOf, textOf } from '../../../../../src/gateway/protocols/json.ts'
import { responsesToChat } from '../../../../../src/gateway/translation/requests/responses-to-chat.ts'
import { responsesToMessages } from '../../../../../src/gateway/translation/requests/responses-to-messages.ts'
import { ApiError } from '../../../../../src/lib/api-error.ts'
import { PROPERTY_RUNS } from '../../../lib/property-runs.ts'
import { SeededRandom } from '../../../lib/seeded-random.ts'
import {
  answers,
  calls,
  FAMILY,
  IMAGE,
  INLINE_IMAGE,
  input,
  item,
  ofFamily,
  output,
  PDF,
  tool,
} from './responses.ts'
import { brokenChatRules, brokenMessagesRules } from './vendor-rules.ts'

const SEEDS = [...Array(PROPERTY_RUNS).keys()]
/** Models by a name that the scripted upstream knows, and what of it the catalogue would say. */
const MESSAGES_MODELS = [
  { ...ofFamily('json_schema', 'vision'), upstreamModel: 'scripted-messages' },
  { ...ofFamily('reasoning', 'vision'), upstreamModel: 'scripted-messages-thinking' },
  {
    ...ofFamily('reasoning', 'adaptive_thinking', 'json_schema'),
    upstreamModel: 'scripted-messages-adaptive',
  },
]
const CHAT_MODELS = [
  { ...ofFamily('json_schema', 'json_object', 'vision'), upstreamModel: 'gpt-4.1' },
  { ...ofFamily('reasoning', 'json_schema', 'json_object'), upstreamModel: 'gpt-5.2' },
  {
    ...ofFamily('reasoning', 'tools_without_reasoning', 'json_schema', 'json_object'),
    upstreamModel: 'gpt-5.5',
  },
]

const NAMES = ['look', 'functions.read', `mcp__server__${'long'.repeat(20)}`]
const IDS = ['call_1', 'functions.look:0', 'é', 'a'.repeat(50), 'call_2']
const ARGUMENTS = ['{}', '', '{"a":[1,{"b":"c"}]}', '[1]']

/** Texts are numbered, so that each of them is looked for by itself. */
class RandomTurn {
  readonly texts: string[] = []
  readonly #random: SeededRandom
  #pending: Json[] = []

  constructor(random: SeededRandom) {
    this.#random = random
  }

  make(): Json {
    const random = this.#random
    const items: Json[] = [item('user', 'Begin.'), this.#message('user')]
    for (let count = random.below(14); count > 0; count--) items.push(...this.#items())
    items.push(...this.#pending)
    const offers = random.chance(0.6)
    const functions = NAMES.map((name) => tool(name))
    return {
      model: 'm',
      input: items,
      ...(offers
        ? { tools: [...functions, { type: 'namespace', name: 'ns', tools: functions }, { type: 'shell' }] }
        : {}),
      ...(random.chance(0.3) ? { instructions: this.#text() } : {}),
      ...(random.chance(0.4)
        ? { tool_choice: random.pick(['auto', 'none', 'required', { type: 'shell' }]) }
        : {}),
      ...(random.chance(0.3) ? { parallel_tool_calls: random.chance(0.5) } : {}),
      ...(random.chance(0.3) ? { temperature: random.fraction() * 2, top_p: random.fraction() } : {}),
      ...(random.chance(0.3) ? { max_output_tokens: 1 + random.below(20_000) } : {}),
      ...(random.chance(0.5)
        ? { reasoning: { effort: random.pick(['none', 'low', 'high', 'xhigh']), summary: 'auto' } }
        : {}),
      ...(random.chance(0.2)
        ? {
            text: {
              format: {
                type: 'json_schema',
                name: 'x',
                schema: { type: 'object', properties: {} },
                strict: true,
              },
            },
          }
        : {}),
      ...(random.chance(0.5) ? { stream: true } : {}),
    }
  }

  #items(): Json[] {
    const random = this.#random
    const kind = random.below(7)
    if (kind === 0) return [this.#message('user')]
    if (kind === 1) return [this.#message(random.pick(['system', 'developer']))]
    if (kind <= 3) return [this.#message('assistant')]
    if (kind === 4) return [this.#thought(), ...(random.chance(0.7) ? [this.#message('assistant')] : [])]
    if (kind === 5) return this.#pending.splice(random.below(3), random.below(3))
    const id = random.pick(IDS)
    const more = random.chance(0.3) ? { namespace: 'ns' } : {}
    this.#pending.push(answers(id, this.#content(true, input)))
    return [calls(id, random.pick(NAMES), random.pick(ARGUMENTS), more)]
  }

  #message(role: string): Json {
    const made = role === 'assistant' ? output : input
    return item(role, this.#content(role === 'user', made))
  }

  #content(media: boolean, made: (text: string) => Json): unknown {
    const random = this.#random
    if (random.chance(0.4)) return this.#text()
    return Array.from({ length: random.below(4) }, () =>
      media && random.chance(0.3)
        ? structuredClone(random.pick([IMAGE, INLINE_IMAGE, PDF]))
        : made(this.#text()),
    )
  }

  #text(): string {
    if (this.#random.chance(0.15)) return this.#random.pick(['', ' ', '\n\t'])
    const text = `${this.#random.pick(['', ' ', '\n'])}text ${this.texts.length} "é\u{1f600}" ${this.#random.pick(['', ' ', '\n'])}.`
    this.texts.push(text)
    return text
  }

  #thought(): Json {
    const random = this.#random
    const thought = `thought ${random.below(1_000)}`
    const seed = String(random.below(1_000))
    const proof = random.chance(0.3)
      ? { redacted: issueRedactedData(seed) }
      : { signature: issueSignature(thought, seed), content: [{ type: 'reasoning_text', text: thought }] }
    return { type: 'reasoning', summary: [], ...proof, origin: random.pick([FAMILY, FAMILY, 'family-b']) }
  }
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1)

describe('random turns of the responses protocol', () => {
  it('keep the rules of chat completions, and lose no text', () => {
    for (const seed of SEEDS) {
      const random = new SeededRandom(seed)
      const turn = new RandomTurn(random)
      const request = turn.make()
      const before = JSON.stringify(request)
      const model = random.pick(CHAT_MODELS)
      const { body } = responsesToChat(request, model)
      const written = JSON.stringify(body)
      const at = `seed ${seed}: ${before} as ${written}`
      expect(brokenChatRules(body), at).toEqual([])
      expect(checkChat(JSON.parse(written) as Json, traitsOf(model.upstreamModel)), at).toEqual({
        fault: undefined,
        unknownMembers: [],
      })
      for (const text of turn.texts) expect(written, at).toContain(inJson(text))
      expect(JSON.stringify(request), at).toBe(before)
    }
  })

  it('keep the rules of the messages protocol, and lose no text', () => {
    for (const seed of SEEDS) {
      const random = new SeededRandom(seed)
      const turn = new RandomTurn(random)
      const request = turn.make()
      const before = JSON.stringify(request)
      const model = random.pick(MESSAGES_MODELS)
      const { body } = responsesToMessages(request, model)
      const written = JSON.stringify(body)
      const at = `seed ${seed}: ${before} as ${written}`
      expect(brokenMessagesRules(body), at).toEqual([])
      const context = { version: '2023-06-01', betas: '', counting: false, acceptUnknown: false }
      const checked = checkMessages(JSON.parse(written) as Json, {
        ...context,
        traits: traitsOf(model.upstreamModel),
      })
      expect(checked, at).toEqual({ fault: undefined, unknownMembers: [] })
      for (const text of turn.texts) expect(written, at).toContain(inJson(text))
      expect(JSON.stringify(request), at).toBe(before)
    }
  })

  it('send thinking unchanged, where they send it', () => {
    let converted = 0
    for (const seed of SEEDS) {
      const request = new RandomTurn(new SeededRandom(seed)).make()
      const own = listOf(request.input).filter((each) => each.type === 'reasoning' && each.origin === FAMILY)
      const proofs = own.map((each) => textOf(each.signature) || textOf(each.redacted))
      const { body } = responsesToMessages(request, MESSAGES_MODELS[1] as ReturnType<typeof ofFamily>)
      const blocks = listOf(body.messages).flatMap((turn) => listOf(turn.content))
      const kept = blocks.map(
        (block) => textOf(block.signature) || (block.type === 'redacted_thinking' ? textOf(block.data) : ''),
      )
      const inOrder = kept.filter((proof) => proof !== '')
      expect(
        proofs.filter((proof) => inOrder.includes(proof)),
        `seed ${seed}`,
      ).toEqual(inOrder)
      converted += inOrder.length
    }
    expect(converted).toBeGreaterThan(0.2 * PROPERTY_RUNS)
  })
})

describe('values of any type', () => {
  const VALUES = [
    null,
    1,
    -1,
    true,
    '',
    'x',
    [],
    {},
    [1],
    [null],
    [[]],
    [{}],
    { type: 1 },
    { type: 'function' },
    [{ type: 'message' }],
  ]

  it('are converted or refused as an invalid request', () => {
    let refused = 0
    for (const seed of SEEDS) {
      const random = new SeededRandom(seed)
      const request = new RandomTurn(random).make()
      for (let count = 1 + random.below(2); count > 0; count--) replaceSomewhere(request, random)
      for (const convert of [responsesToChat, responsesToMessages]) {
        try {
          convert(request, random.pick(convert === responsesToChat ? CHAT_MODELS : MESSAGES_MODELS))
        } catch (error) {
          if (!(error instanceof ApiError) || error.status !== 400)
            throw new Error(`seed ${seed}`, { cause: error })
          expect(error.message).toMatch(/^[a-z_.[\]\d]+: \S/)
          refused++
        }
      }
    }
    expect(refused).toBeGreaterThan(0.5 * PROPERTY_RUNS)
  })

  function replaceSomewhere(value: unknown, random: SeededRandom): void {
    const members = Object.keys(objectOf(value))
    const keys = Array.isArray(value) ? [...value.keys()].map(String) : members
    if (keys.length === 0) return
    const key = random.pick(keys)
    const holder = value as Record<string, unknown>
    const inner = holder[key]
    if (typeof inner === 'object' && inner !== null && random.chance(0.75)) replaceSomewhere(inner, random)
    else holder[key] = random.pick(VALUES)
  }
})
