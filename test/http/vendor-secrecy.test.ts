import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { scriptedAccount } from '../../scripts/local/model-upstream/vendors/vertex/scripted-account.ts'
import { createBusyTenant } from '../harness/contention.ts'
import { upstreamControl } from '../harness/gateway.ts'
import { auditEntries, flush, settledCredits } from '../harness/records.ts'
import type { Answer } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { administrator, type Tenant, uniqueName } from '../harness/tenant.ts'
import type { ScriptStep } from '../harness/upstream.ts'
import { haystacks } from './support/haystacks.ts'
import { postTo, requestOf, SURFACES } from './support/vendor-calls.ts'
import { createVendorModel, type Vendor, vendorNamed } from './support/vendor-kinds.ts'
import { cutStream, errorBody, failingStream, streamedAnswer, wholeAnswer } from './support/vendor-wires.ts'

// Credentials of every vendor, and the tokens that they are exchanged for, are in no answer, log or record. A gateway of its
// own, whose whole storage is searched.

let address: StartedGateway
let tenant: Tenant
/** Everything that callers and the administrator were sent, with headers. */
const answered: string[] = []
const secrets = new Map<string, string>()

beforeAll(async () => {
  address = await startGateway({ bundleDirectory: inject('bundleDirectory'), isBrief: true })
  tenant = await createBusyTenant(address, 1_000_000_000_000)
}, 60_000)
afterAll(() => address?.stop())

const play = (name: string, ...responses: ScriptStep[][]) =>
  upstreamControl(address).putScript(name, { responses: responses.map((steps) => ({ steps })) })

/** A new canary. @param name of the secret, for the report. */
function canary(name: string): string {
  const secret = uniqueName('canary') + uniqueName('-secret')
  secrets.set(name, secret)
  return secret
}

function note(answer: Answer): Answer {
  answered.push(answer.rawHeaders.join('\n'), answer.text)
  return answer
}

interface Credentialed {
  name: string
  vendor: Vendor
  /** @param tokens the script of its token service. */
  credential: (tokens: string) => string | Record<string, string>
  /** Secrets that an upstream knows, and may repeat. */
  known: () => string[]
}

/** The key of the scripted account in a text of its own, so that no other provider shares its token. */
function account(name: string, tokens: string) {
  const url = address.standIns.modelUpstream
  const { private_key, ...parts } = scriptedAccount(url)
  // Kept apart from what an upstream repeats: nothing of the key is ever sent.
  secrets.set(`private key of ${name}`, private_key.split('\n')[1]?.slice(200, 280) ?? '')
  const private_key_id = canary(`${name}: key id`)
  return {
    ...parts,
    private_key: `${private_key}${'\n'.repeat(secrets.size)}`,
    private_key_id,
    location: 'us-east5',
    token_uri: `${url}/vendors/raw/${tokens}/token`,
  }
}

const secretsOf = (name: string) =>
  [...secrets].flatMap(([secret, value]) => (secret.startsWith(`${name}:`) ? [value] : []))

const kind = (
  name: string,
  vendor: string,
  credential: (name: string, tokens: string) => string | Record<string, string>,
): Credentialed => ({
  name,
  vendor: vendorNamed(vendor),
  credential: (tokens) => credential(name, tokens),
  known: () => secretsOf(name),
})

const keys = (name: string) => ({
  region: 'us-east-1',
  access_key_id: 'AKIACANARY',
  secret_access_key: canary(`${name}: secret key`),
  session_token: canary(`${name}: session token`),
})
const entra = (name: string) => ({
  tenant_id: 'contoso.example',
  client_id: 'client',
  client_secret: canary(`${name}: client secret`),
})
const apiKey = (name: string) => ({ api_key: canary(`${name}: key`) })

const CREDENTIALED: readonly Credentialed[] = [
  kind('Claude on Bedrock, keys', 'Claude on Bedrock', keys),
  kind('Claude on Bedrock, API key', 'Claude on Bedrock', (name) => ({
    region: 'us-east-1',
    api_key: canary(`${name}: key`),
  })),
  kind('Converse, keys', 'Converse', keys),
  kind('Claude on Vertex', 'Claude on Vertex', account),
  kind('Gemini on Vertex', 'Gemini on Vertex', account),
  kind('Gemini', 'Gemini', (name) => canary(`${name}: key`)),
  kind('Foundry, key', 'Claude in Foundry', apiKey),
  kind('Azure v1, key', 'Azure OpenAI v1', apiKey),
  kind('Azure dated, key', 'Azure OpenAI dated', apiKey),
  kind('Mistral', 'Mistral', (name) => canary(`${name}: key`)),
]

/** Answers of an upstream that repeats all that it knows. */
function echoes(vendor: Vendor, known: readonly string[], isStream: boolean): Array<[string, ScriptStep[]]> {
  const told = known
    .map((secret) => `Bearer ${secret} and ${Buffer.from(secret).toString('base64')}`)
    .join(' ')
  const errors = [400, 401, 403, 404, 429, 500].map((status): [string, ScriptStep[]] => {
    const headers = {
      'content-type': 'application/json',
      'x-amzn-errortype': `AccessDeniedException:${told}`,
      'x-amzn-requestid': told,
      'apim-request-id': told,
      'request-id': told,
      'www-authenticate': `Bearer error="${told}"`,
      'retry-after': told,
    }
    return [String(status), [{ status, headers, body: errorBody(vendor, status, `refused: ${told}`) }]]
  })
  const ofStream: Array<[string, ScriptStep[]]> = [
    ['a stream', streamedAnswer(vendor, `It is ${told}.`)],
    ['an exception', failingStream(vendor, 'He', `failed: ${told}`)],
    ['a first exception', failingStream(vendor, '', `failed: ${told}`)],
    ['a cut', cutStream(vendor, `It is ${told}`)],
  ]
  const html = [{ status: 502, headers: { 'content-type': 'text/html' }, body: `<h1>${told}</h1>` }]
  return [
    ...errors,
    ['a page', html],
    ...(isStream
      ? ofStream
      : [['a whole answer', wholeAnswer(vendor, `It is ${told}.`)] as [string, ScriptStep[]]]),
  ]
}

function token(name: string): ScriptStep[] {
  const value = canary(`${name}: token`)
  const body = JSON.stringify({ access_token: value, expires_in: 3_599, token_type: 'Bearer' })
  return [{ status: 200, headers: { 'content-type': 'application/json' }, body }]
}

describe.each(CREDENTIALED.map((each) => [each.name, each] as const))(
  '%s',
  (name, { vendor, credential, known }) => {
    const [script, tokens] = [uniqueName('raw'), uniqueName('tokens')]
    let model: string
    let providerId: string

    beforeAll(async () => {
      if (vendor.kind === 'vertex') await play(tokens, token(name))
      await play(script, wholeAnswer(vendor, 'Hello.'))
      const options = { rawScript: script, credential: credential(tokens) }
      const made = await createVendorModel(vendor, options, address)
      model = made.model
      providerId = made.providerId
    })

    it.each(SURFACES)('an upstream repeats it in every kind of answer: %s', async (surface) => {
      for (const stream of [false, true]) {
        for (const [, steps] of echoes(vendor, known(), stream || surface === 'responses')) {
          await play(script, steps)
          note(await postTo(surface, tenant, requestOf(surface, model, 'Hello', { stream }), address))
        }
        // The credential was sent, so that the upstream could have repeated it.
        await play(
          script,
          stream || surface === 'responses' ? streamedAnswer(vendor, 'Yes.') : wholeAnswer(vendor, 'Yes.'),
        )
        const answer = note(
          await postTo(surface, tenant, requestOf(surface, model, 'Hello', { stream }), address),
        )
        expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Yes.')])
      }
    })

    it('the management API shows none of it', async () => {
      const { call } = administrator(address)
      for (const path of [`/providers/${providerId}`, '/providers', `/models/${model}`, '/models']) {
        note(await call('GET', path))
      }
      note(await call('PUT', `/providers/${providerId}`, { credential: credential(tokens) }))
      const [secret = ''] = known()
      const wrong = {
        [secret]: secret,
        region: secret,
        private_key: secret,
        project_id: secret,
        tenant_id: secret,
      }
      for (const given of [wrong, { ...wrong, [secret]: undefined }]) {
        const refused = note(await call('PUT', `/providers/${providerId}`, { credential: given }))
        expect([400, 422]).toContain(refused.status)
      }
      const body = {
        name: secret.slice(0, 6),
        kind: vendor.kind,
        base_url: `https://${secret}@evil.example`,
        credential: secret,
      }
      const refused = note(await call('POST', '/providers', body))
      expect(refused.status).toBeGreaterThanOrEqual(400)
    })
  },
)

describe('a token service that fails', () => {
  const [claude] = CREDENTIALED.filter(({ name }) => name === 'Claude on Vertex')
  it.each([
    ['refuses', 400],
    ['is away', 503],
    ['redirects', 302],
    ['answers with no token', 200],
  ])('that %s', async (_, status) => {
    if (!claude) throw new Error('no vendor')
    const name = `token service ${status}`
    const [script, tokens] = [uniqueName('raw'), uniqueName('tokens')]
    const credential = account(name, tokens)
    const told = secretsOf(name).join(' ')
    const headers = {
      'content-type': 'application/json',
      location: `https://evil.example/${credential.private_key_id}`,
      'x-secret': credential.private_key_id,
    }
    const body = JSON.stringify({
      error: 'invalid_grant',
      error_description: told,
      access_token: `${told}\n`,
    })
    await play(tokens, [{ status, headers, body }])
    await play(script, wholeAnswer(claude.vendor, 'Never.'))
    const { model } = await createVendorModel(claude.vendor, { rawScript: script, credential }, address)
    for (const surface of SURFACES) {
      for (const stream of [false, true]) {
        const answer = note(
          await postTo(surface, tenant, requestOf(surface, model, 'Hello', { stream }), address),
        )
        expect(answer.text).not.toContain('Never.')
        if (status === 400) {
          expect(answer.text).toContain('refused the gateway')
          if (surface !== 'responses' || !stream) expect([200, 500]).toContain(answer.status)
        }
      }
    }
  })

  it.each(['Azure OpenAI v1', 'Claude in Foundry'])('that cannot be reached: %s', async (vendorName) => {
    const vendor = vendorNamed(vendorName)
    const script = uniqueName('raw')
    await play(script, wholeAnswer(vendor, 'Never.'))
    const credential = entra(`${vendorName} with Entra ID`)
    const { model } = await createVendorModel(vendor, { rawScript: script, credential }, address)
    for (const surface of SURFACES) {
      const answer = note(await postTo(surface, tenant, requestOf(surface, model, 'Hello'), address))
      expect(answer.text).not.toContain('Never.')
    }
  })
})

describe('afterwards', () => {
  const needles = () =>
    [...secrets].flatMap(([name, secret]): Array<[string, string]> => {
      const half = Math.floor(secret.length / 2)
      const bytes = Buffer.from(secret)
      return [
        [name, secret.slice(0, half)],
        [name, secret.slice(half)],
        [`${name} in base64`, bytes.toString('base64').replace(/=+$/, '').slice(2, -2)],
        [`${name} in hex`, bytes.toString('hex')],
      ]
    })
  const found = (places: Iterable<[string, Buffer]>) =>
    [...places].flatMap(([place, contents]) =>
      needles().flatMap(([name, needle]) => (contents.includes(needle) ? [`${name} in ${place}`] : [])),
    )

  it('no answer has any of them', () => {
    expect(answered.length).toBeGreaterThan(500)
    expect(secrets.size).toBeGreaterThan(25)
    for (const [name, needle] of needles()) expect(needle.length, name).toBeGreaterThan(12)
    expect(
      found(answered.map((text, index) => [`answer ${index}: ${text.slice(0, 80)}`, Buffer.from(text)])),
    ).toEqual([])
    // The search can find: what was cut out stood there.
    expect(answered.filter((text) => text.includes('[redacted]')).length).toBeGreaterThan(100)
  })

  it('no record, log or database has any of them', async () => {
    await settledCredits(address, tenant)
    await flush(address, tenant)
    answered.push(JSON.stringify(await auditEntries(address, tenant)))
    const { call } = administrator(address)
    note(await call('GET', `${tenant.base}/audit?limit=200`))
    const places = await haystacks(address)
    // The upstream was sent what is to be found nowhere else: assertions name the key.
    places.delete('the recording of the upstream')
    for (const name of [...places.keys()]) if (/upstream/i.test(name)) places.delete(name)
    expect(places.get('logs: workerd.log')?.includes('provider_refused_gateway')).toBe(true)
    expect(places.get('logs: workerd.log')?.includes('upstream_failed')).toBe(true)
    expect(places.get('Postgres')?.includes(tenant.keyId)).toBe(true)
    expect(found(places)).toEqual([])
    expect(found([['the records', Buffer.from(answered.slice(-3).join('\n'))]])).toEqual([])
  }, 60_000)
})
