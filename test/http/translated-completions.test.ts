import type OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { collect, failureOf, newestOpenAi, openAiClients } from '../harness/sdk-clients.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'

type Json = Record<string, unknown>
type Completion = OpenAI.Completion

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/** Models by how they come to a legacy completion: by themselves, or through another protocol. */
const NATIVE = 'scripted-chat'
const THROUGH = [
  ['chat', 'scripted-chat-large'],
  ['chat of a model that reasons', 'scripted-chat-reasoning'],
  ['messages', 'scripted-messages'],
  ['messages of a model that decides how it thinks', 'scripted-messages-adaptive'],
] as const

function complete(model: string, prompt: unknown, more: Json = {}): Promise<Answer> {
  return send(`${gateway().llmUrl}/v1/completions`, {
    method: 'POST',
    headers: bearer(tenant.key),
    body: JSON.stringify({ model, prompt, ...more }),
  })
}

const completionOf = (answer: Answer): Completion => {
  expect(answer.status, answer.text.slice(0, 500)).toBe(200)
  return jsonOf(answer) as unknown as Completion
}
const textsOf = (completion: Completion) => completion.choices.map(({ text }) => text)

const refused = (message: RegExp) =>
  refusalBody('chat_completions', { status: 400, code: 'invalid_body', message })

describe.each(THROUGH)('a completion through %s', (_, model) => {
  const isMessages = model.startsWith('scripted-messages')

  it('has the shape of a completion, and of its request nothing is lost', async () => {
    const text = marker()
    // Models that reason take no stop texts on chat completions.
    const stops = model === 'scripted-chat-reasoning' ? {} : { stop: ['END'] }
    const completion = completionOf(await complete(model, `Say ${text}`, { max_tokens: 50, ...stops }))
    expect(completion).toEqual({
      id: expect.stringMatching(/^cmpl-./),
      object: 'text_completion',
      created: expect.any(Number),
      model,
      choices: [
        { text: expect.stringContaining(text), index: 0, logprobs: null, finish_reason: expect.any(String) },
      ],
      usage: expect.objectContaining({
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
      }),
    })
    const [seen] = await seenRequests(gateway(), text)
    expect(seen?.path).toBe(isMessages ? '/v1/messages' : '/v1/chat/completions')
    const body = JSON.parse(seen?.body ?? '') as Json
    expect(body.messages).toMatchObject([{ role: 'user' }])
    expect(JSON.stringify(body.messages)).toContain(`Say ${text}`)
    expect(body[isMessages ? 'stop_sequences' : 'stop']).toEqual(stops.stop)
    expect(body.max_completion_tokens ?? body.max_tokens).toBe(50)
    expect('prompt' in body).toBe(false)
  })

  it('generates 16 tokens by default, as the vendor does', async () => {
    const text = marker()
    const completion = completionOf(await complete(model, `${text} a long story `.repeat(10)))
    const [seen] = await seenRequests(gateway(), text)
    const body = JSON.parse(seen?.body ?? '') as Json
    if (model === 'scripted-chat-reasoning') {
      // With 16 it would reason and answer nothing.
      expect(body).toMatchObject({ max_completion_tokens: 4096, reasoning_effort: 'low' })
      return
    }
    expect(body.max_tokens).toBe(16)
    expect(completion.choices[0]?.finish_reason).toBe('length')
    expect(completion.usage?.completion_tokens).toBe(16)
  })

  it('begins with the prompt where it is to be echoed', async () => {
    for (const prompt of ['once upon', ['once upon']]) {
      const plain = completionOf(await complete(model, prompt, { max_tokens: 20 }))
      const echoed = completionOf(await complete(model, prompt, { max_tokens: 20, echo: true }))
      expect(textsOf(echoed)).toEqual(textsOf(plain).map((text) => `once upon${text}`))
    }
  })

  it('streams what it answers whole, to its end', async () => {
    for (const more of [{}, { echo: true }]) {
      const request = { max_tokens: 40, ...more }
      const whole = completionOf(await complete(model, 'one two', request))
      const streamed = await complete(model, 'one two', {
        ...request,
        stream: true,
        stream_options: { include_usage: true },
      })
      const chunks = chunksOf(streamed)
      expect(streamed.text.endsWith('data: [DONE]\n\n')).toBe(true)
      expect(new Set(chunks.map(({ id, object }) => `${id} ${object}`)).size).toBe(1)
      expect(chunks[0]).toMatchObject({ object: 'text_completion', model })
      const texts: string[] = []
      const finishes: unknown[] = []
      for (const { text, index, finish_reason } of chunks.flatMap(({ choices }) => choices)) {
        texts[index] = (texts[index] ?? '') + text
        if (finish_reason !== null) finishes[index] = finish_reason
      }
      expect(texts).toEqual(textsOf(whole))
      expect(finishes).toEqual(whole.choices.map(({ finish_reason }) => finish_reason))
      expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
      const unasked = await complete(model, 'one', { ...request, stream: true })
      expect(unasked.text).not.toContain('"usage":{')
    }
  })

  it.each([
    ['prompts of tokens', { prompt: [1, 2, 3] }, /prompts of tokens/],
    ['lists of tokens', { prompt: [[1], [2]] }, /prompts of tokens/],
    ['a prompt that is no text', { prompt: 7 }, /prompt/],
    ['several prompts', { prompt: ['a', 'b'] }, /only one prompt/],
    ['several prompts to be streamed', { prompt: ['a', 'b'], stream: true }, /only one prompt/],
    ['no prompt', { prompt: undefined }, /prompt is required/],
    ['an empty list', { prompt: [] }, /prompt/],
    ['prompts with something else among them', { prompt: ['a', {}] }, /prompt/],
    ['a suffix', { suffix: 'the end' }, /suffix/],
    ['log probabilities', { logprobs: 2 }, /log probabilities/],
    ['the best of several', { best_of: 3 }, /best of several/],
  ])('refuses %s before it is sent', async (_what, more: Json, message) => {
    const text = marker()
    const answer = await complete(model, `a ${text}`, { user: text, ...more })
    expect(jsonOf(answer)).toEqual(refused(message))
    expect(answer.status).toBe(400)
    expect(await seenRequests(gateway(), text)).toEqual([])
  })

  it('makes several choices, or refuses them', async () => {
    const answer = await complete(model, 'one', { n: 2, max_tokens: 60, echo: true })
    if (isMessages) {
      expect(jsonOf(answer)).toEqual(refused(/only one choice/))
      return
    }
    const completion = completionOf(answer)
    expect(completion.choices.map(({ index }) => index)).toEqual([0, 1])
    expect(textsOf(completion).map((text) => text.slice(0, 3))).toEqual(['one', 'one'])
  })
})

const chunksOf = (answer: Answer): Completion[] =>
  answer.text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice('data: '.length)) as Completion)

describe('a completion of a model that has them itself', () => {
  it('is sent unchanged, with members that chat does not have', async () => {
    const text = marker()
    const more = { max_tokens: 4, logprobs: 1, suffix: 'x', best_of: 1, echo: true }
    const answer = await complete(NATIVE, [`one ${text}`, 'two'], more)
    expect(completionOf(answer).choices).toHaveLength(2)
    const [seen] = await seenRequests(gateway(), text)
    expect(seen?.path).toBe('/v1/completions')
    expect(JSON.parse(seen?.body ?? '')).toEqual({ model: NATIVE, prompt: [`one ${text}`, 'two'], ...more })
    expect(completionOf(await complete(NATIVE, [1, 2, 3])).choices).toHaveLength(1)
  })
})

describe.each(openAiClients)('%s', (_, Client) => {
  const client = (): OpenAI =>
    new Client({ apiKey: tenant.key, baseURL: `${gateway().llmUrl}/v1`, maxRetries: 0 })

  const prompts: Array<[model: string, prompt: string[]]> = [
    [NATIVE, ['once upon', 'a time']],
    ...THROUGH.map(([, model]): [string, string[]] => [model, ['a time']]),
  ]
  const isNewest = Client === newestOpenAi
  it.each(isNewest ? prompts : prompts.slice(1, 2))(
    'completes with %s, whole and streamed',
    async (model, prompt) => {
      const request = { model, prompt, max_tokens: 12, echo: true }
      const whole = await client().completions.create(request)
      expect(whole.choices.map(({ finish_reason }) => finish_reason)).toEqual(prompt.map(() => 'length'))
      expect(whole.choices.at(-1)?.text).toMatch(/^a time/)
      const chunks = await collect(await client().completions.create({ ...request, stream: true }))
      const texts = prompt.map(() => '')
      for (const { text, index } of chunks.flatMap(({ choices }) => choices)) texts[index] += text
      expect(texts).toEqual(whole.choices.map(({ text }) => text))
    },
  )

  it.each(isNewest ? THROUGH : [])('tells an error of the upstream through %s', async (_how, model) => {
    const prompt = 'script:error-400'
    const failure = await failureOf(client().completions.create({ model, prompt }))
    expect(failure).toMatchObject({ status: 400 })
    const midway = await client().completions.create({
      model,
      prompt: 'script:mid-stream-error',
      stream: true,
    })
    expect(await failureOf(collect(midway))).toMatchObject({ code: 'stream_error' })
  })
})

describe.each(THROUGH)('the answer of a completion through %s', (_, model) => {
  it('finishes a choice as the model did', async () => {
    for (const [script, reason] of [
      ['max-tokens', 'length'],
      ['stop-sequence', 'stop'],
      ['content-filter', 'content_filter'],
    ]) {
      const completion = completionOf(await complete(model, `script:${script}`))
      expect(completion.choices[0]?.finish_reason).toBe(reason)
    }
  })

  it('is not affected by what models return beside their text', async () => {
    for (const script of ['thinking', 'redacted-thinking', 'citations', 'text-before-tools']) {
      const whole = completionOf(await complete(model, `script:${script}`))
      const streamed = chunksOf(await complete(model, `script:${script}`, { stream: true }))
      expect(
        streamed
          .flatMap(({ choices }) => choices)
          .map(({ text }) => text)
          .join(''),
      ).toBe(textsOf(whole).join(''))
      expect(textsOf(whole)[0]).not.toBe('')
      expect(textsOf(whole)[0]).not.toMatch(/The user asks|get_weather/)
    }
  })
})

describe('a completion without a maximum', () => {
  it('reserves the output that the translated request allows, not all that the model could generate', async () => {
    // A message and 16 tokens of scripted-messages cost hundreds of micro-credits, its longest answer 80,000.
    const poor = await createTenant(gateway(), { credits: 2_000 })
    const ask = (model: string) =>
      send(`${gateway().llmUrl}/v1/completions`, {
        method: 'POST',
        headers: bearer(poor.key),
        body: JSON.stringify({ model, prompt: 'Hello' }),
      })
    expect((await ask('scripted-messages')).status).toBe(200)
    expect((await ask('scripted-chat')).status).toBe(429)
  })
})
