import { randomBytes } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { agentTriggers, runs } from '../../../schema/agents.ts'
import { identityProviders } from '../../../schema/identity-providers.ts'
import { connections, integrations } from '../../../schema/integrations.ts'
import { providers } from '../../../schema/models.ts'
import { runAdmin } from '../../../scripts/admin/run-admin.ts'
import { providerSecretContext } from '../../../src/admin/identity-provider.ts'
import { openInputs, sealInputs } from '../../../src/agents/runs/run-inputs.ts'
import { webhookSecretContext } from '../../../src/agents/triggers/webhook-signature.ts'
import { openCredential, SECRET_ONLY } from '../../../src/gateway/providers/credential.ts'
import { openClientSecret, sealClientSecret } from '../../../src/integrations/vault/client-secret.ts'
import { openStoredCredential as openConnection } from '../../../src/integrations/vault/stored-credential.ts'
import { seal, unseal } from '../../../src/lib/crypto.ts'
import { configuration } from '../calls/fixtures.ts'
import {
  ADMIN_TOKEN,
  type Harness,
  seedTenant,
  someProvider,
  startManagement,
  uniqueName,
} from './harness.ts'
import { serve } from './serve.ts'

const NEW_KEY = randomBytes(32)
const oldKeys = configuration().VAULT_KEYS
const [[, oldKey] = []] = oldKeys
const newKeys = new Map([['second', NEW_KEY]])
const encoded = (key: Uint8Array = new Uint8Array()) => Buffer.from(key).toString('base64')
const BOTH = `second:${encoded(NEW_KEY)},first:${encoded(oldKey)}`

/** One more connection is the tenant's. */
const CONNECTIONS = 8
const SECRET = 'token-of-the-upstream-account'

let harness: Harness
let server: { url: string; close(): Promise<void> }
let organizationId: string
let slug: string
let integrationId: string
let providerId: string
let agent: { id: string }
let run: { id: string }

beforeAll(async () => {
  harness = await startManagement()
  server = await serve(harness.configuredApp({ VAULT_KEYS: BOTH }))
  const tenant = await seedTenant(harness)
  organizationId = tenant.organization.id
  ;({ agent, run } = tenant)
  await harness.request('POST', `${tenant.base}/agents/${agent.id}/triggers/hook/secret`)
  await harness.database
    .update(runs)
    .set({ sealedInputs: sealInputs(oldKeys, run.id, { City: 'Paris' }) })
    .where(eq(runs.id, run.id))
  slug = uniqueName('service')
  integrationId = crypto.randomUUID()
  await harness.database.insert(integrations).values({
    ...{ id: integrationId, organizationId, slug, displayName: 'Service', kind: 'mcp' },
    ...{ url: 'https://mcp.service.test/mcp', authorization: { kind: 'bearer' } },
    sealedClientSecret: sealClientSecret(oldKeys, integrationId, 'the secret of the client'),
  })
  await harness.database.insert(identityProviders).values({
    ...{ organizationId, issuer: 'https://login.service.test', clientId: 'headgate' },
    sealedClientSecret: seal(oldKeys, 'the secret at the provider', providerSecretContext(organizationId)),
  })
  for (let made = 0; made < CONNECTIONS - 1; made++) {
    const answer = await harness.request('POST', `/organizations/${organizationId}/connections`, {
      ...{ integration: slug, display_name: `Account ${made}`, credential: { secret: SECRET } },
    })
    expect(answer.status).toBe(201)
  }
  const provider = await harness.request('POST', '/providers', someProvider({ credential: 'sk-of-provider' }))
  providerId = provider.json.id
}, 60_000)
afterAll(async () => {
  await server.close()
  await harness.close()
})

async function rotate(): Promise<{ code: number; output: string }> {
  const lines: string[] = []
  const code = await runAdmin(['vault', 'rotate', '--json'], {
    environment: { HEADGATE_URL: server.url, ADMIN_TOKEN },
    readInput: async () => '',
    print: (line) => lines.push(line),
    complain: (line) => lines.push(line),
  })
  return { code, output: lines.join('\n') }
}

const rows = () =>
  harness.database.select().from(connections).where(eq(connections.organizationId, organizationId))

describe('the rotation of the vault', () => {
  it('seals everything under the current key, page by page, and can be interrupted and repeated', async () => {
    const rotation = harness.configured({ VAULT_KEYS: BOTH })
    // Two pages, and the process that rotates ends.
    const first = await rotation('POST', '/vault/rotate', { limit: 2 })
    expect(first.json).toMatchObject({ key_id: 'second', kind: 'connections', resealed: 2, failed: 0 })
    const second = await rotation('POST', '/vault/rotate', { limit: 3, cursor: first.json.next_cursor })
    expect(second.json).toMatchObject({ resealed: 3 })
    const versions = (await rows()).map(({ credentialVersion }) => credentialVersion)
    expect(new Set(versions)).toEqual(new Set([1]))

    const { code, output } = await rotate()

    expect([code, JSON.parse(output)]).toEqual([
      0,
      {
        key_id: 'second',
        connections: CONNECTIONS - 5,
        client_secrets: 1,
        providers: expect.any(Number),
        webhook_secrets: 1,
        run_inputs: 1,
        identity_providers: 1,
        failed: 0,
      },
    ])
    expect(JSON.parse(output).providers).toBeGreaterThanOrEqual(1)
    // The old key is not needed any more.
    for (const { id, sealedCredential, vaultKeyId } of await rows()) {
      const opened = openConnection(newKeys, { organizationId, connectionId: id }, sealedCredential ?? '')
      expect([opened, vaultKeyId]).toEqual([
        {
          kind: 'bearer',
          origin: 'https://mcp.service.test',
          secret: expect.stringMatching(/^(token-of|secret-of)-/),
        },
        'second',
      ])
    }
    const [integration] = await harness.database
      .select()
      .from(integrations)
      .where(eq(integrations.id, integrationId))
    expect(openClientSecret(newKeys, integrationId, integration?.sealedClientSecret ?? '')).toBe(
      'the secret of the client',
    )
    const [issuer] = await harness.database
      .select()
      .from(identityProviders)
      .where(eq(identityProviders.organizationId, organizationId))
    expect(unseal(newKeys, issuer?.sealedClientSecret ?? '', providerSecretContext(organizationId))).toBe(
      'the secret at the provider',
    )
    const [provider] = await harness.database.select().from(providers).where(eq(providers.id, providerId))
    expect(openCredential(newKeys, providerId, SECRET_ONLY, provider?.sealedCredential ?? '').parts).toEqual({
      secret: 'sk-of-provider',
    })
    const [row] = await harness.database.select().from(runs).where(eq(runs.id, run.id))
    expect(openInputs(newKeys, run.id, row?.sealedInputs ?? '')).toEqual({ City: 'Paris' })
    const [hook] = await harness.database
      .select()
      .from(agentTriggers)
      .where(eq(agentTriggers.agentId, agent.id))
    expect(unseal(newKeys, hook?.sealedSecret ?? '', webhookSecretContext(agent.id, 'hook'))).toMatch(
      /^whsec_/,
    )
    expect(JSON.parse((await rotate()).output)).toMatchObject({
      connections: 0,
      client_secrets: 0,
      providers: 0,
      webhook_secrets: 0,
      run_inputs: 0,
      identity_providers: 0,
    })
  })

  it('counts what does not open, and goes on', async () => {
    const [one] = await rows()
    await harness.database
      .update(connections)
      .set({ vaultKeyId: 'gone', sealedCredential: 'e1:v1.gone.AAAA.AAAA:v1.data.AAAA.AAAA' })
      .where(eq(connections.id, one?.id ?? ''))
    const { code, output } = await rotate()
    expect([code, JSON.parse(output)]).toMatchObject([1, { connections: 0, failed: 1 }])
  })

  it('is of the deployment, and takes cursors of its own only', async () => {
    const rotation = harness.configured({ VAULT_KEYS: BOTH })
    for (const body of [{ limit: 0 }, { limit: 501 }, { cursor: 'x' }, { more: 1 }]) {
      expect((await rotation('POST', '/vault/rotate', body)).status).toBe(400)
    }
    expect((await rotation('POST', '/vault/rotate', {}, { authorization: 'Bearer wrong' })).status).toBe(401)
  })
})

describe('Postgres away', () => {
  it('leaves a connection as it was, and no secret in an answer, a log or a record', async () => {
    const lines: string[] = []
    for (const level of ['log', 'error'] as const) {
      vi.spyOn(console, level).mockImplementation((line) => void lines.push(String(line)))
    }
    const secret = `secret-of-a-lost-change-${crypto.randomUUID()}`
    const [one] = await rows()
    const path = `/organizations/${organizationId}/connections/${one?.id}`
    harness.postgresForwarder.behaviour = { status: 502, body: 'bad gateway' }
    const answers = [
      await harness.request('GET', path),
      await harness.request('PUT', path, { credential: { secret } }),
      await harness.request('POST', `${path}/connect`, {}),
      await harness.request('POST', '/vault/rotate', {}),
    ]
    harness.postgresForwarder.behaviour = 'forward'
    vi.restoreAllMocks()
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500, 500])
    const texts = [lines, answers.map(({ text }) => text), harness.ledgers.changes]
    expect(JSON.stringify(texts)).not.toContain(secret)
    expect((await rows()).find(({ id }) => id === one?.id)).toEqual(one)
  })
})

describe('the commands of connections', () => {
  const run = async (words: string[], input = '') => {
    const lines: string[] = []
    const code = await runAdmin([...words, '--organization', organizationId], {
      environment: { HEADGATE_URL: server.url, ADMIN_TOKEN },
      readInput: async () => input,
      print: (line) => lines.push(line),
      complain: (line) => lines.push(line),
    })
    return { code, output: lines.join('\n') }
  }
  const json = async (words: string[], input?: string) => {
    const { code, output } = await run([...words, '--json'], input)
    expect({ code, output }).toMatchObject({ code: 0 })
    return JSON.parse(output)
  }

  it('add, list, show, update, share, set the status of and remove a connection', async () => {
    const group = uniqueName('team')
    await json(['groups', 'create', group])
    const add = ['connections', 'add', slug, '--name', 'By hand', '--credential-stdin']
    const made = await json(add, 'secret-from-standard-input\n')
    expect(made).toMatchObject({ status: 'active', hint: 'nput', user_id: null })
    expect((await run(add, '\n')).code).toBe(2)
    expect(await json(['connections', 'list', '--all'])).toContainEqual(
      expect.objectContaining({ id: made.id }),
    )
    expect(
      await json(['connections', 'share', made.id, '--group', group, '--permission', 'manage']),
    ).toMatchObject({
      shares: [{ permission: 'manage' }],
    })
    expect(await json(['connections', 'unshare', made.id, '--group', group])).toMatchObject({ shares: [] })
    expect(await json(['connections', 'status', made.id, 'needs_reauth'])).toMatchObject({
      status: 'needs_reauth',
    })
    const update = ['connections', 'update', made.id, '--name', 'Renamed', '--credential-stdin']
    expect(await json(update, 'another-secret-of-it')).toMatchObject({
      ...{ display_name: 'Renamed', status: 'active', hint: 'f-it' },
    })
    expect(await json(['connections', 'show', made.id])).toMatchObject({
      display_name: 'Renamed',
      connect: null,
    })
    expect((await run(['connections', 'connect', made.id, '--user', organizationId])).code).toBe(1)
    await json(['connections', 'remove', made.id])
    expect((await run(['connections', 'show', made.id])).code).toBe(1)
  })
})
