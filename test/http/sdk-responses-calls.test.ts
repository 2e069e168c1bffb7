import OpenAI from 'openai'
import { ResponsesToolRunner } from 'openai/helpers/responses-tool-runner'
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import {
  zodResponsesFunction as zodResponsesFunction6,
  zodTextFormat as zodTextFormat6,
} from 'openai-6/helpers/zod'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import * as z from 'zod'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import {
  CHAT_MODEL,
  collect,
  failureOf,
  MESSAGES_MODEL,
  openAiClients,
  openAiUrl,
  watchedFetch,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { callTool, say } from './support/dlp-answers.ts'
import { recordingFetch, turnsScript } from './support/response-streams.ts'

let tenant: Tenant
let withoutModels: Tenant
let withoutCredits: Tenant

beforeAll(async () => {
  const tenants = [{}, { models: [] }, { credits: 0 }].map((options) => createTenant(gateway(), options))
  ;[tenant, withoutModels, withoutCredits] = (await Promise.all(tenants)) as [Tenant, Tenant, Tenant]
})

/** The official clients parse the arguments of calls in completed responses alone. */
const OPEN_RESPONSES = { defaultHeaders: { 'x-headgate-compatibility': 'open-responses' } }

const Weather = z.object({ city: z.string(), degrees: z.number() })
const PROTOCOLS = [
  ['chat', CHAT_MODEL],
  ['messages', MESSAGES_MODEL],
] as const

describe.each(openAiClients)('%s', (_, Client) => {
  const isNewer = Client === OpenAI
  const textFormat = (isNewer ? zodTextFormat : zodTextFormat6) as typeof zodTextFormat
  const functionOf = (isNewer ? zodResponsesFunction : zodResponsesFunction6) as typeof zodResponsesFunction
  const connect = (options: ConstructorParameters<typeof OpenAI>[0] = {}): OpenAI =>
    new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0, ...options })

  // What a client reads depends on its version and on the model, but not on both.
  describe.each(isNewer ? PROTOCOLS : PROTOCOLS.slice(1))('on a model of %s', (protocol, model) => {
    it('parses what fits a schema', async () => {
      const request = { model, input: 'The weather in Paris?', text: { format: textFormat(Weather, 'w') } }
      const parsed = await connect().responses.parse(request)
      expect(parsed.output_parsed).toEqual({ city: expect.any(String), degrees: expect.any(Number) })
      const recording = recordingFetch()
      const stream = connect({ fetch: recording.fetch }).responses.stream(request)
      expect((await stream.finalResponse()).output_parsed).toEqual(parsed.output_parsed)
      expect(await recording.check()).toHaveLength(1)
    })

    it('parses the arguments of calls, and goes on with their outputs', async () => {
      const tools = [functionOf({ name: 'get_weather', parameters: z.object({ city: z.string() }) })]
      const input = await turnsScript(protocol, [
        [callTool('get_weather', { city: 'Paris' }), callTool('get_weather', { city: 'Rome' })],
        [say('Sunny in both.')],
      ])
      const client = connect(OPEN_RESPONSES)
      let response = await client.responses.parse({ model, input, tools })
      const cities: unknown[] = []
      while (response.output.some(({ type }) => type === 'function_call')) {
        const outputs = response.output.flatMap((item) => {
          if (item.type !== 'function_call') return []
          cities.push(item.parsed_arguments)
          return [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'sunny' }]
        })
        response = await client.responses.parse({
          model,
          input: outputs,
          tools,
          previous_response_id: response.id,
        })
      }
      expect(cities).toEqual([{ city: 'Paris' }, { city: 'Rome' }])
      expect(response.output_text).toBe('Sunny in both.')
    })

    it('streams calls with their arguments', async () => {
      const tools = [functionOf({ name: 'get_weather', parameters: z.object({ city: z.string() }) })]
      const input = await turnsScript(protocol, [[say('So: '), callTool('get_weather', { city: 'Paris' })]])
      const recording = recordingFetch()
      const client = connect({ fetch: recording.fetch, ...OPEN_RESPONSES })
      const stream = client.responses.stream({ model, input, tools })
      let snapshot = ''
      stream.on('response.function_call_arguments.delta', (event) => {
        snapshot = event.snapshot
      })
      const final = await stream.finalResponse()
      expect(snapshot).toBe('{"city":"Paris"}')
      expect(final).toMatchObject({ status: 'completed', incomplete_details: null })
      expect(final.output[1]).toMatchObject({ name: 'get_weather', parsed_arguments: { city: 'Paris' } })
      const plain = await connect().responses.stream({ model, input, tools }).finalResponse()
      expect(plain).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'tool_use' } })
      expect(plain.output[1]).toMatchObject({ name: 'get_weather', arguments: '{"city":"Paris"}' })
      await recording.check()
    })

    it('resumes a stream where it broke off, with its helper', async () => {
      const input = await turnsScript(protocol, [[say('One two three four five.')]])
      const recording = recordingFetch()
      const client = connect({ fetch: recording.fetch })
      const whole = await collect(await client.responses.create({ model, input, stream: true }))
      const last = whole.at(-1)
      if (last?.type !== 'response.completed') throw new Error(`ended with ${last?.type}`)
      const { id } = last.response
      for (const starting_after of [0, 1, 4, whole.length - 1]) {
        const resumed = client.responses.stream({ response_id: id, starting_after })
        const events = await collect(resumed)
        expect(events.map(({ sequence_number }) => sequence_number)).toEqual(
          whole.slice(starting_after).map(({ sequence_number }) => sequence_number),
        )
        expect((await resumed.finalResponse()).output_text).toBe('One two three four five.')
        const plain = await client.responses.retrieve(id, { stream: true, starting_after })
        expect(await collect(plain)).toEqual(whole.slice(starting_after))
      }
      await recording.check()
    })

    it('reads what it made, and deletes it', async () => {
      const client = connect()
      const made = await client.responses.create({ model, input: 'Hello', metadata: { a: 'b' } })
      expect(await client.responses.retrieve(made.id)).toMatchObject({
        id: made.id,
        output_text: made.output_text,
        metadata: { a: 'b' },
      })
      const input = await collect(client.responses.inputItems.list(made.id, { limit: 1 }))
      expect(input).toMatchObject([{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }])
      const conversation = made.conversation?.id ?? ''
      const items = await collect(client.conversations.items.list(conversation, { limit: 1, order: 'asc' }))
      expect(items).toMatchObject([{ id: input[0]?.id }, { id: made.output[0]?.id, role: 'assistant' }])
      const [first] = items
      const one = await client.conversations.items.retrieve(first?.id ?? '', {
        conversation_id: conversation,
      })
      expect(one).toEqual(first)
      await client.responses.delete(made.id)
      expect(await failureOf(client.responses.retrieve(made.id))).toBeInstanceOf(Client.NotFoundError)
      expect(await failureOf(client.responses.delete(made.id))).toBeInstanceOf(Client.NotFoundError)
    })

    it('polls what runs in the background, and cancels it', async () => {
      const signal = uniqueName('signal')
      const client = connect()
      const wait = { waitForSignal: signal }
      const begin = async () =>
        client.responses.create({
          model,
          input: await registerScript(gateway(), [wait, { status: 500, body: '{}' }]),
          background: true,
        })
      const [first, second] = await Promise.all([begin(), begin()])
      for (const response of [first, second]) {
        expect(response).toMatchObject({ status: 'in_progress', background: true, output: [] })
      }
      const cancelled = await client.responses.cancel(first.id)
      expect(cancelled).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'cancelled' } })
      await upstreamControl(gateway()).release(signal)
      await vi.waitFor(
        async () => expect((await client.responses.retrieve(second.id)).status).toBe('failed'),
        { timeout: 5_000, interval: 50 },
      )
      expect((await client.responses.retrieve(first.id)).status).toBe('incomplete')
    })

    it('raises what breaks off in a stream', async () => {
      const client = connect()
      const failing = client.responses.create({ model, input: 'script:mid-stream-cut', stream: true })
      const error = await failureOf(failing.then(collect))
      expect(error).toBeInstanceOf(Client.APIError)
      expect(error).toMatchObject({ status: undefined, code: 'stream_error', type: 'server_error' })
      const whole = await client.responses.create({ model, input: 'script:mid-stream-cut' })
      expect(whole).toMatchObject({ status: 'failed', error: { code: 'stream_error' } })
    })
  })

  it('raises what keeps a response from beginning, streamed or not', async () => {
    for (const stream of isNewer ? [true, false] : [true]) {
      const begin = (more: object, key = tenant.key) => {
        const watched = watchedFetch()
        const client = connect({ apiKey: key, fetch: watched.fetch, maxRetries: 2 })
        const request = { model: CHAT_MODEL, input: 'Hello', stream, ...more }
        return failureOf(client.responses.create(request)).then((error) => {
          // None of these is worth another try.
          expect(watched.attempts).toHaveLength(1)
          return error
        })
      }
      const unknown = await begin({ model: 'no-such' })
      expect(unknown).toBeInstanceOf(Client.BadRequestError)
      expect(unknown).toMatchObject({ status: 400, type: 'invalid_request_error', code: 'model_not_found' })
      const invalid = await begin({ temperature: 'hot' })
      expect(invalid).toBeInstanceOf(Client.BadRequestError)
      expect(invalid).toMatchObject({ code: 'invalid_body', message: expect.stringContaining('temperature') })
      const key = await begin({}, 'wrong-key')
      expect(key).toBeInstanceOf(Client.AuthenticationError)
      const denied = await begin({}, withoutModels.key)
      expect(denied).toBeInstanceOf(Client.PermissionDeniedError)
      expect(denied).toMatchObject({ type: 'permission_error', code: 'model_access_denied' })
      const poor = await begin({}, withoutCredits.key)
      expect(poor).toBeInstanceOf(Client.RateLimitError)
      expect((poor.headers as Headers).get('x-should-retry')).toBe('false')
    }
  })
})

it.each(PROTOCOLS)('runs tools with its runner on a model of %s', async (protocol, model) => {
  const client = new OpenAI({ apiKey: tenant.key, baseURL: openAiUrl(), ...OPEN_RESPONSES })
  for (const options of [{}, { stream: true }, { stream: true, eager: true }]) {
    const cities: unknown[] = []
    const execute = ({ city }: Record<string, unknown>) => `sunny in ${cities.push(city)}`
    const tool = zodResponsesFunction({ name: 'get_weather', parameters: z.object({ city: z.string() }) })
    const input = await turnsScript(protocol, [
      [say('So: '), callTool('get_weather', { city: 'Paris' }), callTool('get_weather', { city: 'Rome' })],
      [say('Sunny in both.')],
    ])
    const runner = new ResponsesToolRunner({ functions: [{ tool, execute }] })
    const response = await runner.run(client, { model, input }, options)
    expect(cities).toEqual(['Paris', 'Rome'])
    expect(response).toMatchObject({ status: 'completed', output_text: 'Sunny in both.' })
  }
})
