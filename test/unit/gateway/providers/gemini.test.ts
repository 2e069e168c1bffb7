import { GoogleGenAI } from '@google/genai'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { credentialOf } from '../../../../src/gateway/providers/credential.ts'
import { gemini } from '../../../../src/gateway/providers/gemini/gemini.ts'
import { sendToProvider } from '../../../../src/gateway/providers/send-to-provider.ts'
import { counterRequest, countIn } from '../../../../src/gateway/token-count/counters.ts'
import { bodyOf } from './sent-by-gateway.ts'
import { recordFetch, requestOf, type Sent } from './upstream-recorder.ts'

const BASE_URL = 'https://generativelanguage.googleapis.com/v1beta'
const MODEL = 'gemini-3-pro-preview'
const CONTENTS = [{ role: 'user', parts: [{ text: 'Hi' }] }]

const connected = () =>
  gemini.connect(BASE_URL, credentialOf(gemini.credential, 'AIzaDUMMY').parts, { allowedMembers: [] })
const client = () => new GoogleGenAI({ apiKey: 'AIzaDUMMY' })

/** Address, credential and body of a request. */
const essence = (sent: Sent) => ({
  address: String(sent.address),
  key: sent.headers['x-goog-api-key'],
  type: sent.headers['content-type'],
  body: bodyOf(sent),
})

afterEach(() => void vi.unstubAllGlobals())

describe('a request to the Gemini API', () => {
  const send = (operation: 'generate_content' | 'input_tokens', stream: boolean, body: object) =>
    sendToProvider(
      connected(),
      requestOf({
        operation,
        stream,
        upstreamModel: MODEL,
        body: new TextEncoder().encode(JSON.stringify(body)),
      }),
    )

  it.each([
    ['whole', false],
    ['streamed', true],
  ])('is that of the official client, %s', async (_form, stream) => {
    const call = { model: MODEL, contents: CONTENTS }
    const byClient = recordFetch(() => new Response('data: {}\n\n'))
    if (stream) await client().models.generateContentStream(call)
    else
      await client()
        .models.generateContent(call)
        .catch(() => null)
    const byGateway = recordFetch()
    await send('generate_content', stream, { contents: CONTENTS })
    expect(byGateway.map(essence)).toEqual(byClient.map(essence))
    expect(byGateway[0]?.headers.accept).toBe(stream ? 'text/event-stream' : 'application/json')
  })

  it('has the path of a model, and never another one', () => {
    const transport = connected()
    const urlOf = (upstreamModel: string) =>
      transport.prepare(requestOf({ operation: 'generate_content', upstreamModel }), new Uint8Array()).url
    expect(urlOf('models/a')).toBe(`${BASE_URL}/models/a:generateContent`)
    expect(urlOf('tunedModels/a b')).toBe(`${BASE_URL}/tunedModels/a%20b:generateContent`)
    expect(urlOf('a?key=x#:countTokens')).toBe(
      `${BASE_URL}/models/a%3Fkey%3Dx%23%3AcountTokens:generateContent`,
    )
    for (const name of ['..', '.', 'a/../b', '', 'a//b']) {
      expect(transport.speaks('generate_content', name), name).toBe(false)
    }
    expect(transport.speaks('chat_completions', MODEL)).toBe(false)
    expect(() => transport.prepare(requestOf(), new Uint8Array())).toThrow('does not speak chat_completions')
  })

  it('counts as the official client does', async () => {
    const byClient = recordFetch(() => Response.json({ totalTokens: 3 }))
    await client().models.countTokens({ model: MODEL, contents: CONTENTS })
    const messages = {
      model: 'm',
      max_tokens: 5,
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'Hi' }],
    }
    const body = counterRequest(
      'generate_content',
      new TextEncoder().encode(JSON.stringify(messages)),
      MODEL,
      null,
    )
    const byGateway = recordFetch()
    await send('input_tokens', false, JSON.parse(new TextDecoder().decode(body)))
    expect(byGateway[0]?.address).toBe(byClient[0]?.address)
    // The client for API keys counts contents only; the instructions are a part of the request.
    expect(byGateway.map(bodyOf)).toEqual([
      {
        generateContentRequest: {
          model: `models/${MODEL}`,
          systemInstruction: { parts: [{ text: 'Be brief.' }] },
          contents: CONTENTS,
        },
      },
    ])
    expect(countIn('generate_content', new TextEncoder().encode('{"totalTokens":31}'))).toBe(31)
    expect(countIn('generate_content', new TextEncoder().encode('{}'))).toBeNull()
  })
})
