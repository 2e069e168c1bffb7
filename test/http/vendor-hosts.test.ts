import { beforeAll, describe, expect, it } from 'vitest'
import { MAKERS } from '../../src/gateway/providers/makers/makers.ts'
import type { ProviderKind } from '../../src/gateway/providers/provider.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, type ScriptStep, seenRequests } from '../harness/upstream.ts'
import { postTo, requestOf } from './support/vendor-calls.ts'
import {
  createModel,
  createVendorModel,
  createVendorProvider,
  namedVendors,
  rawPath,
  VENDORS,
  type Vendor,
  vendorNamed,
} from './support/vendor-kinds.ts'
import { wholeAnswer } from './support/vendor-wires.ts'

// Credentials go to hosts of their vendor alone, whatever addresses, names and parts an entry has.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const manage = (method: string, path: string, body: object) =>
  administrator(gateway()).call(method, path, body)

/** A host of each kind that has hosts of its own, and a vendor with its credential. */
const HOSTS: ReadonlyArray<readonly [host: string, vendor: Vendor]> = [
  ['bedrock-runtime.us-east-1.amazonaws.com', vendorNamed('Claude on Bedrock')],
  ['bedrock-mantle.us-east-1.api.aws', vendorNamed('Converse')],
  ['us-east5-aiplatform.googleapis.com', vendorNamed('Claude on Vertex')],
  ['generativelanguage.googleapis.com', vendorNamed('Gemini')],
  ['my-resource.openai.azure.com', vendorNamed('Azure OpenAI v1')],
  ['my-resource.services.ai.azure.com', vendorNamed('Claude in Foundry')],
]

/** Addresses that look like one of a host. */
const disguised = (host: string): string[] => [
  `https://${host}.evil.test`,
  `https://${host}%2eevil.test`,
  `https://${host}\n.evil.test`,
  `https://evil.test/${host}`,
  `https://evil.test#${host}`,
  `https://evil.test?${host}`,
  `https://evil.test\\@${host}`,
  `https://x${host.replaceAll('.', '-')}.evil.test`,
  // Cyrillic letters, and a dot that is none.
  `https://${host.replaceAll('a', 'а').replaceAll('o', 'о')}`,
  `https://${host.replace('.', '·')}`,
  // Resources of Azure are names of their customers' choice.
  ...(host.endsWith('.azure.com') ? [] : [`https://sub.${host.split('.').slice(1).join('.')}`]),
  `https://${host.split('.').slice(-2).join('.')}`,
]

/** Addresses that no kind takes: they break the rules of outbound calls. */
const unsafe = (host: string): string[] => [
  `https://${host}@evil.test`,
  `https://key:secret@${host}`,
  `https://key@${host}/v1`,
  `https://${host}:8443`,
  `http://${host}`,
  `ftp://${host}`,
  `//${host}`,
  `https://${host}?x=1`,
  `https://${host}#x`,
  'https://127.0.0.1',
  'https://0x7f.1',
  'https://[::ffff:127.0.0.1]',
  'https://169.254.169.254/latest',
  'https://metadata.google.internal',
  'https://localhost.',
  'https://127.0.0.1.nip.io',
]

describe.each(HOSTS)('%s', (host, vendor) => {
  const credential = () => vendor.credential(gateway().standIns.modelUpstream)
  const create = (base_url: string) =>
    manage('POST', '/providers', {
      name: uniqueName('host'),
      kind: vendor.kind,
      base_url,
      credential: credential(),
    })

  it('takes the credential', async () => {
    const made = await create(`https://${host}`)
    expect([made.status, made.text]).toEqual([201, expect.stringContaining(host)])
  })

  it.each([...disguised(host), ...unsafe(host), `https://${host}.`])('is not %j', async (address) => {
    const refused = await create(address)
    expect([address, refused.status]).toEqual([
      address,
      expect.toSatisfy((status) => status === 400 || status === 422),
    ])
    expect(refused.text).toContain('base_url')
  })

  it('cannot be changed to another one, with the credential or without', async () => {
    const { id } = JSON.parse((await create(`https://${host}`)).text) as { id: string }
    for (const base_url of ['https://evil.test', `https://${host}.evil.test`, `https://${host}:8443`]) {
      for (const more of [{}, { credential: credential() }]) {
        const refused = await manage('PUT', `/providers/${id}`, { base_url, ...more })
        expect([400, 409, 422]).toContain(refused.status)
      }
    }
  })
})

const ANYWHERE: ProviderKind[] = [
  'openai-compatible',
  'anthropic',
  ...(Object.keys(MAKERS) as ProviderKind[]),
]

it.each(ANYWHERE)(
  'the kind %s, which servers of others have as well, takes no unsafe address',
  async (kind) => {
    for (const address of unsafe('api.example.com')) {
      const body = { name: uniqueName('host'), kind, base_url: address, credential: 'key' }
      const refused = await manage('POST', '/providers', body)
      expect([address, refused.status]).toEqual([
        address,
        expect.toSatisfy((status) => status === 400 || status === 422),
      ])
    }
  },
)

describe('a part of a credential', () => {
  const tokenUris = [
    'https://evil.test/token',
    'https://oauth2.googleapis.com.evil.test/token',
    'https://oauth2.googleapis.com./token',
    'https://oauth2.googleapis.com:8443/token',
    'https://oauth2.googleapis.com@evil.test/token',
    'https://user@oauth2.googleapis.com/token',
    'https://oauth2.googleapis.com/token?x=https://evil.test',
    'https://oauth2.googleapis.com/token/../other',
    'https://оauth2.googleapis.com/token',
    'https://storage.googleapis.com/evil-bucket/token',
    'https://www.googleapis.com/upload/storage/v1/b/evil/o',
    'https://accounts.google.com/signout?continue=https://evil.test',
    'ftp://oauth2.googleapis.com/token',
    'javascript:alert(1)',
    '',
  ]
  const region = [
    'us-east-1.evil.test',
    'us-east-1/',
    'us-east-1#',
    'us-east-1?',
    'evil.test/us-east-1',
    'us-east-1@evil.test',
    'US-EAST-1',
    'us-east-1\n',
    'us_east_1',
    '',
  ]
  const location = [
    'us-east5/../x',
    'evil.test/',
    'us-east5.evil.test',
    'us-east5@evil.test',
    'global#',
    'A',
    '',
  ]
  const project_id = ['a/../b', 'a/locations/global', '../b', 'a?b', 'a#b', 'a b', '', 'a%2fb']
  const tenant_id = ['../x', 'a/b', 'evil.test/', 'a?b', 'a#b', 'a@evil.test', 'a:8443', '.', '..', '']
  const values = (vendor: string, name: string, given: readonly string[]) =>
    given.map((value) => [vendorNamed(vendor), name, value] as const)

  it.each([
    ...values('Claude on Vertex', 'token_uri', tokenUris),
    ...values('Gemini on Vertex', 'location', location),
    ...values('Claude on Vertex', 'project_id', project_id),
    ...values('Claude on Bedrock', 'region', region),
    ...values('Azure OpenAI v1', 'tenant_id', tenant_id),
    ...values('Claude in Foundry', 'tenant_id', tenant_id),
  ])('of $kind selects no other address: %s %j', async (vendor, name, value) => {
    const given = vendor.credential(gateway().standIns.modelUpstream)
    const parts =
      name === 'tenant_id' ? { client_id: 'c', client_secret: 's' } : (given as Record<string, string>)
    const credential = { ...parts, [name]: value }
    const base = vendor.kind === 'azure-openai' || vendor.kind === 'foundry'
    const body = {
      name: uniqueName('part'),
      kind: vendor.kind,
      credential,
      ...(base && { base_url: 'https://my-resource.services.ai.azure.com' }),
    }
    const refused = await manage('POST', '/providers', body)
    expect([refused.status, refused.text]).toEqual([
      expect.toSatisfy((status) => status === 400 || status === 422),
      expect.stringContaining('credential'),
    ])
    if (value.length > 4) expect(refused.text).not.toContain(value)
  })

  it('without TLS is refused when it is used, unless the operator lists its host', async () => {
    const vendor = vendorNamed('Claude on Vertex')
    const parts = vendor.credential(gateway().standIns.modelUpstream) as Record<string, string>
    for (const token_uri of [
      'http://oauth2.googleapis.com/token',
      'http://evil.test/token',
      'http://127.0.0.1:9/token',
    ]) {
      const script = uniqueName('raw')
      await play(script, wholeAnswer(vendor, 'Never.'))
      const credential = { ...parts, token_uri }
      const { model } = await createVendorModel(vendor, { rawScript: script, credential })
      const answer = await postTo('messages', tenant, requestOf('messages', model, 'Hello'))
      expect([answer.status, answer.text]).toEqual([502, expect.not.stringContaining('Never.')])
      const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
      expect(record.attempts).toMatchObject([{ status: null, failure: 'egress_denied' }])
    }
  })
})

const play = (name: string, steps: ScriptStep[]) => upstreamControl(gateway()).putScript(name, { steps })

/** Names of models that would be other paths if they were not encoded. */
const NAMES = [
  '..',
  '.',
  '../../admin',
  'x/../../admin',
  'a?b=c',
  'a#b',
  'a%2f..%2fb',
  'a;b',
  'a\\..\\b',
  'arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/../../x',
  'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc',
  'https://evil.test/',
  '@evil.test',
]

describe.each(namedVendors)('the name of a model on %s', (_, vendor) => {
  it('selects no other path or host', async () => {
    const script = uniqueName('raw')
    await play(script, wholeAnswer(vendor, 'Hello.'))
    const credential = vendor.kind === 'vertex' ? await tokened() : undefined
    const { id } = await createVendorProvider(vendor, {
      rawScript: script,
      ...(credential && { credential }),
    })
    const below = rawPath(script) + vendor.suffix
    for (const upstream_model of NAMES) {
      const text = marker()
      const route = { provider_id: id, upstream_model }
      const model = await createModel([route]).catch((error: Error) => error)
      if (model instanceof Error) {
        expect(String(model)).toMatch(/ 4\d\d /)
        continue
      }
      await postTo('messages', tenant, requestOf('messages', model, text))
      for (const { path } of await seenRequests(gateway(), text)) {
        const rest = path.slice(below.length)
        expect([upstream_model, path.startsWith(`${below}/`)]).toEqual([upstream_model, true])
        expect([upstream_model, new URL(path, 'http://x').pathname]).toEqual([
          upstream_model,
          path.split('?')[0],
        ])
        // The name is one step of the path; only Gemini's collections and publishers have steps of their own.
        const steps = rest.split('?')[0]?.split('/') ?? []
        expect(steps.filter((step) => step === '..' || step === '.')).toEqual([])
        expect(steps.length).toBe(stepsOf(vendor, upstream_model))
      }
    }
  })
})

/** The number of steps in the path of a vendor, with the empty one before the first slash. */
function stepsOf({ name }: Vendor, upstreamModel: string): number {
  const steps: Record<string, number> = {
    'Claude on Bedrock': 4,
    Converse: 4,
    'Claude in Foundry': 4,
    Gemini: 2 + upstreamModel.split('/').length,
    'Azure OpenAI v1': 5,
    'Azure OpenAI dated': 5,
    Mistral: 3,
  }
  // On Vertex the paths of models and of the OpenAI-compatible endpoint, whose models are named in the body, are as long.
  return steps[name] ?? 10
}

/** A credential of Vertex whose token service is a script. */
async function tokened() {
  const url = gateway().standIns.modelUpstream
  const script = uniqueName('tokens')
  const body = JSON.stringify({ access_token: uniqueName('token'), expires_in: 3_599 })
  await play(script, [{ status: 200, headers: { 'content-type': 'application/json' }, body }])
  const account = vendorNamed('Claude on Vertex').credential(url) as Record<string, string>
  return { ...account, token_uri: `${url}${rawPath(script)}/token` }
}

describe('a redirect', () => {
  it.each(VENDORS.map((vendor) => [vendor.name, vendor] as const))(
    'of %s is not followed',
    async (_, vendor) => {
      const [script, other] = [uniqueName('raw'), uniqueName('other')]
      await play(other, wholeAnswer(vendor, 'Followed.'))
      const text = marker()
      const credential = vendor.kind === 'vertex' ? await tokened() : undefined
      const { model } = await createVendorModel(vendor, {
        rawScript: script,
        ...(credential && { credential }),
      })
      for (const status of [301, 302, 303, 307, 308]) {
        const location = `${gateway().standIns.modelUpstream}${rawPath(other)}/x`
        await play(script, [{ status, headers: { location }, body: '' }])
        const answer = await postTo('messages', tenant, requestOf('messages', model, text))
        expect([answer.status, answer.text]).toEqual([502, expect.not.stringContaining('Followed.')])
      }
      const seen = await seenRequests(gateway(), text)
      expect(seen.map(({ path }) => path.includes(other))).toEqual(Array(5).fill(false))
    },
  )

  it('of a token service is not followed', async () => {
    const [script, tokens, other] = [uniqueName('raw'), uniqueName('tokens'), uniqueName('other')]
    const vendor = vendorNamed('Claude on Vertex')
    await play(script, wholeAnswer(vendor, 'Never.'))
    await play(other, [{ json: { access_token: 'stolen', expires_in: 3_599 } }])
    const url = gateway().standIns.modelUpstream
    await play(tokens, [{ status: 307, headers: { location: `${url}${rawPath(other)}/token` }, body: '' }])
    const parts = vendor.credential(url) as Record<string, string>
    const private_key_id = uniqueName('key')
    const credential = { ...parts, private_key_id, token_uri: `${url}${rawPath(tokens)}/token` }
    const { model } = await createVendorModel(vendor, { rawScript: script, credential })
    const answer = await postTo('messages', tenant, requestOf('messages', model, 'Hello'))
    expect([answer.status, answer.text]).toEqual([502, expect.not.stringContaining('Never.')])
    const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: private_key_id })).toString('base64url')
    const seen = await seenRequests(gateway(), header)
    expect(seen.length).toBeGreaterThan(0)
    expect(seen.filter(({ path }) => path.includes(other))).toEqual([])
  })
})
