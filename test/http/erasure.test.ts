import { beforeAll, describe, expect, it, vi } from 'vitest'
import { createConnection, createUnreadIntegration } from '../harness/connections.ts'
import { signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { auditEntries } from '../harness/records.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { workspaceCaller } from '../harness/workspaces.ts'
import { createAgent, definitionOf } from './support/agents.ts'
import { deliver } from './support/deliveries.ts'
import { ask, createResponse } from './support/response-calls.ts'

interface Erasure {
  id: string
  status: 'in_progress' | 'done'
  step: string
  counts: Record<string, number>
  failure: string | null
}

interface Person {
  userId: string
  key: string
  conversationId: string
  responseId: string
}

const LARGE = 'A private text of more than a megabyte. '.repeat(30_000)

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const api = <Answer>(method: string, path: string, body?: unknown) =>
  administrator(gateway()).ask<Answer>(method, tenant.base + path, body)
const sql = (text: string, parameters: unknown[]) => query(gateway(), text, parameters)

/** Tables with rows of a person, and the column of its id. */
const TABLES: Record<string, string> = {
  memberships: 'user_id',
  api_keys: 'user_id',
  sessions: 'user_id',
  passkeys: 'user_id',
  setup_links: 'user_id',
  entitlements: 'user_id',
  group_memberships: 'user_id',
  connections: 'owner_user_id',
  connection_preferences: 'user_id',
  conversations: 'user_id',
  responses: 'user_id',
  response_items: 'user_id',
  runs: 'user_id',
}

async function rowsOf(userId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const [table, column] of Object.entries(TABLES)) {
    const [row] = await sql(`SELECT count(*)::int AS n FROM ${table} WHERE ${column} = $1`, [userId])
    if (Number(row?.n) > 0) counts[table] = Number(row?.n)
  }
  return counts
}

/** A member that has used everything. */
async function person(): Promise<Person> {
  const userId = await addMember(gateway(), tenant.base)
  const { key } = await addKey(gateway(), tenant.base, userId)
  await signedInBrowser(gateway(), tenant.base, userId)
  await api('PUT', `/users/${userId}/entitlements/auditor`)
  const { conversation, id: responseId } = await createResponse(key, {})
  await createResponse(key, { conversation: conversation?.id, input: LARGE })
  const conversationId = conversation?.id ?? ''
  const { organizationId } = tenant
  const files = workspaceCaller(gateway().toolsUrl, { organizationId, userId, workspaceId: conversationId })
  await files.call('write_file', { path: 'notes.txt', content: 'private notes' })
  return { userId, key, conversationId, responseId }
}

/** Lets an erasure that waits for what is in flight have begun an hour earlier, and has it advanced. */
async function endWait(userId: string, id: string): Promise<void> {
  // A lease of what advances it is shorter.
  const moved = await sql(
    `UPDATE erasures SET created_at = created_at - interval '1 hour', leased_until = NULL
      WHERE id = $1 AND step = 'wait' AND leased_until > now() + interval '6 minutes' RETURNING id`,
    [id],
  )
  if (moved.length > 0) await api('POST', `/users/${userId}/erase`)
}

const erased = (userId: string, { id }: Erasure): Promise<Erasure> =>
  vi.waitFor(
    async () => {
      await endWait(userId, id)
      const erasure = await api<Erasure>('GET', `/users/${userId}/erasures/${id}`)
      if (erasure.status !== 'done') throw new Error(`${erasure.step}: ${erasure.failure}`)
      return erasure
    },
    { timeout: 20_000, interval: 50 },
  )

describe('the erasure of a person', () => {
  it('leaves nothing of the person, and everything of others', async () => {
    const [one, other] = await Promise.all([person(), person()])
    const integration = await createUnreadIntegration(gateway(), tenant)
    await createConnection(gateway(), tenant, integration, { user_id: one.userId })
    const ofOther = await rowsOf(other.userId)
    const [contents] = await sql(
      'SELECT content_key FROM response_items WHERE user_id = $1 AND content_key IS NOT NULL',
      [one.userId],
    )
    expect(contents).toBeDefined()
    const begun = await api<Erasure>('POST', `/users/${one.userId}/erase`)
    expect((await ask(one.key, 'GET', '/v1/models')).status).toBe(401)
    const { counts } = await erased(one.userId, begun)

    expect(await rowsOf(one.userId)).toEqual({})
    expect(counts).toMatchObject({
      connections: 1,
      responses: 2,
      conversations: 1,
      keys: 1,
      passkeys: 1,
      membership: 1,
      person: 1,
    })
    const [user] = await sql('SELECT name, email FROM users WHERE id = $1', [one.userId])
    expect(user).toEqual({ name: 'Erased user', email: `erased-${one.userId}@erased.invalid` })
    // The content store has nothing any more.
    expect(
      await sql('SELECT 1 FROM content_erasures WHERE organization_id = $1', [tenant.organizationId]),
    ).toEqual([])
    const { organizationId } = tenant
    const owner = { organizationId, userId: one.userId, workspaceId: one.conversationId }
    const listed = await workspaceCaller(gateway().toolsUrl, owner)
      .call('list_files', {})
      .catch(() => null)
    expect(JSON.stringify(listed)).not.toContain('notes.txt')
    expect(await rowsOf(other.userId)).toEqual(ofOther)
    expect((await ask(other.key, 'GET', `/v1/responses/${other.responseId}`)).status).toBe(200)
  })

  it('is recorded with its counts, and the records of the person stay as they were', async () => {
    const one = await person()
    const before = await sql('SELECT hash FROM audit_records WHERE user_id = $1 ORDER BY sequence', [
      one.userId,
    ])
    const begun = await api<Erasure>('POST', `/users/${one.userId}/erase`)
    const { counts } = await erased(one.userId, begun)
    const entries = await auditEntries(gateway(), tenant)
    const of = (action: string) =>
      entries.find(({ action: each, record }) => each === action && record.resource === `users/${one.userId}`)
        ?.record
    expect(of('user.erasure_begun')).toMatchObject({ detail: { erasure: begun.id } })
    expect(of('user.erased')).toMatchObject({ detail: { erasure: begun.id, counts } })
    const after = await sql('SELECT hash FROM audit_records WHERE user_id = $1 ORDER BY sequence', [
      one.userId,
    ])
    expect(after.slice(0, before.length)).toEqual(before)
  })

  it('lets the schedule of an agent of the person store nothing any more', async () => {
    const userId = await addMember(gateway(), tenant.base)
    const triggers = [{ kind: 'schedule', name: 'yearly', cron: '0 0 1 1 *' }]
    const definition = definitionOf([{ instructions: 'Greet.' }], { triggers })
    const agentId = await createAgent(tenant, definition, gateway(), userId)
    await erased(userId, await api<Erasure>('POST', `/users/${userId}/erase`))
    const body = { organization_id: tenant.organizationId, agent_id: agentId, trigger: 'yearly' }
    expect((await deliver('/internal/agents/schedules', body)).status).toBe(200)
    expect(await rowsOf(userId)).toEqual({})
  })

  it('is one for two requests, and another one later has nothing to do', async () => {
    const one = await person()
    const begun = await api<Erasure>('POST', `/users/${one.userId}/erase`)
    await erased(one.userId, begun)
    const { data } = await api<{ data: Erasure[] }>('GET', `/users/${one.userId}/erasures`)
    expect(data.map(({ id, status }) => [id, status])).toEqual([[begun.id, 'done']])
    const again = await administrator(gateway()).call('POST', `${tenant.base}/users/${one.userId}/erase`)
    expect(again.status).toBe(404)
  })

  it('keeps name and address of a person that another organization has', async () => {
    const other = await createTenant(gateway())
    const userId = await addMember(gateway(), tenant.base)
    const { email } = await api<{ email: string }>('GET', `/users/${userId}`)
    await administrator(gateway()).ask('POST', `${other.base}/users`, { email, name: 'Person' })
    await erased(userId, await api<Erasure>('POST', `/users/${userId}/erase`))
    expect(await sql('SELECT email FROM users WHERE id = $1', [userId])).toEqual([{ email }])
    expect(await administrator(gateway()).ask('GET', `${other.base}/users/${userId}`)).toMatchObject({
      email,
    })
    const answer = await administrator(gateway()).call('GET', `${tenant.base}/users/${userId}`)
    expect(answer.status).toBe(404)
  })

  it('is refused for the last owner, and for a user of another organization', async () => {
    const other = await createTenant(gateway())
    const owner = await addMember(gateway(), other.base, { role: 'owner' })
    const call = (path: string) => administrator(gateway()).call('POST', path)
    expect((await call(`${tenant.base}/users/${owner}/erase`)).status).toBe(404)
    const owners = await query(
      gateway(),
      `SELECT count(*)::int AS n FROM memberships WHERE organization_id = $1 AND role = 'owner'`,
      [other.organizationId],
    )
    expect(owners).toEqual([{ n: 1 }])
    expect((await call(`${other.base}/users/${owner}/erase`)).status).toBe(422)
  })
})

describe('the export of a person', () => {
  it('has what the person has, line by line, and nothing of others or of credentials', async () => {
    const [one, other] = await Promise.all([person(), person()])
    const answer = await administrator(gateway()).call('GET', `${tenant.base}/users/${one.userId}/export`)
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/x-ndjson'])
    const lines = answer.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; data: Record<string, unknown> })
    const count = (type: string) => lines.filter((line) => line.type === type).length
    const counts: Record<string, number> = {}
    for (const { type } of lines.slice(0, -1)) counts[type] = count(type)
    expect(lines.at(-1)).toEqual({ type: 'end', data: counts })
    expect([
      count('user'),
      count('membership'),
      count('key'),
      count('passkey'),
      count('conversation'),
      count('response'),
    ]).toEqual([1, 1, 1, 1, 1, 2])
    const bodies = lines.filter(({ type }) => type === 'item').map(({ data }) => String(data.body))
    expect(bodies.some((body) => body.includes(LARGE))).toBe(true)
    expect(answer.text).not.toContain(one.key)
    expect(answer.text).not.toMatch(/digest|sealed|public_key/)
    for (const id of [other.userId, other.responseId, other.conversationId])
      expect(answer.text).not.toContain(id)
    const [entry] = (await auditEntries(gateway(), tenant)).filter(({ action }) => action === 'user.exported')
    expect(entry?.record).toMatchObject({ resource: `users/${one.userId}` })
  })
})
