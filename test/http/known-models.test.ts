import { beforeAll, describe, expect, it } from 'vitest'
import { runAdmin } from '../../scripts/admin/run-admin.ts'
import { SCRIPTED_AWS } from '../../scripts/local/model-upstream/vendors/bedrock/scripted-aws.ts'
import { SCRIPTED_FOUNDRY } from '../../scripts/local/model-upstream/vendors/foundry/foundry.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { newestOpenAi, openAiUrl, SCRIPTED_TEXT, userMessage } from '../harness/sdk-clients.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'

// Models that the command line makes from the catalogue, called at the scripted vendors, and what their calls cost.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

async function admin(words: string[], credential = '') {
  const lines: string[] = []
  const code = await runAdmin(words, {
    environment: {
      HEADGATE_URL: gateway().baseUrl,
      ADMIN_TOKEN: gateway().adminToken,
      PROVIDER_CREDENTIAL: credential,
    },
    readInput: async () => '',
    print: (line) => lines.push(line),
    complain: (line) => lines.push(line),
  })
  expect(code, lines.join('\n')).toBe(0)
}

const VENDORS = [
  {
    kind: 'bedrock',
    credential: JSON.stringify({ region: SCRIPTED_AWS.region, api_key: SCRIPTED_AWS.apiKey }),
    upstreamModel: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
    catalogue: [],
    // Dollars for a million tokens, ten percent above $3 and $15.
    prices: { input: 3.3, output: 16.5 },
  },
  {
    kind: 'bedrock',
    credential: JSON.stringify({ region: SCRIPTED_AWS.region, api_key: SCRIPTED_AWS.apiKey }),
    upstreamModel: 'us.amazon.nova-pro-v1:0',
    catalogue: [],
    prices: { input: 0.8, output: 3.2 },
  },
  {
    kind: 'foundry',
    credential: JSON.stringify({ api_key: SCRIPTED_FOUNDRY.key }),
    upstreamModel: SCRIPTED_FOUNDRY.deployment,
    catalogue: ['--catalogue', 'claude-haiku-4-5'],
    prices: { input: 1, output: 5 },
  },
]

describe.each(VENDORS)('a model of $kind, $upstreamModel', (vendor) => {
  it('is made by its route alone, and its calls cost what the catalogue says', async () => {
    const { kind, credential, upstreamModel, catalogue, prices } = vendor
    const [name, id] = [uniqueName(kind), uniqueName('known')]
    const base = ['--base-url', `${gateway().standIns.modelUpstream}/vendors/${kind}`]
    await admin(['providers', 'create', name, '--kind', kind, ...base, '--credential-parts'], credential)
    await admin(['models', 'set', id, '--route', `${name}=${upstreamModel}`, ...catalogue])
    const client = new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
    const request = { model: id, messages: userMessage('script:canned') }
    const { data, response } = await client.chat.completions.create(request).withResponse()
    expect(data.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    const { record } = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
    const { input, output } = record.usage as { input: number; output: number }
    expect(record.cost).toBe(Math.ceil(Number((input * prices.input + output * prices.output).toFixed(4))))
  })
})
