import { ApiError, type Content, GoogleGenAI } from '@google/genai'
import { describe, expect, it } from 'vitest'
import { SCRIPTED_GEMINI } from '../../scripts/local/model-upstream/vendors/gemini/gemini.ts'
import { upstream, useUpstream } from './model-upstream-harness.ts'

// The official client on the scripted Gemini.

useUpstream()

const { model, key } = SCRIPTED_GEMINI
const client = (apiKey = key) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${upstream.url}/vendors/gemini` } }).models
const ask = (contents: string | Content[], config = {}) =>
  client().generateContent({ model, contents, config })
const TOOLS = [
  {
    functionDeclarations: [
      {
        name: 'get_weather',
        parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } } },
      },
    ],
  },
]

async function failureOf(call: Promise<unknown>): Promise<{ status: number; message: string }> {
  try {
    await call
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, message: error.message }
    throw error
  }
  throw new Error('it did not fail')
}

describe('the scripted Gemini', () => {
  it('answers whole and streamed, with thoughts on request and usage', async () => {
    const whole = await ask('script:canned', { thinkingConfig: { includeThoughts: true } })
    expect(whole.text).not.toBe('')
    expect(whole.candidates?.[0]?.content?.parts?.[0]).toMatchObject({ thought: true })
    const {
      promptTokenCount = 0,
      candidatesTokenCount = 0,
      thoughtsTokenCount = 0,
      totalTokenCount,
    } = whole.usageMetadata ?? {}
    expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount + thoughtsTokenCount)
    let text = ''
    let finishReason: string | undefined
    for await (const chunk of await client().generateContentStream({ model, contents: 'script:canned' })) {
      text += chunk.text ?? ''
      finishReason = chunk.candidates?.[0]?.finishReason ?? finishReason
    }
    expect([text, finishReason]).toEqual([whole.text, 'STOP'])
  })

  it('signs its calls, and demands the signature', async () => {
    const first = await ask('script:tool-call', { tools: TOOLS })
    const content = first.candidates?.[0]?.content
    const call = first.functionCalls?.[0]
    const signed = content?.parts?.find((part) => part.functionCall)
    if (!content || !call || !signed) throw new Error('no call')
    expect(signed.thoughtSignature).toEqual(expect.any(String))
    const functionResponse = { id: call.id ?? '', name: call.name ?? '', response: { output: 'Sunny' } }
    const history = (made: Content): Content[] => [
      { role: 'user', parts: [{ text: 'script:canned' }] },
      made,
      { role: 'user', parts: [{ functionResponse }] },
    ]
    expect((await ask(history(content), { tools: TOOLS })).text).not.toBe('')
    const withSignature = (thoughtSignature: string | undefined) =>
      history({
        role: 'model',
        parts: [{ functionCall: call, ...(thoughtSignature && { thoughtSignature }) }],
      })
    expect(await failureOf(ask(withSignature(undefined)))).toMatchObject({
      status: 400,
      message: expect.stringContaining('missing a thought_signature'),
    })
    expect(await failureOf(ask(withSignature('b3RoZXI=')))).toMatchObject({
      status: 400,
      message: expect.stringContaining('Corrupted thought signature'),
    })
    expect((await ask(withSignature('skip_thought_signature_validator'))).text).not.toBe('')
  })

  it('blocks prompts, and writes calls that cannot be read', async () => {
    const blocked = await ask('gemini-blocked')
    expect([blocked.candidates, blocked.promptFeedback?.blockReason]).toEqual([
      undefined,
      'PROHIBITED_CONTENT',
    ])
    const malformed = await ask('gemini-malformed')
    expect(malformed.candidates?.[0]?.finishReason).toBe('MALFORMED_FUNCTION_CALL')
  })

  it('counts tokens', async () => {
    const { totalTokens } = await client().countTokens({ model, contents: 'How many tokens is this?' })
    expect(totalTokens).toBeGreaterThan(3)
  })

  it('refuses what the vendor refuses', async () => {
    const other = client('AIza-other').generateContent({ model, contents: 'Hi' })
    expect(await failureOf(other)).toMatchObject({
      status: 400,
      message: expect.stringContaining('API_KEY_INVALID'),
    })
    expect((await failureOf(client().generateContent({ model: 'gemini-1', contents: 'Hi' }))).status).toBe(
      404,
    )
    expect((await failureOf(ask('script:error-429'))).status).toBe(429)
    const unanswered: Content[] = [
      { role: 'user', parts: [{ text: 'Hi' }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      { role: 'user', parts: [{ text: 'And?' }] },
    ]
    expect((await failureOf(ask(unanswered))).message).toContain('number of function response parts')
  })
})
