import { beforeAll, expect, it } from 'vitest'
import { ConsoleBrowser, SESSION_COOKIE, setupLink, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { addMember, administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'

// What an operator may do beyond the table of permissions, which management-rights.test.ts holds against every endpoint.

interface Person {
  userId: string
  browser: ConsoleBrowser
}

interface AuditEntry {
  action: string
  user_id: string | null
  record: { actor: { session?: string }; resource: string; detail: Record<string, unknown> }
}

let home: Tenant
let other: Tenant
let operator: Person

const api = () => administrator(gateway())
const OPERATOR = (userId: string, base = home.base) => `${base}/users/${userId}/entitlements/operator`

async function person(values: object, entitlements: readonly string[] = [], base = home.base) {
  const userId = await addMember(gateway(), base, { ...values })
  for (const name of entitlements) await api().ask('PUT', `${base}/users/${userId}/entitlements/${name}`)
  return { userId, browser: await signedInBrowser(gateway(), base, userId) }
}

beforeAll(async () => {
  ;[home, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
  operator = await person({ role: 'member' }, ['operator'])
})

const refusal = (answer: Answer) => [answer.status, String(jsonOf(answer).message)]

/** The operator's newest record of an action in the chain of an organization, or of the deployment. */
async function newest(base: string, action: string): Promise<AuditEntry | undefined> {
  await api().ask('POST', `${base}/ledger/flush`)
  const { data } = await api().ask<{ data: AuditEntry[] }>(
    'GET',
    `${base}/audit?user_id=${operator.userId}&limit=200`,
  )
  return data.find((entry) => entry.action === action)
}

async function isOperator(userId: string, base = home.base): Promise<boolean> {
  const { entitlements } = await api().ask<{ entitlements: string[] }>('GET', `${base}/users/${userId}`)
  return entitlements.includes('operator')
}

it('is made by the administration token alone, and by no session', async () => {
  const [owner, member] = await Promise.all([person({ role: 'owner' }), person({ role: 'member' })])
  const makers = [
    { by: owner, base: home.base, userId: member.userId },
    { by: owner, base: home.base, userId: owner.userId },
    { by: operator, base: home.base, userId: member.userId },
    { by: operator, base: other.base, userId: other.userId },
  ]
  for (const { by, base, userId } of makers) {
    expect(refusal(await by.browser.call('PUT', OPERATOR(userId, base)))).toEqual([
      403,
      'Only the administration token makes operators, and takes their rights.',
    ])
    expect(await isOperator(userId, base)).toBe(false)
  }
  for (const by of [owner, operator]) {
    expect((await by.browser.call('DELETE', OPERATOR(operator.userId))).status).toBe(403)
  }
  expect(await isOperator(operator.userId)).toBe(true)
  // Other entitlements are given by an operator as by an owner, in any organization.
  const billing = `${other.base}/users/${other.userId}/entitlements/billing`
  expect((await operator.browser.call('PUT', billing)).status).toBe(200)
  const service = await addMember(gateway(), home.base, { kind: 'service' })
  expect((await api().call('PUT', OPERATOR(service))).status).toBe(422)
})

it('loses its rights with the next request', async () => {
  const { userId, browser } = await person({ role: 'member' }, ['operator'])
  expect((await browser.call('GET', `${other.base}/users`)).status).toBe(200)
  expect((await browser.call('GET', '/providers')).status).toBe(200)
  await api().ask('DELETE', OPERATOR(userId))
  expect((await browser.call('GET', `${other.base}/users`)).status).toBe(404)
  expect((await browser.call('GET', '/providers')).status).toBe(403)
  expect((await browser.call('GET', '/me')).status).toBe(200)
})

it('has credentials that were made after it became one, with the administration token', async () => {
  const [owner, member] = await Promise.all([person({ role: 'owner' }), person({ role: 'member' })])
  const invited = await addMember(gateway(), home.base)
  // What an owner, or whoever holds a link, could have kept for later.
  const { token } = await owner.browser.ask<{ token: string }>(
    'POST',
    `${home.base}/users/${invited}/setup-link`,
  )
  for (const userId of [invited, member.userId]) await api().ask('PUT', OPERATOR(userId))
  expect((await new ConsoleBrowser(gateway()).call('POST', '/setup', { token })).status).toBe(401)
  expect((await member.browser.call('GET', '/me')).status).toBe(401)
  expect((await member.browser.signIn()).status).toBe(401)
  for (const by of [owner, operator]) {
    const answer = await by.browser.call('POST', `${home.base}/users/${invited}/setup-link`)
    expect(refusal(answer)).toEqual([
      403,
      'Only the administration token makes a setup link for an operator.',
    ])
  }
  const signedIn = await signedInBrowser(gateway(), home.base, invited)
  // Given once more it changes nothing.
  await api().ask('PUT', OPERATOR(invited))
  const me = await signedIn.ask<{ permissions: Record<string, string> }>('GET', '/me')
  expect(me).toMatchObject({
    entitlements: ['operator'],
    permissions: {
      'users.change': 'installation',
      'installation.vault': 'installation',
      'keys.create': 'own',
    },
  })
  expect(me.permissions).not.toHaveProperty(['connections.read'])
})

it('is disabled by its organization, and enabled by the administration token alone', async () => {
  const [owner, disabled] = await Promise.all([
    person({ role: 'owner' }),
    person({ role: 'member' }, ['operator']),
  ])
  const path = `${home.base}/users/${disabled.userId}`
  expect((await owner.browser.call('DELETE', path)).status).toBe(200)
  expect((await disabled.browser.call('GET', '/me')).status).toBe(401)
  expect(refusal(await owner.browser.call('PUT', path, { disabled: false }))).toEqual([
    403,
    'Only the administration token enables an operator.',
  ])
  expect((await api().call('PUT', path, { disabled: false })).status).toBe(200)
})

it('is recorded where it acts, with its user, session and organization', async () => {
  const session = (await operator.browser.ask<{ session: { id: string } }>('GET', '/me')).session.id
  const name = uniqueName('group')
  await operator.browser.ask('POST', `${other.base}/groups`, { name })
  const granted = { amount: 5, reason: 'a gift' }
  expect(await operator.browser.ask('POST', `${other.base}/credits`, granted)).toMatchObject({ amount: 5 })
  await operator.browser.ask('GET', `${other.base}/audit?limit=1`)
  const wanted = { actor: { session }, detail: { operator: { organization_id: home.organizationId } } }
  for (const action of ['group.created', 'audit.viewed']) {
    const entry = await newest(other.base, action)
    expect(entry, action).toMatchObject({ user_id: operator.userId, record: wanted })
  }
  // At home it is a member as any other.
  await operator.browser.ask('POST', `${home.base}/groups`, { name })
  const atHome = await newest(home.base, 'group.created')
  expect(atHome).toMatchObject({ user_id: operator.userId, record: { detail: { name } } })
  expect(atHome?.record.detail).not.toHaveProperty('operator')
  // Changes of the deployment are in its own chain.
  const slug = uniqueName('organization')
  await operator.browser.ask('POST', '/organizations', { name: slug, slug })
  const provider = {
    name: slug,
    kind: 'anthropic',
    base_url: 'https://api.example.com',
    credential: 'secret',
  }
  await operator.browser.ask('POST', '/providers', provider)
  expect(await newest('', 'provider.created')).toMatchObject({ user_id: operator.userId, record: wanted })
})

it('has only its role at home: nothing of it reaches another organization', async () => {
  const admin = await person({ role: 'admin' }, ['operator'])
  const answer = await admin.browser.call('GET', `${other.base}/connections`)
  expect(refusal(answer)).toEqual([
    403,
    'Your permission connections.read does not reach other organizations.',
  ])
  expect((await admin.browser.call('GET', `${home.base}/connections`)).status).toBe(200)
  const grant = { subject_type: 'organization', model_id: 'scripted-chat' }
  expect((await admin.browser.call('POST', `${other.base}/grants`, grant)).status).toBe(403)
  expect((await admin.browser.call('POST', `${other.base}/playground-keys`)).status).toBe(403)
  const missing = '/organizations/00000000-0000-4000-8000-000000000009'
  expect((await admin.browser.call('GET', missing)).status).toBe(404)
})

it('finds nothing of connections in another organization, though its role reads them at home', async () => {
  const admin = await person({ role: 'admin' }, ['operator'])
  const name = uniqueName('account')
  for (const { base } of [home, other]) {
    const slug = uniqueName('service')
    await api().ask('POST', `${base}/integrations`, {
      kind: 'mcp',
      slug,
      url: 'https://mcp.service.test/mcp',
      authorization: { kind: 'bearer' },
    })
    const connection = { integration: slug, display_name: name, credential: { secret: 'secret' } }
    await api().ask('POST', `${base}/connections`, connection)
  }
  const found = async (base: string) =>
    (await admin.browser.ask<{ data: Array<{ kind: string }> }>('GET', `${base}/find?q=${name}`)).data
  expect(await found(home.base)).toMatchObject([{ kind: 'connection' }])
  expect(await found(other.base)).toEqual([])
})

it('changes no rights of its own, and joins no other organization', async () => {
  const email = `${uniqueName('operator')}@example.com`
  const { userId, browser } = await person({ role: 'member', email }, ['operator'])
  const path = `${home.base}/users/${userId}`
  expect((await browser.call('PUT', path, { role: 'owner' })).status).toBe(403)
  expect((await browser.call('PUT', path, { rate_limit_per_minute: 100_000 })).status).toBe(403)
  expect((await browser.call('PUT', `${path}/entitlements/auditor`)).status).toBe(403)
  const joining = { email, name: 'Me', role: 'owner' }
  expect(refusal(await browser.call('POST', `${other.base}/users`, joining))).toEqual([
    403,
    'Nobody adds themselves to an organization.',
  ])
  const { id } = await browser.ask<{ id: string }>('POST', `${home.base}/groups`, { name: email })
  expect((await browser.call('PUT', `${home.base}/groups/${id}/members/${userId}`)).status).toBe(403)
  // Of others it changes what an owner changes.
  const owner = await addMember(gateway(), other.base, { role: 'owner' })
  const change = { role: 'admin' }
  expect((await browser.call('PUT', `${other.base}/users/${other.userId}`, change)).status).toBe(200)
  expect((await browser.call('PUT', `${other.base}/users/${owner}`, change)).status).toBe(422)
  expect((await browser.call('PUT', other.base, { disabled: false, ledger_shards: 1 })).status).toBe(200)
})

it('changes providers, models and secrets after a recent sign-in only, and reads them after any', async () => {
  const { userId, browser } = await person({ role: 'member' }, ['operator'])
  const id = '00000000-0000-4000-8000-000000000005'
  const changes = [
    ['POST', '/providers'],
    ['PUT', `/providers/${id}`],
    ['DELETE', `/providers/${id}`],
    ['PUT', '/models/some-model'],
    ['DELETE', '/models/some-model'],
    ['POST', '/vault/rotate'],
    ['GET', '/audit/export/heads'],
    ['POST', `${other.base}/users/${other.userId}/setup-link`],
  ] as const
  const statuses = async () => {
    const answers = []
    for (const [method, path] of changes) {
      answers.push((await browser.call(method, path, method === 'GET' ? undefined : {})).status)
    }
    return answers
  }
  expect(await statuses()).not.toContain(401)
  await query(
    gateway(),
    `UPDATE sessions SET signed_in_at = signed_in_at - interval '11 minutes' WHERE user_id = $1`,
    [userId],
  )
  expect(await statuses()).toEqual(changes.map(() => 401))
  for (const path of ['/providers', '/models', '/organizations', `${other.base}/users`, '/audit/chains']) {
    expect((await browser.call('GET', path)).status, path).toBe(200)
  }
})

it('lists all organizations, and others only their own', async () => {
  const owner = await person({ role: 'owner' })
  const slugs = async ({ browser }: Person, slug: string) =>
    (await browser.ask<{ data: Array<{ id: string }> }>('GET', `/organizations?slug=${slug}`)).data
  const { slug } = await api().ask<{ slug: string }>('GET', other.base)
  expect(await slugs(operator, slug)).toMatchObject([{ id: other.organizationId }])
  expect(await slugs(owner, slug)).toEqual([])
})

it('reads pages of an audit trail as one view, with its own cursors only', async () => {
  const [ada, grace] = await Promise.all([
    person({ role: 'owner' }, [], other.base),
    person({ role: 'member' }, ['operator']),
  ])
  // Both read the same records, with the same filter.
  const path = `${other.base}/audit?surface=management&to=${new Date().toISOString()}&limit=1`
  const page = ({ browser }: Person, cursor: string | null) =>
    browser.ask<{ next_cursor: string }>('GET', path + (cursor === null ? '' : `&cursor=${cursor}`))
  const views = async ({ userId }: Person) => {
    await api().ask('POST', `${other.base}/ledger/flush`)
    const { data } = await api().ask<{ data: AuditEntry[] }>('GET', `${other.base}/audit?user_id=${userId}`)
    return data.filter(({ action }) => action === 'audit.viewed').length
  }
  let { next_cursor: cursor } = await page(ada, null)
  for (let index = 0; index < 3; index += 1) cursor = (await page(ada, cursor)).next_cursor
  expect(await views(ada)).toBe(1)
  const ofGrace = (await page(grace, cursor)).next_cursor
  expect(await views(grace)).toBe(1)
  await page(grace, ofGrace)
  expect(await views(grace)).toBe(1)
  await page(ada, ofGrace)
  expect(await views(ada)).toBe(2)
})

it('reads calls of another organization as one view, and is no view at home', async () => {
  const { userId, browser } = await person({ role: 'member' }, ['operator'])
  const { ask } = administrator(gateway())
  for (const tenant of [home, other]) {
    const { base, key } = tenant
    for (let index = 0; index < 3; index += 1) {
      const body = { model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] }
      await send(`${gateway().baseUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: bearer(key),
        body: JSON.stringify(body),
      })
    }
    await callEntries(gateway(), tenant, 3)
    let cursor: string | null = null
    for (let page = 0; page < 3; page += 1) {
      const path = `${base}/calls?limit=1${cursor === null ? '' : `&cursor=${cursor}`}`
      const answer: { data: object[]; next_cursor: string | null } = await browser.ask('GET', path)
      expect(answer.data).toHaveLength(1)
      cursor = answer.next_cursor
    }
  }
  const views = async ({ base }: Tenant) => {
    await ask('POST', `${base}/ledger/flush`)
    const { data } = await ask<{ data: AuditEntry[] }>('GET', `${base}/audit?user_id=${userId}`)
    return data.filter(({ action }) => action === 'calls.viewed').length
  }
  expect([await views(home), await views(other)]).toEqual([0, 1])
})

it('makes a setup link in any organization, which opens that one only', async () => {
  const newcomer = await addMember(gateway(), other.base)
  const { token } = await operator.browser.ask<{ token: string }>(
    'POST',
    `${other.base}/users/${newcomer}/setup-link`,
  )
  const browser = new ConsoleBrowser(gateway())
  expect((await browser.setUp(token)).status).toBe(200)
  expect(browser.cookies.has(SESSION_COOKIE)).toBe(true)
  expect((await browser.call('GET', home.base)).status).toBe(404)
  // The token still makes one for an operator: a way back after a lost passkey.
  const { userId } = await person({ role: 'member' }, ['operator'])
  expect(await setupLink(gateway(), home.base, userId)).toMatch(/^hgl_/)
})
