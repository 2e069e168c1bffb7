import {
  BedrockRuntimeClient,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
  type ConverseStreamOutput,
  CountTokensCommand,
} from '@aws-sdk/client-bedrock-runtime'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { describe, expect, it } from 'vitest'
import { SCRIPTED_AWS } from '../../scripts/local/model-upstream/vendors/bedrock/scripted-aws.ts'
import { SCRIPTED_TEXT } from '../harness/sdk-clients.ts'
import { upstream, useUpstream } from './model-upstream-harness.ts'

// The scripted Converse, read by the vendor's own client.

useUpstream()

const { region, accessKeyId, secretAccessKey } = SCRIPTED_AWS
const clientWith = (secret: string = secretAccessKey) =>
  new BedrockRuntimeClient({
    endpoint: `${upstream.url}/vendors/bedrock`,
    region,
    credentials: { accessKeyId, secretAccessKey: secret },
    maxAttempts: 1,
    // Otherwise it speaks HTTP/2.
    requestHandler: new NodeHttpHandler(),
  })

const ask = (text: string, more: Partial<ConverseCommandInput> = {}): ConverseCommandInput => ({
  modelId: 'us.amazon.nova-scripted-messages-v1:0',
  messages: [{ role: 'user', content: [{ text }] }],
  ...more,
})

const TOOLS = {
  tools: [
    {
      toolSpec: {
        name: 'get_weather',
        inputSchema: {
          json: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      },
    },
  ],
}

async function streamed(input: ConverseCommandInput): Promise<ConverseStreamOutput[]> {
  const { stream } = await clientWith().send(new ConverseStreamCommand(input))
  const events: ConverseStreamOutput[] = []
  for await (const event of stream ?? []) events.push(event)
  return events
}

describe('the scripted Converse', () => {
  it('answers', async () => {
    const answer = await clientWith().send(new ConverseCommand(ask('script:canned')))
    expect(answer.output?.message).toEqual({ role: 'assistant', content: [{ text: SCRIPTED_TEXT }] })
    expect(answer.stopReason).toBe('end_turn')
    expect(answer.usage?.outputTokens).toBeGreaterThan(0)
  })

  it('streams, with the usage after the end', async () => {
    const events = await streamed(ask('script:canned'))
    const names = events.map((event) => Object.keys(event)[0])
    expect([names[0], names.at(-2), names.at(-1)]).toEqual(['messageStart', 'messageStop', 'metadata'])
    // A text has no event for its start.
    expect(names).not.toContain('contentBlockStart')
    const text = events.map((event) => event.contentBlockDelta?.delta?.text ?? '').join('')
    expect(text).toBe(SCRIPTED_TEXT)
    expect(events.at(-1)?.metadata?.usage?.outputTokens).toBeGreaterThan(0)
  })

  it('calls tools, whole and streamed, and takes their results', async () => {
    const input = ask('script:tool-call', { toolConfig: TOOLS })
    const { output, stopReason } = await clientWith().send(new ConverseCommand(input))
    expect(stopReason).toBe('tool_use')
    const call = output?.message?.content?.find(({ toolUse }) => toolUse)?.toolUse
    expect(call).toMatchObject({ name: 'get_weather', input: expect.any(Object) })
    const events = await streamed(input)
    const start = events.find(({ contentBlockStart }) => contentBlockStart)
    expect(start?.contentBlockStart?.start?.toolUse?.name).toBe('get_weather')
    const json = events.map((event) => event.contentBlockDelta?.delta?.toolUse?.input ?? '').join('')
    expect(JSON.parse(json)).toEqual(call?.input)
    const result = { toolUseId: call?.toolUseId ?? '', content: [{ text: 'Sunny script:canned' }] }
    const history = [
      ...(input.messages ?? []),
      { role: 'assistant' as const, content: output?.message?.content },
      { role: 'user' as const, content: [{ toolResult: result }] },
    ]
    const next = ask('', { messages: history, toolConfig: TOOLS })
    expect((await clientWith().send(new ConverseCommand(next))).stopReason).toBe('end_turn')
    const without = ask('', { messages: history })
    await expect(clientWith().send(new ConverseCommand(without))).rejects.toThrow(/toolConfig field/)
  })

  it('counts tokens', async () => {
    const { messages } = ask('How many tokens is this?')
    const command = new CountTokensCommand({ modelId: 'amazon.nova', input: { converse: { messages } } })
    expect((await clientWith().send(command)).inputTokens).toBeGreaterThan(3)
  })

  it.each([
    ['error-400', 'ValidationException', 400],
    ['error-429', 'ThrottlingException', 429],
    ['error-500', 'InternalServerException', 500],
    ['error-529', 'ServiceUnavailableException', 503],
  ])('turns %s into an exception', async (script, name, status) => {
    const failure = clientWith().send(new ConverseCommand(ask(`script:${script}`)))
    await expect(failure).rejects.toMatchObject({ name, $metadata: { httpStatusCode: status } })
  })

  it('tells of an error in the middle of a stream', async () => {
    await expect(streamed(ask('script:mid-stream-error'))).rejects.toMatchObject({
      name: expect.stringMatching(/Exception$/),
    })
  })

  it('refuses another signature', async () => {
    const failure = clientWith('another-secret').send(new ConverseCommand(ask('Hi')))
    await expect(failure).rejects.toMatchObject({ name: 'InvalidSignatureException' })
  })

  it.each<[string, Partial<ConverseCommandInput>, RegExp]>([
    ['roles', { messages: [{ role: 'assistant', content: [{ text: 'Hi' }] }] }, /must start with a user/],
    ['blank texts', { messages: [{ role: 'user', content: [{ text: ' ' }] }] }, /is blank/],
    ['empty messages', { messages: [{ role: 'user', content: [] }] }, /is empty/],
    ['a temperature', { inferenceConfig: { temperature: 1.5 } }, /temperature/],
    [
      'documents without a text',
      {
        messages: [
          {
            role: 'user',
            content: [{ document: { format: 'txt', name: 'a', source: { bytes: new Uint8Array([65]) } } }],
          },
        ],
      },
      /text block must be included/,
    ],
    [
      'names of documents',
      {
        messages: [
          {
            role: 'user',
            content: [
              { text: 'Hi' },
              { document: { format: 'txt', name: 'a.txt', source: { bytes: new Uint8Array([65]) } } },
            ],
          },
        ],
      },
      /invalid characters/,
    ],
  ])('refuses %s as the vendor does', async (_name, more, message) => {
    await expect(clientWith().send(new ConverseCommand(ask('Hi', more)))).rejects.toThrow(message)
  })
})
