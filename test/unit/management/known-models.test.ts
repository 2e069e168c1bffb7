import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runAdmin } from '../../../scripts/admin/run-admin.ts'
import { ADMIN_TOKEN, type Harness, startManagement, uniqueName } from './harness.ts'
import { serve } from './serve.ts'

// Limits and prices of the catalogue on the command line.

let harness: Harness
let server: { url: string; close(): Promise<void> }

beforeAll(async () => {
  harness = await startManagement()
  server = await serve(harness.app)
}, 60_000)
afterAll(async () => {
  await server.close()
  await harness.close()
})

async function admin(words: string[], credential = 'sk-canary-of-a-key') {
  const lines = { output: [] as string[], errors: [] as string[] }
  const code = await runAdmin([...words, '--json'], {
    environment: { HEADGATE_URL: server.url, ADMIN_TOKEN, PROVIDER_CREDENTIAL: credential },
    readInput: async () => '',
    print: (line) => lines.output.push(line),
    complain: (line) => lines.errors.push(line),
  })
  const output = lines.output.join('\n')
  return { code, output, errors: lines.errors.join('\n'), json: code === 0 ? JSON.parse(output) : null }
}

async function provider(kind: string, ...more: string[]): Promise<string> {
  const name = uniqueName(kind)
  const parts = kind === 'bedrock' ? '{"region":"us-east-1","api_key":"sk-canary-of-a-key"}' : undefined
  const words = [
    'providers',
    'create',
    name,
    '--kind',
    kind,
    ...(parts ? ['--credential-parts'] : []),
    ...more,
  ]
  expect(await admin(words, parts)).toMatchObject({ code: 0 })
  return name
}

const set = (id: string, ...more: string[]) => admin(['models', 'set', id, ...more])

describe('models set', () => {
  it('needs no prices of a model that the catalogue has', async () => {
    const groq = await provider('groq')
    const { json, errors } = await set(uniqueName('oss'), '--route', `${groq}=openai/gpt-oss-120b`)
    expect(json).toMatchObject({
      owned_by: 'openai',
      context_window: 131_072,
      max_output_tokens: 65_536,
      prices: { input: 150_000, output: 600_000, cache_read: 75_000 },
      capabilities: ['reasoning', 'json_object', 'json_schema'],
      routes: [{ upstream_model: 'openai/gpt-oss-120b', price_percent: 100 }],
    })
    expect(errors).toMatch(/openai\/gpt-oss-120b \(groq\) in @pydantic\/genai-prices/)
    expect(errors).not.toContain('canary')
  })

  it('prices each route by its vendor, region and profile', async () => {
    const direct = await provider('anthropic', '--base-url', 'https://api.anthropic.com')
    const bedrock = await provider('bedrock')
    const routes = (profile: string) => [
      ...['--route', `${direct}=claude-sonnet-4-5`],
      ...['--route', `${bedrock}=${profile}.anthropic.claude-sonnet-4-5-20250929-v1:0`],
    ]
    const percents = ({ json }: Awaited<ReturnType<typeof admin>>) =>
      json.routes.map((route: { price_percent: number }) => route.price_percent)
    const id = uniqueName('sonnet')
    const regional = await set(id, ...routes('eu'))
    expect(regional.json.prices).toMatchObject({ input: 3_000_000, long_context: { above: 200_000 } })
    expect(percents(regional)).toEqual([100, 110])
    expect(percents(await set(id, ...routes('global')))).toEqual([100, 100])
    expect(percents(await set(id, ...routes('eu'), '--route-percent', `${bedrock}=95`))).toEqual([100, 95])
  })

  it('knows a deployment by the id of the model', async () => {
    const azure = await provider('azure-openai', '--base-url', 'https://resource.openai.azure.com')
    const known = await set('gpt-4.1-mini', '--route', `${azure}=my-deployment`)
    expect(known.json).toMatchObject({ context_window: 1_000_000, prices: { input: 400_000 } })
    const named = await set(uniqueName('mini'), '--route', `${azure}=d`, '--catalogue', 'gpt-4.1-nano')
    expect(named.json.prices.input).toBe(100_000)
  })

  it('keeps what is stored and what is given, and takes the catalogue’s again when it is asked for', async () => {
    const groq = await provider('groq')
    const route = ['--route', `${groq}=openai/gpt-oss-20b`]
    const id = uniqueName('oss')
    const prices = ['--price-input', '70000', '--price-output', '280000']
    const given = await set(id, ...route, ...prices, '--max-output-tokens', '9000')
    expect(given.json).toMatchObject({ max_output_tokens: 9_000, context_window: 131_072 })
    // No price of the catalogue beside those of a contract.
    expect(given.json.prices).toMatchObject({ input: 70_000, output: 280_000, cache_read: 70_000 })
    expect(given.errors).toBe('')
    expect((await set(id, ...route)).json.prices.input).toBe(70_000)
    const again = await set(id, ...route, '--catalogue', 'openai/gpt-oss-20b')
    expect(again.json).toMatchObject({
      max_output_tokens: 65_536,
      prices: { input: 75_000, cache_read: 37_500 },
    })
  })

  it('says what is missing for a model that the catalogue has not, and takes no other one for it', async () => {
    const bedrock = await provider('bedrock')
    const route = ['--route', `${bedrock}=global.anthropic.claude-sonnet-5-6`]
    const refused = await set(uniqueName('next'), ...route)
    expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('models known bedrock') })
    const wrong = await set(uniqueName('next'), ...route, '--catalogue', 'claude-sonnet-5-6')
    expect(wrong).toMatchObject({ code: 2, errors: expect.stringContaining('models known') })
    const none = await set(uniqueName('x'), '--catalogue', 'x')
    expect(none).toMatchObject({ code: 2, errors: expect.stringContaining('--route') })
  })
})

describe('providers create', () => {
  it('offers models by their ids', async () => {
    const name = await provider('deepseek', '--model', 'deepseek-v4-pro', '--model', 'deepseek-v4-flash')
    const { json } = await admin(['models', 'show', 'deepseek-v4-pro'])
    expect(json).toMatchObject({
      owned_by: 'deepseek',
      prices: { input: 1_320_000, output: 3_960_000 },
      routes: [{ provider: name, upstream_model: 'deepseek-v4-pro' }],
    })
    expect((await admin(['models', 'show', 'deepseek-v4-flash'])).code).toBe(0)
    const words = ['providers', 'create', uniqueName('deepseek'), '--kind', 'deepseek']
    const twice = await admin([...words, '--model', 'deepseek-v4-pro'])
    expect(twice).toMatchObject({ code: 1, errors: expect.stringContaining('already') })
  })

  it('creates nothing when the catalogue has no such model', async () => {
    const name = uniqueName('groq')
    const words = ['providers', 'create', name, '--kind', 'groq', '--model', 'no-such-model']
    expect(await admin(words)).toMatchObject({ code: 2, errors: expect.stringContaining('models known') })
    expect(await admin(['providers', 'show', name])).toMatchObject({ code: 1 })
  })
})

describe('models known', () => {
  it('lists the models of a kind of provider', async () => {
    const { json } = await admin(['models', 'known', 'groq'])
    expect(json).toContainEqual(
      expect.objectContaining({ id: 'openai/gpt-oss-120b', input: 150_000, output: 600_000 }),
    )
    const none = await admin(['models', 'known', 'vllm'])
    expect(none).toMatchObject({ code: 2, errors: expect.stringContaining('vllm') })
  })
})
