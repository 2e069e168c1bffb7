import { vi } from 'vitest'
import { readCrons } from '../../../scripts/node/wrangler-settings.ts'
import { shardOf } from '../../../src/ledger/shards/shards.ts'
import { ROTATED_TABLES } from '../../../src/wire/vault.ts'
import type { Authenticator } from '../../harness/authenticator.ts'
import { ConsoleBrowser } from '../../harness/console-browser.ts'
import { WRANGLER_FILE } from '../../harness/start-gateway.ts'
import { bearer } from '../../harness/tenant.ts'
import { codePolicy } from '../../http/support/dlp.ts'
import { type Created, type Json, type Manage, managing } from './surfaces.ts'
import type { World } from './world.ts'

/** Documents that are served without a statement, as this campaign shows as well. */
const STATIC_PATHS = [
  '/console',
  '/console/acme/calls',
  '/console/assets/none.js',
  '/openapi.json',
  '/api/openapi.json',
  '/docs/api',
  '/docs/api/management',
  ...['redoc.js', 'reference.js', 'reference.css'].map((name) => `/docs/api/${name}`),
]

const ERASURES_CRON = readCrons(WRANGLER_FILE).find((cron) => cron.startsWith('*/')) ?? ''

type RegistrationOptions = Parameters<Authenticator['register']>[0]

/** Times that are longer than what the tables have, so that nothing is removed; and a person with few rows among many. */
async function driveData(world: World, base: string, userId: string): Promise<void> {
  const { surfaces } = world
  const { manage } = managing(surfaces)
  const days = {
    audit_records: 3_650,
    usage_events: 3_650,
    responses: 3_650,
    runs: 3_650,
    connect_sessions: 3_650,
  }
  await manage('PUT', `${base}/retention`, days)
  await manage('GET', `${base}/retention`)
  const path = `${base}/users/${userId}`
  await surfaces.request('GET', `/api${path}/export`, { headers: bearer(surfaces.address.adminToken) })
  const { id } = await manage<Created>('POST', `${path}/erase`)
  await vi.waitFor(
    async () => {
      const { status, step, failure } = await manage('GET', `${path}/erasures/${id}`)
      if (status === 'done') return
      await endWait(world, id)
      // The job continues what the request has begun.
      await surfaces.address.workerd.runScheduled(ERASURES_CRON)
      throw new Error(`the erasure is ${status}, at ${step}: ${failure}`)
    },
    { timeout: 240_000, interval: 1_000 },
  )
  await manage('GET', `${path}/erasures`)
}

/** Lets an erasure that waits for what is in flight have begun an hour earlier. */
async function endWait({ postgres }: World, id: string): Promise<void> {
  // A lease of what advances it is shorter.
  await postgres.query(
    `UPDATE erasures SET created_at = created_at - interval '1 hour', leased_until = NULL
      WHERE id = $1 AND step = 'wait' AND leased_until > now() + interval '6 minutes'`,
    [id],
  )
}

/** People, groups, keys, grants and credits of an organization. */
export async function drivePeople(world: World): Promise<void> {
  const { surfaces, tenant, unique, round } = world
  const { manage } = managing(surfaces)
  const { base } = tenant
  const organization = await manage<Created>('POST', '/organizations', {
    name: 'Another',
    slug: unique('organization'),
  })
  await manage('GET', '/organizations?limit=2')
  await manage('GET', `/organizations/${organization.id}`)
  // Begins another shard of the ledger, which reads what the organization has.
  await manage('PUT', base, { ledger_shards: 1 + round })
  let email = ''
  let user: Created
  do {
    email = `${unique('user')}@example.com`
    user = await manage<Created>('POST', `${base}/users`, { email, name: 'Ada' })
  } while (shardOf(user.id, 1 + round) !== round)
  const path = `${base}/users/${user.id}`
  await manage('GET', path)
  await manage('PUT', path, { name: 'Ada L.' })
  await manage('GET', `${base}/users?limit=2`)
  await manage('GET', `${base}/users?email=${email}`)
  await manage('PUT', `${path}/entitlements/personal_api_key_access`)
  await manage('DELETE', `${path}/entitlements/personal_api_key_access`)
  const group = await manage<Created>('POST', `${base}/groups`, { name: unique('group') })
  const members = `${base}/groups/${group.id}/members`
  await manage('PUT', `${members}/${user.id}`)
  await manage('GET', `${members}?limit=2`)
  await manage('GET', `${base}/groups?limit=2`)
  await manage('GET', `${base}/groups/${group.id}`)
  const key = await manage<Created & { key: string }>('POST', `${base}/keys`, {
    user_id: user.id,
    label: 'x',
  })
  await surfaces.ask(key.key, 'POST', '/v1/chat/completions', {
    model: 'scripted-chat',
    messages: [{ role: 'user', content: 'script:canned' }],
  })
  await manage('GET', `${base}/keys?limit=2`)
  await manage('GET', `${base}/keys?limit=2&user_id=${user.id}`)
  await manage('GET', `${base}/keys/${key.id}`)
  await manage('PUT', `${base}/keys/${key.id}`, { compatibility: 'open_responses' })
  const next = await manage<Created>('POST', `${base}/keys/${key.id}/rotate`, {})
  await manage('DELETE', `${base}/keys/${next.id}`)
  const grant = await manage<Created>('POST', `${base}/grants`, {
    subject_type: 'group',
    subject_id: group.id,
    model_id: '*',
  })
  await manage('GET', `${base}/grants?limit=2`)
  for (const q of ['none at all', unique('req'), group.id]) await manage('GET', `${base}/find?q=${q}`)
  await manage('GET', `${base}/attention`)
  await manage('GET', `${base}/overview`)
  await manage('GET', `${base}/models?limit=2`)
  await manage('GET', `${base}/models?limit=2&user_id=${user.id}`)
  await manage('DELETE', `${base}/grants/${grant.id}`)
  await manage('DELETE', `${members}/${user.id}`)
  await manage('DELETE', `${base}/groups/${group.id}`)
  await manage('DELETE', path)
  await driveData(world, base, user.id)
  await manage('POST', `${base}/credits`, { amount: 1_000_000, reason: 'more', id: unique('grant') })
}

/** Sign-in of a member by a setup link and by passkeys; its sessions and passkeys. One link stays unused. */
export async function driveSignIn({ surfaces, unique, tenant: { base, userId } }: World): Promise<void> {
  const { manage } = managing(surfaces)
  const linkOf = async () =>
    (await manage<{ token: string }>('POST', `${base}/users/${userId}/setup-link`)).token
  const openBrowser = (authenticator?: Authenticator) =>
    new ConsoleBrowser(surfaces.address, authenticator, (method, path, sent) =>
      surfaces.request(method, path, sent),
    )
  const browser = openBrowser()
  const token = await linkOf()
  await browser.ask('POST', '/setup', { token })
  await browser.setUp(token)
  await browser.ask('GET', '/me')
  const { options } = await browser.ask<{ options: RegistrationOptions }>('POST', '/me/passkeys/begin')
  const credential = browser.authenticator.register(options)
  const second = await browser.ask<Created>('POST', '/me/passkeys/finish', { name: 'Phone', credential })
  const [first] = browser.authenticator.credentials
  await browser.signIn(first)
  await openBrowser(browser.authenticator).signIn(first)
  await browser.call('GET', '/sign-in/methods')
  await browser.ask('POST', `${base}/playground-keys`)
  await browser.ask('GET', `${base}/models?limit=2`)
  await browser.ask('GET', `${base}/attention`)
  await browser.ask('GET', `${base}/overview`)
  await browser.ask('GET', `${base}/find?q=none%20at%20all`)
  await browser.ask('GET', '/me/passkeys')
  await browser.ask('DELETE', `/me/passkeys/${second.id}`)
  const { data } = await browser.ask<{ data: Array<Created & { is_current: boolean }> }>(
    'GET',
    '/me/sessions',
  )
  const earlier = data.find(({ is_current: isCurrent }) => !isCurrent)
  if (earlier) await browser.ask('DELETE', `/me/sessions/${earlier.id}`)
  await browser.ask('POST', '/me/sign-out')
  await browser.signIn(first)
  // Only the local system signs in without a passkey: here these are refused before any statement of their own.
  await browser.call('POST', '/sign-in/local', { token: 'x' })
  await browser.call('GET', '/me/local-members')
  await browser.call('POST', '/me/local-members/switch', {})
  const invited = await manage<Created>('POST', `${base}/users`, {
    email: `${unique('person')}@example.com`,
    name: 'Grace',
  })
  // Rules for members read more than those for the administration token.
  const admin = await manage<Created>('POST', `${base}/users`, {
    email: `${unique('admin')}@example.com`,
    name: 'Alan',
    role: 'admin',
  })
  const { token: link } = await manage<{ token: string }>('POST', `${base}/users/${admin.id}/setup-link`)
  const other = openBrowser()
  await other.setUp(link)
  await other.ask('POST', `${base}/users/${invited.id}/setup-link`)
  const group = await other.ask<Created>('POST', `${base}/groups`, { name: unique('group') })
  await other.ask('PUT', `${base}/groups/${group.id}/members/${invited.id}`)
  await other.ask('DELETE', `${base}/groups/${group.id}`)
}

/** Sign-in with accounts of the organization's identity provider: by address, by the link and by a setup link. One account stays linked. */
export async function driveCompanyAccounts(world: World): Promise<void> {
  const { surfaces, unique, identityProvider: provider } = world
  const { base } = world.tenant
  const { manage } = managing(surfaces)
  const { slug } = await manage<{ slug: string }>('GET', base)
  const setProvider = () =>
    manage('PUT', `${base}/identity-provider`, {
      issuer: provider.issuer,
      client_id: provider.client.id,
      client_secret: provider.client.secret,
    })
  const signIn = async (start: object) => {
    const browser = new ConsoleBrowser(surfaces.address, undefined, (method, path, sent) =>
      surfaces.request(method, path, sent),
    )
    const { url } = await browser.ask<{ url: string }>('POST', '/sign-in/oidc/begin', start)
    const address = await provider.visit(url)
    const { headers } = await browser.call('GET', address.slice(address.indexOf('/api') + 4))
    if (headers.location !== '/console') throw new Error(`A sign-in led to ${headers.location}`)
  }
  const newMember = async () => {
    const email = `${unique('account')}@example.com`
    provider.account = { sub: unique('sub'), email, email_verified: true }
    return manage<Created>('POST', `${base}/users`, { email, name: 'Edith' })
  }
  await manage('GET', `${base}/identity-provider`)
  await setProvider()
  const { id } = await newMember()
  const { token } = await manage<{ token: string }>('POST', `${base}/users/${id}/setup-link`)
  await signIn({ token })
  await manage('DELETE', `${base}/identity-provider`)
  await setProvider()
  await newMember()
  await signIn({ organization: slug })
  await signIn({ organization: slug })
}

/** Records: lists, sums, verification and exports. */
export async function driveRecords({ surfaces, tenant }: World): Promise<void> {
  const { manage } = managing(surfaces)
  const { base, userId, keyId } = tenant
  await manage('POST', `${base}/ledger/flush`)
  await manage('POST', '/ledger/flush')
  await twoPages(manage, `${base}/credits`)
  await twoPages(manage, `${base}/usage/events`)
  for (const by of ['model', 'key', 'user', 'day']) await manage('GET', `${base}/usage?group_by=${by}`)
  const filters = [
    `user_id=${userId}`,
    'user_id=nobody',
    `key_id=${keyId}`,
    'key_id=none',
    'model=none',
    'status=418',
    'surface=none',
    'from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z',
  ]
  for (const filter of filters) await manage('GET', `${base}/audit?limit=2&${filter}`)
  await twoPages(manage, `${base}/audit`)
  const { data } = await manage<{ data: Created[] }>('GET', `${base}/calls?limit=1`)
  await manage('GET', `${base}/calls/${data[0]?.id}`)
  await twoPages(manage, `${base}/calls`)
  for (const filter of [...CALL_FILTERS, `user_id=${userId}`, `key_id=${keyId}`]) {
    await manage('GET', `${base}/calls?limit=2&${filter}`)
  }
  await surfaces.request('GET', `/api${base}/calls/tail?seconds=0`, {
    headers: { authorization: `Bearer ${surfaces.address.adminToken}` },
  })
  await manage('GET', `${base}/calls/histogram`)
  await manage('GET', `${base}/calls/histogram?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z`)
  await twoPages(manage, '/audit')
  await manage('GET', `${base}/audit/chains`)
  await manage('GET', '/audit/chains')
  await manage('GET', '/audit/heads')
  const organizationId = base.split('/').at(-1) ?? ''
  const ledger = `organization_id=${organizationId}`
  await manage('GET', `/ledger/check?${ledger}`)
  await manage('POST', '/ledger/reflush', { organization_id: organizationId })
  await manage('POST', '/audit/checkpoints')
  await manage('GET', '/audit/checkpoints/verify?limit=2')
  for (const where of ['', base]) {
    await manage('GET', `${where}/audit/verify?limit=20`)
    await manage('GET', `${where}/audit/export/records?limit=20`)
    await manage('GET', `${where}/audit/export/heads`)
    await manage('GET', `${where}/audit/export/checkpoints?limit=2`)
    await unrecorded(manage, `${where}/audit/export/unrecorded?limit=20`, organizationId)
  }
  await unrecorded(manage, '/audit/unrecorded?limit=20', organizationId)
}

/** Rows of usage from the first one and behind another one, then those of credits. */
async function unrecorded(manage: Manage, path: string, organizationId: string): Promise<void> {
  await manage('GET', path)
  const after = { organizationId, at: '2020-01-01 00:00:00', callId: 'call_0' }
  await manage('GET', `${path}&cursor=${cursorOf({ table: 'usage_events', after })}`)
  await manage('GET', `${path}&cursor=${cursorOf({ table: 'credit_entries', after: null })}`)
}

/** A filter by each index, and by others. */
const CALL_FILTERS = [
  'request_id=none',
  'response_id=none',
  'run_id=none',
  'user_id=nobody',
  'key_id=none',
  'group_id=none',
  'model=none',
  'provider=none',
  'tool=none',
  'error=none',
  'outcome=ok',
  'outcome=failed',
  'found=any',
  'found=none',
  'flag=any',
  'status=418',
  'surface=none',
  'cost_min=1&cost_max=2',
  'duration_min=100000000',
]

/** Providers, models, policies, and the rotation of keys. */
export async function driveDeployment({ surfaces, tenant, unique }: World): Promise<void> {
  for (const path of STATIC_PATHS) await surfaces.request('GET', path)
  const { manage } = managing(surfaces)
  const { base } = tenant
  const provider = await manage<Created>('POST', '/providers', {
    name: unique('provider'),
    kind: 'openai-compatible',
    base_url: `${surfaces.address.standIns.modelUpstream}/v1`,
    credential: 'secret-of-a-provider',
  })
  await manage('GET', '/providers?limit=2')
  await manage('GET', `/providers/${provider.id}`)
  await manage('PUT', `/providers/${provider.id}`, { allowed_members: [] })
  const id = unique('model')
  await manage('PUT', `/models/${id}`, {
    owned_by: 'test',
    context_window: 1_000,
    max_output_tokens: 100,
    prices: { input: 1, output: 1, cache_read: 1, cache_write_5_minutes: 1, cache_write_1_hour: 1 },
    routes: [{ provider_id: provider.id, upstream_model: 'x' }],
  })
  await manage('GET', `/models/${id}`)
  await manage('GET', '/models?limit=2')
  await manage('DELETE', `/models/${id}`)
  await manage('DELETE', `/providers/${provider.id}`)
  const policy = await manage<Created>('POST', `${base}/dlp/policies`, codePolicy('warn', { enabled: false }))
  const policyPath = `${base}/dlp/policies/${policy.id}`
  await manage('GET', policyPath)
  await manage('GET', `${base}/dlp/policies?limit=2`)
  await manage('PUT', policyPath, codePolicy('warn', { enabled: true, version: 1 }))
  await manage('GET', `${policyPath}/versions?limit=1`)
  await manage('GET', `${policyPath}/versions/1`)
  await manage('GET', '/dlp/detectors')
  await manage('POST', `${base}/dlp/test`, { policy_id: policy.id, text: 'KX-1234-123456' })
  await manage('POST', `${base}/dlp/dry-run`, { policy_id: policy.id, samples: ['KX-1234-123456'] })
  await manage('DELETE', policyPath)
  await manage('GET', `${base}/tools`)
  await manage('PUT', `${base}/tools`, {})
  await rotateVault(manage)
}

/** Pages of each kind of secrets that are rotated; all pages of a million rows would be ten thousand requests. */
const ROTATED_PAGES = 3

async function rotateVault(manage: Manage): Promise<void> {
  for (const table of ROTATED_TABLES) {
    let position: Json | null = { table, after: null }
    for (let page = 0; page < ROTATED_PAGES && position?.table === table; page++) {
      const cursor = cursorOf(position)
      const { next_cursor: next } = await manage<{ next_cursor: string | null }>('POST', '/vault/rotate', {
        cursor,
      })
      position = next === null ? null : positionOf(next)
    }
  }
}

const cursorOf = (position: Json): string => Buffer.from(JSON.stringify(position)).toString('base64url')
const positionOf = (cursor: string): Json => JSON.parse(Buffer.from(cursor, 'base64url').toString())

/** A list's first page, and the one after it. */
async function twoPages(manage: Manage, path: string): Promise<void> {
  const { next_cursor: cursor } = await manage<{ next_cursor: string | null }>('GET', `${path}?limit=2`)
  if (cursor) await manage('GET', `${path}?limit=2&cursor=${encodeURIComponent(cursor)}`)
}

/** Requests that are refused because the key lacks a right. */
export async function driveRefusals({ surfaces, tenant }: World): Promise<void> {
  const { id, key } = await surfaces.manage<{ id: string; key: string }>('POST', `${tenant.base}/keys`, {
    user_id: tenant.userId,
    label: 'refused',
  })
  await surfaces.manage('DELETE', `${tenant.base}/keys/${id}`)
  await surfaces.request('GET', '/v1/models', { headers: bearer(key) })
}
