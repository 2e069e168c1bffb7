import { FunctionCallingConfigMode, ThinkingLevel } from '@google/genai'
import { describe, expect, it } from 'vitest'
import { type Json, objectOf } from '../../../../../src/gateway/protocols/json.ts'
import {
  CHAT_TO_CANONICAL,
  MESSAGES_TO_CANONICAL,
  RESPONSES_TO_CANONICAL,
} from '../../../../../src/gateway/translation/requests/canonical-members.ts'
import { responseSchema } from '../../../../../src/gateway/translation/requests/generate-content-format.ts'
import {
  chat,
  completion,
  configOf,
  contentsOf,
  gemini,
  marked,
  messages,
  responses,
  sentByClient,
} from './generate-content.ts'
import { assistant, call, functionTool, refusal, toolMessage, user } from './requests.ts'

const PNG = 'data:image/png;base64,AAAA'
const SCHEMA = { type: 'object' }
const F_TOOL = { type: 'function', function: { name: 'f', description: 'd', parameters: SCHEMA } }
const signedCall = (signature: string, id = 'c1') => ({
  ...call(id, 'f', '{"a":1}'),
  extra_content: { google: { thought_signature: signature } },
})
const responseFormat = (schema: Json) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
})

describe('a request of every kind of content', () => {
  const WHOLE: Json = {
    messages: [
      { role: 'system', content: 'Be brief.' },
      user([
        { type: 'text', text: 'Hi' },
        { type: 'image_url', image_url: { url: PNG } },
      ]),
      assistant(null, { tool_calls: [signedCall(marked('U0lH'))] }),
      toolMessage('c1', '1'),
    ],
    tools: [F_TOOL],
    tool_choice: { type: 'function', function: { name: 'f' } },
    temperature: 0.5,
    top_p: 0.9,
    max_completion_tokens: 100,
    stop: ['X'],
    seed: 1,
    reasoning_effort: 'low',
    ...responseFormat(SCHEMA),
  }

  it('is what the official client sends', async () => {
    const sent = await sentByClient({
      model: 'gemini-3-pro-preview',
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
        {
          role: 'model',
          parts: [{ functionCall: { id: 'c1', name: 'f', args: { a: 1 } }, thoughtSignature: 'U0lH' }],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { id: 'c1', name: 'f', response: { output: '1' } } }],
        },
      ],
      config: {
        systemInstruction: 'Be brief.',
        tools: [{ functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema: SCHEMA }] }],
        toolConfig: {
          functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['f'] },
        },
        temperature: 0.5,
        topP: 0.9,
        maxOutputTokens: 100,
        stopSequences: ['X'],
        seed: 1,
        responseMimeType: 'application/json',
        responseJsonSchema: SCHEMA,
        thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW },
      },
    })
    expect(sent.path).toBe('/v1beta/models/gemini-3-pro-preview:generateContent')
    expect(sent.headers['x-goog-api-key']).toBe('AIzaDUMMY')
    // The client writes a role into the instruction, which has none by the vendor's reference.
    delete objectOf(sent.body.systemInstruction).role
    const { body, dropped } = chat(WHOLE)
    expect(body).toEqual(sent.body)
    expect(dropped).toEqual([])
  })

  it('is the same from messages and from responses', () => {
    const { body } = chat(WHOLE)
    const ofMessages = messages({
      system: 'Be brief.',
      messages: [
        user([
          { type: 'text', text: 'Hi' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        ]),
        assistant([
          { type: 'thinking', thinking: 'So.', signature: marked('U0lH') },
          { type: 'tool_use', id: 'c1', name: 'f', input: { a: 1 } },
        ]),
        user([{ type: 'tool_result', tool_use_id: 'c1', content: '1' }]),
      ],
      tools: [{ name: 'f', description: 'd', input_schema: SCHEMA }],
      tool_choice: { type: 'tool', name: 'f' },
      temperature: 0.5,
      top_p: 0.9,
      stop_sequences: ['X'],
      thinking: { type: 'enabled', budget_tokens: 2_000 },
      output_config: { format: { type: 'json_schema', schema: SCHEMA } },
    })
    const { seed: _seed, ...config } = objectOf(body.generationConfig)
    expect(ofMessages.body).toEqual({ ...body, generationConfig: config })
    const ofResponses = responses({
      instructions: 'Be brief.',
      input: [
        user([
          { type: 'input_text', text: 'Hi' },
          { type: 'input_image', image_url: PNG },
        ]),
        { type: 'reasoning', content: [{ text: 'So.' }], signature: 'U0lH', origin: gemini().origin },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
        { type: 'function_call_output', call_id: 'c1', output: '1' },
      ],
      tools: [{ type: 'function', name: 'f', description: 'd', parameters: SCHEMA }],
      tool_choice: { type: 'function', name: 'f' },
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 100,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'json_schema', name: 'x', schema: SCHEMA } },
    })
    const { stopSequences: _stop, ...unstopped } = config
    expect(ofResponses.body).toEqual({ ...body, generationConfig: unstopped })
  })

  it('names neither the model nor the stream, which are in the address', () => {
    expect(chat({ stream: true }).body).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] })
  })

  it('of a legacy completion reasons as little as it can', () => {
    const { body, dropped } = completion({ temperature: 0.1, best_of: 1, user: 'u' })
    expect(body).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      generationConfig: {
        temperature: 0.1,
        maxOutputTokens: 4_096,
        thinkingConfig: { thinkingLevel: 'LOW' },
      },
    })
    expect(dropped).toEqual(['user'])
  })
})

describe('signatures of thoughts', () => {
  const SKIPPED = 'skip_thought_signature_validator'
  const callsOf = (tool_calls: Json[], model = gemini()) => {
    const results = tool_calls.map(({ id }) => toolMessage(String(id), 'r'))
    const contents = contentsOf(
      chat({ messages: [user('Hi'), assistant('Text.', { tool_calls }), ...results] }, model),
    ) as Array<{ parts: Json[] }>
    return contents[1]?.parts.slice(1).map((part) => part.thoughtSignature)
  }

  it('stand on the call that had them, and of parallel calls only on that one', () => {
    expect(callsOf([signedCall(marked('s')), call('c2', 'f')])).toEqual(['s', undefined])
  })

  it.each([
    ['none', call('c1', 'f')],
    ['another origin', signedCall(marked('s', 'another'))],
    ['no mark', signedCall('s')],
  ])('are replaced on the first call of a step that has %s', (_name, first) => {
    expect(callsOf([first, call('c2', 'f')])).toEqual([SKIPPED, undefined])
  })

  it('are replaced in every step', () => {
    const step = (id: string) => [assistant(null, { tool_calls: [call(id, 'f')] }), toolMessage(id, 'r')]
    const { body } = chat({ messages: [user('Hi'), ...step('a'), ...step('b')] })
    expect(JSON.stringify(body).split(SKIPPED)).toHaveLength(3)
  })

  it('are not replaced for models before Gemini 3', () => {
    const model = gemini('gemini-2.5-flash')
    expect(callsOf([call('c1', 'f')], model)).toEqual([undefined])
    expect(callsOf([signedCall(marked('s'))], model)).toEqual(['s'])
  })

  it('of a text come back as a part without text, in their place', () => {
    const thinking = { type: 'thinking', thinking: 'Hm.', signature: marked('s') }
    const { body } = messages({
      messages: [user('Hi'), assistant([{ type: 'text', text: 'Yes.' }, thinking]), user('And?')],
    })
    expect(body.contents).toEqual([
      { role: 'user', parts: [{ text: 'Hi' }] },
      { role: 'model', parts: [{ text: 'Yes.' }, { text: '', thoughtSignature: 's' }] },
      { role: 'user', parts: [{ text: 'And?' }] },
    ])
  })

  it('of other models leave no trace of their thoughts', () => {
    const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'EpUB' }
    const { body } = messages({
      messages: [user('Hi'), assistant([thinking, { type: 'text', text: 'Yes.' }]), user('And?')],
    })
    expect(body.contents).toMatchObject([{}, { parts: [{ text: 'Yes.' }] }, {}])
  })
})

describe('results of calls', () => {
  it('stand in one content, in the order of the calls, before what the user adds', () => {
    const { body } = messages({
      messages: [
        user('Hi'),
        assistant([
          { type: 'tool_use', id: 'a', name: 'f', input: {} },
          { type: 'tool_use', id: 'b', name: 'g', input: {} },
        ]),
        user([
          { type: 'text', text: 'Well?' },
          { type: 'tool_result', tool_use_id: 'b', content: 'bad', is_error: true },
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }],
          },
        ]),
      ],
    })
    expect((body.contents as Json[])[2]).toEqual({
      role: 'user',
      parts: [
        {
          functionResponse: {
            id: 'a',
            name: 'f',
            response: { output: '(What the tool returned follows as an attachment.)' },
          },
        },
        { functionResponse: { id: 'b', name: 'g', response: { error: 'bad' } } },
        { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
        { text: 'Well?' },
      ],
    })
  })

  it('have no ids where the provider refuses them', () => {
    const given = {
      messages: [user('Hi'), assistant(null, { tool_calls: [call('c', 'f')] }), toolMessage('c', 'r')],
    }
    expect(JSON.stringify(chat(given, gemini(undefined, { omitsCallIds: true })).body)).not.toContain('"id"')
    expect(JSON.stringify(chat(given).body)).toContain('"id":"c"')
  })

  it('are refused without their call, and calls without their result', () => {
    expect(refusal(() => chat({ messages: [user('Hi'), toolMessage('c', 'r')] }))).toContain(
      'messages.1.tool_call_id',
    )
    const open = { messages: [user('Hi'), assistant(null, { tool_calls: [call('c', 'f')] })] }
    expect(refusal(() => chat(open))).toContain('has no tool message')
    const block = { type: 'tool_result', tool_use_id: 'c', content: 'r' }
    expect(refusal(() => messages({ messages: [user([block])] }))).toContain(
      'messages.0.content.0.tool_use_id',
    )
  })
})

describe('a conversation', () => {
  it('begins and ends with the user', () => {
    const { body } = chat({ messages: [assistant('Hello.'), user('Hi'), assistant('Well,')] })
    expect((body.contents as Json[]).map(({ role }) => role)).toEqual([
      'user',
      'model',
      'user',
      'model',
      'user',
    ])
  })

  it('of system messages alone becomes the user’s, and texts without a character are left out', () => {
    const { body } = chat({ messages: [{ role: 'developer', content: 'Speak.' }, user('')] })
    expect(body).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Speak.' }] }] })
    expect(refusal(() => chat({ messages: [user('')] }))).toContain('at least one message')
  })

  it('with a prefilled answer is refused on messages, as by models that do not continue one', () => {
    expect(refusal(() => messages({ messages: [user('Hi'), assistant('We')] }))).toContain('prefill')
  })

  it.each<[string, Json, unknown]>([
    ['a PDF', { type: 'file', file: { file_data: 'data:application/pdf;base64,AA' } }, 'application/pdf'],
    ['a named file', { type: 'file', file: { filename: 'a.csv', file_data: 'AA' } }, 'text/csv'],
    ['audio', { type: 'input_audio', input_audio: { data: 'AA', format: 'mp3' } }, 'audio/mp3'],
  ])('takes %s as inline data', (_name, part, mimeType) => {
    expect(contentsOf(chat({ messages: [user([part])] }))).toEqual([
      { role: 'user', parts: [{ inlineData: { mimeType, data: 'AA' } }] },
    ])
  })

  it.each(['https://a.example/b.png', 'gs://bucket/b.png', 'data:text/plain;base64,AA'])(
    'refuses the image %s',
    (url) => {
      const part = { type: 'image_url', image_url: { url } }
      expect(refusal(() => chat({ messages: [user([part])] }))).toContain(
        'messages.0.content.0.image_url.url',
      )
    },
  )

  it('keeps documents of text as text', () => {
    const document = {
      type: 'document',
      title: 'T',
      source: { type: 'text', media_type: 'text/plain', data: 'D' },
    }
    expect(contentsOf(messages({ messages: [user([document])] }))).toEqual([
      { role: 'user', parts: [{ text: 'T' }, { text: 'D' }] },
    ])
  })
})

describe('efforts', () => {
  const thinkingOf = (effort: string, model: string) =>
    objectOf(configOf(chat({ reasoning_effort: effort }, gemini(model)))).thinkingConfig

  it.each([
    ['gemini-3-pro-preview', ['LOW', 'LOW', 'LOW', 'HIGH', 'HIGH', 'HIGH']],
    ['gemini-3.1-pro', ['LOW', 'LOW', 'LOW', 'MEDIUM', 'HIGH', 'HIGH']],
    ['publishers/google/models/gemini-3-flash', ['MINIMAL', 'MINIMAL', 'LOW', 'MEDIUM', 'HIGH', 'HIGH']],
    ['gemini-flash-latest', ['MINIMAL', 'MINIMAL', 'LOW', 'MEDIUM', 'HIGH', 'HIGH']],
  ])('are levels of %s', (model, levels) => {
    const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'max']
    expect(efforts.map((effort) => objectOf(thinkingOf(effort, model)).thinkingLevel)).toEqual(levels)
    expect(thinkingOf('none', model)).not.toHaveProperty('includeThoughts')
    expect(thinkingOf('low', model)).toHaveProperty('includeThoughts', true)
  })

  it('are budgets of Gemini 2.5, which leave room for the answer', () => {
    expect(thinkingOf('none', 'gemini-2.5-flash')).toEqual({ thinkingBudget: 0 })
    expect(thinkingOf('none', 'gemini-2.5-pro')).toEqual({ thinkingBudget: 128 })
    expect(thinkingOf('medium', 'gemini-2.5-flash')).toEqual({ includeThoughts: true, thinkingBudget: 8_192 })
    expect(thinkingOf('max', 'gemini-2.5-flash')).toMatchObject({ thinkingBudget: 10_000 - 1_024 })
    const budget = messages(
      { max_tokens: 5_000, thinking: { type: 'enabled', budget_tokens: 3_000 } },
      gemini('gemini-2.5-pro'),
    )
    expect(configOf(budget)).toMatchObject({ thinkingConfig: { thinkingBudget: 3_000 } })
  })

  it('are reported as dropped by models that do not reason', () => {
    const { body, dropped } = chat({ reasoning_effort: 'low' }, gemini(undefined, { capabilities: [] }))
    expect(body.generationConfig).toBeUndefined()
    expect(dropped).toEqual(['reasoning_effort'])
  })
})

describe('tools', () => {
  const toolConfig = (members: Json) =>
    chat({ tools: [functionTool('f'), functionTool('g')], ...members }).body.toolConfig

  it.each<[Json, unknown]>([
    [{}, undefined],
    [{ tool_choice: 'auto' }, undefined],
    [{ tool_choice: 'none' }, { mode: 'NONE' }],
    [{ tool_choice: 'required' }, { mode: 'ANY' }],
    [{ tools: [functionTool('f', { strict: true })] }, { mode: 'VALIDATED' }],
    [
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'g' } }] },
        },
      },
      { mode: 'VALIDATED', allowedFunctionNames: ['g'] },
    ],
  ])('%j', (members, functionCallingConfig) => {
    expect(toolConfig(members)).toEqual(functionCallingConfig && { functionCallingConfig })
  })

  it('of other kinds are refused', () => {
    expect(refusal(() => chat({ tools: [{ type: 'custom', custom: { name: 'f' } }] }))).toContain('tools.0')
    expect(refusal(() => messages({ tools: [{ type: 'web_search_20250305', name: 'w' }] }))).toContain(
      'tools.0',
    )
    expect(refusal(() => chat({ web_search_options: {} }))).toContain('web_search_options')
  })
})

describe('formats', () => {
  it('are native: JSON mode needs no instruction', () => {
    const { body, jsonByInstruction } = chat({ response_format: { type: 'json_object' } })
    expect(body).toMatchObject({ generationConfig: { responseMimeType: 'application/json' } })
    expect(body.systemInstruction).toBeUndefined()
    expect(jsonByInstruction).toBe(false)
  })

  it('beside tools are an instruction for Gemini 2.5, which refuses both together', () => {
    const members = { ...responseFormat({ type: 'object', title: 'Reply' }), tools: [functionTool('f')] }
    const old = chat(members, gemini('gemini-2.5-flash'))
    expect(old.jsonByInstruction).toBe(true)
    expect(JSON.stringify(old.body.systemInstruction)).toContain('Reply')
    expect(configOf(old)).toBeUndefined()
    expect(configOf(chat(members))).toHaveProperty('responseJsonSchema')
    const unused = chat({ ...members, tool_choice: 'none' }, gemini('gemini-2.5-flash'))
    expect(configOf(unused)).toHaveProperty('responseJsonSchema')
  })

  it('of a model without schemas are JSON mode with an instruction', () => {
    const { body, jsonByInstruction } = chat(responseFormat(SCHEMA), gemini(undefined, { capabilities: [] }))
    expect(body.generationConfig).toEqual({ responseMimeType: 'application/json' })
    expect(body.systemInstruction).toBeDefined()
    expect(jsonByInstruction).toBe(false)
  })

  it('have the keywords that the vendor takes, and the others in words', () => {
    expect(
      responseSchema({
        $schema: 'x',
        type: 'object',
        properties: {
          kind: { const: 'a' },
          word: { type: 'string', pattern: '^a', description: 'A word.' },
          next: { $ref: '#/definitions/next' },
          both: { allOf: [{ type: 'string' }, { maxLength: 3 }] },
        },
        definitions: { next: { type: ['string', 'null'], default: null } },
        additionalProperties: false,
        required: ['kind'],
      }),
    ).toEqual({
      type: 'object',
      properties: {
        kind: { enum: ['a'] },
        word: { type: 'string', description: 'A word. (pattern: "^a")' },
        next: { $ref: '#/$defs/next' },
        both: { type: 'string', description: '(maxLength: 3)' },
      },
      $defs: { next: { type: ['string', 'null'] } },
      additionalProperties: false,
      required: ['kind'],
    })
  })
})

describe('the tables of members', () => {
  const THINKING = { type: 'enabled', budget_tokens: 1_024 }
  const SAMPLES = [true, 2, 0.5, 'sample', 'low', ['sample'], [{ sample: 1 }], { sample: 1 }, THINKING]
  const TABLES = [
    ['chat completions', CHAT_TO_CANONICAL, chat],
    ['messages', MESSAGES_TO_CANONICAL, messages],
    ['responses', RESPONSES_TO_CANONICAL, responses],
  ] as const
  /** They decide about the whole request, and are tested by themselves. */
  const WHOLE = new Set(['messages', 'input', 'instructions', 'model', 'n'])

  it.each(TABLES)('match the treatment of members of %s', (_name, rules, convert) => {
    for (const [member, rule] of Object.entries(rules)) {
      if (WHOLE.has(member)) continue
      const outcomes = SAMPLES.map((sample) => outcomeOf(() => convert({ [member]: sample }, gemini())))
      const converted = outcomes.flatMap((outcome) => ('dropped' in outcome ? [outcome] : []))
      if (rule.treatment === 'refused') {
        const refusals = outcomes.filter(
          (outcome) => 'refused' in outcome && outcome.refused.startsWith(`${member}:`),
        )
        expect(refusals.length, member).toBe(SAMPLES.filter((sample) => rule.refuses?.(sample)).length)
      } else if (rule.treatment === 'dropped' && rule.silent !== true) {
        expect(
          converted.every(({ dropped }) => dropped.includes(member)),
          member,
        ).toBe(true)
        expect(converted.length, member).toBeGreaterThan(0)
      } else {
        // One of the values reaches the upstream, or has its effect.
        expect(
          outcomes.some((outcome) => 'refused' in outcome || !outcome.dropped.includes(member)),
          member,
        ).toBe(true)
      }
    }
  })

  function outcomeOf(
    convert: () => { dropped: readonly string[] },
  ): { dropped: readonly string[] } | { refused: string } {
    try {
      return { dropped: convert().dropped }
    } catch (error) {
      return { refused: (error as Error).message }
    }
  }
})

describe('what cannot be expressed', () => {
  it('is dropped by its name', () => {
    const { body, dropped } = chat({
      seed: 2 ** 40,
      parallel_tool_calls: false,
      logit_bias: {},
      user: 'u',
      verbosity: 'low',
      frequency_penalty: 1,
      n: 2,
      a_member_of_tomorrow: 1,
      metadata: {},
    })
    expect(body.generationConfig).toEqual({ frequencyPenalty: 1, candidateCount: 2 })
    expect(dropped).toEqual([
      'seed',
      'parallel_tool_calls',
      'logit_bias',
      'user',
      'verbosity',
      'a_member_of_tomorrow',
    ])
  })

  it('is a penalty on Gemini 2.5', () => {
    const { body, dropped } = chat({ presence_penalty: 1 }, gemini('gemini-2.5-pro'))
    expect(body.generationConfig).toBeUndefined()
    expect(dropped).toEqual(['presence_penalty'])
  })

  it('is kept where another wire drops it', () => {
    expect(messages({ top_k: 40 })).toMatchObject({ body: { generationConfig: { topK: 40 } }, dropped: [] })
  })

  it.each<[Json, string]>([
    [{ logprobs: true }, 'logprobs'],
    [{ functions: [{}] }, 'functions'],
    [{ modalities: ['audio'] }, 'modalities'],
    [{ n: 2, stream: true }, 'n'],
  ])('%j is refused', (members, name) => {
    expect(refusal(() => chat(members)).startsWith(`${name}:`)).toBe(true)
  })
})
