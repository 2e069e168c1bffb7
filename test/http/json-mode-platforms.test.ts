import type OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { SCRIPTED_AZURE } from '../../scripts/local/model-upstream/vendors/azure/azure.ts'
import { SCRIPTED_AWS } from '../../scripts/local/model-upstream/vendors/bedrock/scripted-aws.ts'
import { SCRIPTED_FOUNDRY } from '../../scripts/local/model-upstream/vendors/foundry/foundry.ts'
import { SCRIPTED_GEMINI } from '../../scripts/local/model-upstream/vendors/gemini/gemini.ts'
import { gateway } from '../harness/gateway.ts'
import { readList } from '../harness/records.ts'
import { newestOpenAi, openAiUrl } from '../harness/sdk-clients.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'

// The five cases of JSON mode (interface: Chat completions) on every platform, by the official client of chat completions.

type Json = Record<string, unknown>
type Params = OpenAI.ChatCompletionCreateParams

const OBJECT = { response_format: { type: 'json_object' as const } }
const PROPERTIES = { answer: { type: 'string' }, count: { type: 'integer' } }
const ANSWER = {
  type: 'object',
  properties: PROPERTIES,
  required: ['answer', 'count'],
  additionalProperties: false,
}
const SCHEMA = {
  response_format: {
    type: 'json_schema' as const,
    json_schema: { name: 'answer', strict: true, schema: ANSWER },
  },
}
const TOOLS = {
  tools: [{ type: 'function' as const, function: { name: 'look', parameters: { type: 'object' } } }],
}
const FENCED = '```json\n{"answer": "fenced", "count": 3}\n```'
const RAW = '{"answer": "fenced", "count": 3}'
const INSTRUCTION = 'Answer with exactly one JSON object'

interface Platform {
  name: string
  /** The scripted vendor that serves it, by the name of its seeded provider; null for one that is made here. */
  provider: string | null
  upstreamModel: string
  /** Whether the platform has structured output. */
  hasSchemas: boolean
}

const CLAUDE: readonly Platform[] = [
  { name: 'Anthropic', provider: 'scripted-anthropic', upstreamModel: 'scripted-messages', hasSchemas: true },
  {
    name: 'Bedrock',
    provider: 'scripted-bedrock',
    upstreamModel: 'us.anthropic.claude-scripted-messages-v1:0',
    hasSchemas: false,
  },
  {
    name: 'Vertex',
    provider: 'scripted-vertex',
    upstreamModel: 'claude-scripted@20250929',
    hasSchemas: false,
  },
  {
    name: 'Foundry',
    provider: 'scripted-foundry',
    upstreamModel: SCRIPTED_FOUNDRY.deployment,
    hasSchemas: true,
  },
  {
    name: 'the messages API of Bedrock',
    provider: null,
    upstreamModel: 'anthropic.claude-scripted-messages',
    hasSchemas: true,
  },
]

const OTHERS: readonly Platform[] = [
  { name: 'Gemini', provider: 'scripted-gemini', upstreamModel: SCRIPTED_GEMINI.model, hasSchemas: true },
  {
    name: 'Converse',
    provider: 'scripted-bedrock',
    upstreamModel: 'us.amazon.nova-scripted-messages-v1:0',
    hasSchemas: true,
  },
  { name: 'Azure', provider: 'scripted-azure', upstreamModel: SCRIPTED_AZURE.deployment, hasSchemas: true },
]

let tenant: Tenant
/** Ids of models by platform, with the capabilities of a current model, and without any word about JSON. */
const models = new Map<string, { able: string; bare: string }>()

beforeAll(async () => {
  tenant = await createTenant(gateway())
  const { ask } = administrator(gateway())
  const seeded = await readList<{ id: string; name: string }>(gateway(), '/providers')
  const api = await ask('POST', '/providers', {
    name: uniqueName('bedrock-messages'),
    kind: 'bedrock',
    base_url: `${gateway().standIns.modelUpstream}/vendors/bedrock/anthropic`,
    credential: { region: SCRIPTED_AWS.region, api_key: SCRIPTED_AWS.apiKey },
  })
  for (const { name, provider, upstreamModel } of [...CLAUDE, ...OTHERS]) {
    const provider_id = seeded.find((each) => each.name === provider)?.id ?? api.id
    const make = async (capabilities: string[]) => {
      const id = uniqueName('json')
      await ask('PUT', `/models/${id}`, {
        owned_by: 'test',
        context_window: 100_000,
        max_output_tokens: 8_000,
        prices: { input: 1, output: 1 },
        capabilities,
        routes: [{ provider_id, upstream_model: upstreamModel }],
      })
      return id
    }
    models.set(name, {
      able: await make(name === 'Azure' ? JSON_MODES : ['reasoning', ...JSON_MODES]),
      bare: await make(['reasoning']),
    })
  }
})

const JSON_MODES = ['json_object', 'json_schema']
const modelOf = ({ name }: Platform, kind: 'able' | 'bare' = 'able') => models.get(name)?.[kind] ?? ''

/** The content of the answer to one call, whole or streamed. */
async function contentOf(stream: boolean, model: string, text: string, more: object): Promise<string> {
  const client = new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
  const request = {
    model,
    max_completion_tokens: 4_000,
    messages: [{ role: 'user', content: text }],
    ...more,
  }
  if (!stream) {
    const answer = await client.chat.completions.create(request as Params & { stream?: false })
    return answer.choices[0]?.message.content ?? ''
  }
  const chunks = await client.chat.completions.create({ ...request, stream: true } as Params & {
    stream: true
  })
  let content = ''
  for await (const chunk of chunks) content += chunk.choices[0]?.delta?.content ?? ''
  return content
}

/** What the platform was sent. */
const sentWith = async (text: string): Promise<Json> => JSON.parse((await seenRequest(gateway(), text)).body)

/** A request for a JSON object that uses no feature of the platform. */
function expectNoFeature(sent: Json): void {
  expect(sent).not.toHaveProperty('response_format')
  expect(sent).not.toHaveProperty('output_config.format')
  expect(sent).not.toHaveProperty('output_format')
  expect(sent).not.toHaveProperty('tool_choice')
}

const forms = [
  ['whole', false],
  ['streamed', true],
] as const

const claude = CLAUDE.flatMap((platform) => forms.map(([form, stream]) => ({ ...platform, form, stream })))
const others = OTHERS.flatMap((platform) => forms.map(([form, stream]) => ({ ...platform, form, stream })))

describe.each(claude)('JSON mode of Claude on $name, $form', (platform) => {
  const { stream, hasSchemas } = platform

  it('1: sends a schema as structured output only where the platform has it', async () => {
    const text = marker()
    const content = await contentOf(stream, modelOf(platform), text, SCHEMA)
    expect(JSON.parse(content)).toEqual({ answer: expect.any(String), count: expect.any(Number) })
    const sent = await sentWith(text)
    if (hasSchemas) {
      expect(sent.output_config).toEqual({ format: { type: 'json_schema', schema: ANSWER } })
      expect(sent).not.toHaveProperty('system')
    } else {
      expectNoFeature(sent)
      expect(JSON.stringify(sent.system)).toContain('additionalProperties')
    }
  })

  it('2: gives raw JSON, which it is asked for in words', async () => {
    const text = marker()
    expect(await contentOf(stream, modelOf(platform), `${text} script:fenced-json`, OBJECT)).toBe(RAW)
    const sent = await sentWith(text)
    expectNoFeature(sent)
    expect(JSON.stringify(sent.system)).toContain(INSTRUCTION)
    expect((sent.messages as Json[]).at(-1)).toMatchObject({ role: 'user' })
  })

  it('3: needs no capability for that, and refuses nothing', async () => {
    const text = marker()
    const bare = modelOf(platform, 'bare')
    expect(await contentOf(stream, bare, `${text} script:fenced-json`, OBJECT)).toBe(RAW)
    expectNoFeature(await sentWith(text))
    expect(await contentOf(stream, bare, 'script:canned', OBJECT)).toMatch(/^This is the scripted answer/)
  })

  it('4: leaves tools as they are, and the answer as it comes', async () => {
    const text = marker()
    const request = { ...TOOLS, ...OBJECT }
    const content = await contentOf(stream, modelOf(platform), `${text} script:fenced-json`, request)
    expect(content).toBe(FENCED)
    const sent = await sentWith(text)
    expectNoFeature(sent)
    expect(sent.tools).toMatchObject([{ name: 'look' }])
    expect(JSON.stringify(sent)).not.toContain(INSTRUCTION)
  })

  it.each([
    ['reasoning_effort', { reasoning_effort: 'low' }, 2_048],
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 1_024 } }, 1_024],
  ])('5: leaves %s as it is', async (_member, thinks, budget) => {
    const text = marker()
    const request = { ...thinks, ...OBJECT }
    const content = await contentOf(stream, modelOf(platform), `${text} script:fenced-json`, request)
    expect([RAW, FENCED]).toContain(content)
    const sent = await sentWith(text)
    expectNoFeature(sent)
    expect(sent.thinking).toEqual({ type: 'enabled', budget_tokens: budget })
  })

  it('4 and 5: takes a schema in their place', async () => {
    const text = marker()
    const request = { ...TOOLS, reasoning_effort: 'low', ...SCHEMA }
    await contentOf(stream, modelOf(platform), `${text} script:fenced-json`, request)
    const sent = await sentWith(text)
    expect(sent.tools).toHaveLength(1)
    expect(sent.thinking).toMatchObject({ type: 'enabled' })
    if (hasSchemas) expect(sent).toHaveProperty('output_config.format.schema')
    else expect(JSON.stringify(sent.system)).toContain('additionalProperties')
  })
})

/** Where each of the other platforms has its native JSON output. */
const NATIVE: Record<string, { object: Json | null; schema: (sent: Json) => unknown }> = {
  Gemini: {
    object: { generationConfig: { responseMimeType: 'application/json' } },
    schema: ({ generationConfig }) => (generationConfig as Json).responseJsonSchema,
  },
  // It has no mode without a schema.
  Converse: {
    object: null,
    schema: ({ outputConfig }) =>
      JSON.parse(
        (outputConfig as { textFormat: { structure: { jsonSchema: { schema: string } } } }).textFormat
          .structure.jsonSchema.schema,
      ),
  },
  Azure: {
    object: OBJECT,
    schema: ({ response_format: format }) => (format as typeof SCHEMA.response_format).json_schema.schema,
  },
}

describe.each(others)('JSON mode on $name, $form', (platform) => {
  const { name, stream } = platform
  const native = NATIVE[name]

  it(
    native?.object ? '1: is forwarded' : '3: is asked for in words, where the protocol has none',
    async () => {
      const text = marker()
      if (native?.object) {
        const content = await contentOf(stream, modelOf(platform), `${text} as JSON`, OBJECT)
        expect(JSON.parse(content)).toEqual({ answer: `${text} as JSON` })
        expect(await sentWith(text)).toMatchObject(native.object)
      } else {
        expect(await contentOf(stream, modelOf(platform), `${text} script:fenced-json`, OBJECT)).toBe(RAW)
        const sent = await sentWith(text)
        expect(sent).not.toHaveProperty('outputConfig')
        expect(JSON.stringify(sent.system)).toContain(INSTRUCTION)
      }
    },
  )

  it('forwards a schema where the model has it', async () => {
    const text = marker()
    const content = await contentOf(stream, modelOf(platform), text, SCHEMA)
    expect(JSON.parse(content)).toEqual({ answer: expect.any(String), count: expect.any(Number) })
    expect(native?.schema(await sentWith(text))).toMatchObject({ properties: PROPERTIES })
  })

  it('4: leaves tools as they are', async () => {
    const text = marker()
    await contentOf(stream, modelOf(platform), `${text} script:fenced-json`, { ...TOOLS, ...OBJECT })
    const sent = JSON.stringify(await sentWith(text))
    expect(sent).toContain('"look"')
    expect(sent).not.toContain(INSTRUCTION)
  })
})
